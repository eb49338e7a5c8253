/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h: models and snapshots as safetensors: the parameters of a net with the settings that make
 * the net again, the names of its classes, and the moments of an optimizer.
 */
#ifndef NEAP_TRAIN_MODEL_H
#define NEAP_TRAIN_MODEL_H

#include <neap/train.h>
#include "base/json.h"
#include "data/coding/coding.h"
#include "data/dataset.h"
#include "train/optimizer.h"
#include "train/safetensors.h"

/* Tensors and metadata that will be written to one file; texts are copied, data is borrowed. */
struct neap__tensor_bundle {
	struct neap__file_tensor *tensor;
	struct neap__metadata *pair;
	char **owned; /* texts */
	int tensors, pairs, nowned;
	int64_t tensor_room, pair_room, owned_room;
	int error; /* sticky: -ENOMEM */
};
void neap__tensor_bundle_tensor(struct neap__tensor_bundle *bundle, const char *name,
	enum neap__dtype dtype, int dims, const uint64_t *shape, const void *data);
void neap__tensor_bundle_meta(
	struct neap__tensor_bundle *bundle, const char *key, const char *value);
/* Adds a text in the making as metadata, and frees it. */
void neap__tensor_bundle_json(
	struct neap__tensor_bundle *bundle, const char *key, struct neap__json *json);
int neap__tensor_bundle_write(struct neap__tensor_bundle *bundle, const char *path);
void neap__tensor_bundle_free(struct neap__tensor_bundle *bundle);

/* Adds all parameters ("layer0.weight", ...; sparse ones with their rows and columns). */
void neap__model_add(struct neap__tensor_bundle *bundle, const struct neap_net *net);
/* Adds the net's settings, the names of its classes and the cut of its samples. */
void neap__model_describe(struct neap__tensor_bundle *bundle,
	const struct neap_net_options *options, const struct neap_dataset *set, int64_t max_steps);

/* Adds and takes back the moments of an optimizer, "optimizer.adam.first.layer0.weight", ... */
void neap__moments_add(struct neap__tensor_bundle *bundle, const struct neap__optimizer *optimizer,
	const struct neap_net *net);
int neap__moments_take(struct neap__optimizer *optimizer, const struct neap_net *net,
	const struct neap__safetensors *file);

/* Copies the parameters of a file into a net of the same shape. */
int neap__model_take(struct neap_net *net, const struct neap__safetensors *file);
/*
 * The same for a net that may differ: numbers are converted to its precision, leaks that the file
 * does not have stay as they are, and with fresh_readout the readout does. NEAP_EUSAGE where the
 * file has other layers or shapes than the net.
 */
int neap__model_start(
	struct neap_net *net, const struct neap__safetensors *file, int fresh_readout);
/*
 * Makes the net that a file describes and copies its parameters. threads: 0 for one a processor;
 * device and compile_cells are as in neap_net_options. A model with products in tiles, which the
 * device or this processor does not compute, becomes a net with chains; `options` keep the tiles.
 */
int neap__model_open(struct neap_net **net, struct neap_net_options *options, int64_t *max_steps,
	const struct neap__safetensors *file, int threads, const char *device, int compile_cells);
/* 0, or NEAP_EUSAGE where channels, classes or names of a data set do not fit the model;
 * `otherwise` is as in struct neap__class_owner. */
int neap__model_fits(const struct neap__safetensors *file, const struct neap_net_options *options,
	struct neap_dataset *set, const char *otherwise);
/* The same of channels alone: numbers or spikes, and how many. */
int neap__model_channels_fit(const struct neap__safetensors *file,
	const struct neap_net_options *options, struct neap_dataset *set);

/* Gives the names of classes that a file keeps, NULL where it has none; to be freed with the other.
 */
int neap__model_class_names(char ***names, const struct neap__safetensors *file, int classes);
void neap__model_class_names_free(char **names, int classes); /* NULL: nothing */

/* Numbers the characters of a text as the model does, if both are texts; 0 or a negative code. */
int neap__model_adopt_text(struct neap_dataset *set, const struct neap__safetensors *file);
/*
 * Writes to a model, and reads from one, how the rows of its data set are read (row_reading.h), so
 * that other data is read alike; a set of spikes writes nothing. take: samples will be cut at
 * `max_steps` (0: not); 0, NEAP_EUSAGE where the set does not fit, NEAP_EFORMAT, -ENOMEM.
 */
void neap__model_rows_write(struct neap__tensor_bundle *bundle, const struct neap_dataset *set);
int neap__model_rows_take(
	struct neap_dataset *set, const struct neap__safetensors *file, int64_t max_steps);
/* NEAP_EUSAGE: the set has another number of features than the `expected` ones of the model. */
int neap__model_wrong_features(
	const struct neap_dataset *set, const struct neap__safetensors *file, int expected);
/* neap__rows_match with the features that the model was trained on; 0 where its file has none. */
int neap__model_match_features(char line[NEAP__TAKEN_TEXT], struct neap_dataset *set,
	const struct neap__safetensors *file);
/* Takes the means and deviations alone: 1, or 0 where the file has none; else as take. */
int neap__model_rows_scale(struct neap_dataset *set, const struct neap__safetensors *file);
/* The same of the targets, where they are numbers. */
int neap__model_targets_scale(struct neap_dataset *set, const struct neap__safetensors *file);
/*
 * Gives means and deviations of the outputs, to be freed: 1; 0 where the file has none, which sets
 * both to NULL; NEAP_EFORMAT.
 */
int neap__model_targets(
	double **mean, double **deviation, const struct neap__safetensors *file, int outputs);

/*
 * Gives the coding by which numbers became the spikes that a model was trained on, from the text
 * that is its metadata, or NULL; no kind where there is none. 0 or NEAP_EFORMAT.
 */
#define NEAP__MODEL_INPUTS "neap.inputs"
#define NEAP__MODEL_SOUND "neap.encoder"
#define NEAP__MODEL_EVENTS "neap.events"
#define NEAP__MODEL_FEATURES "neap.features"
#define NEAP__MODEL_MISSING "neap.missing" /* a list of the --missing of the training data */
#define NEAP__MODEL_SAMPLES "neap.samples" /* a list of the column that names samples */
int neap__model_coding(struct neap__coding *coding, const char *text);

/*
 * Gives the settings with which recordings became the spikes that a model was trained on. 1, 0
 * where the file has none, or NEAP_EFORMAT.
 */
int neap__model_encoder(struct neap_encoder_options *encoder, const struct neap__safetensors *file);
/* What a network was trained on, as far as its file shows it. */
enum neap__model_kind {
	NEAP__OF_TEXT,
	NEAP__OF_NUMBERS,
	NEAP__OF_SOUND,
	NEAP__OF_EVENTS,
	NEAP__OF_SPIKES
};
enum neap__model_kind neap__model_kind(const struct neap__safetensors *file);
/* NEAP_EUSAGE and a line: what was given ("'a.csv' is a table"), and what to pass to this model. */
int neap__model_wants(const struct neap__safetensors *file, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* What the inputs of a set are, as a predicate: "contains real numbers". */
const char *neap__model_contents(const struct neap_dataset *set);
/* What the targets of a kind are: "one class per sample". */
const char *neap__model_targets_name(enum neap_target target);
/* The same for a set whose inputs are of another kind. */
int neap__model_refuse(const struct neap__safetensors *file, const struct neap_dataset *set);
/* 0, or that line if one of them, or both, are of text, or one of sound and the other of events. */
int neap__model_kind_fits(const struct neap__safetensors *file, const struct neap_dataset *set);

/* How the spikes that a network was trained on were made, as far as it is known. */
struct neap__encoding {
	struct neap_encoder_options sound; /* size 0: not of recordings */
	int has_events;
	double events[NEAP__EVENT_NUMBERS];
	int has_time_unit; /* as in a data set */
	double time_unit;
	int from_first; /* as in a data set */
	int channels;
	char missing[16]; /* how missing values were treated; "": none were */
};
/* Adds the encoding of the set's spikes, and its channels if the net has more. */
void neap__model_encoding_write(struct neap__tensor_bundle *bundle,
	const struct neap_net_options *options, const struct neap_dataset *set);
/* Takes it back. 0 or NEAP_EFORMAT. */
int neap__model_encoding(struct neap__encoding *encoding, const struct neap__safetensors *file,
	const struct neap_net_options *options);
/* The encoding of a training set. */
struct neap__encoding neap__encoding_of(const struct neap_dataset *set);
/*
 * 1: `line` has the options of `neap encode`, " --pool 2", that encode as the training data was,
 * where those of the set differ, or for `set` NULL from the defaults; 0: they are the same or not
 * known.
 */
#define NEAP__ENCODE_OPTIONS 160
int neap__model_encode_options(char line[NEAP__ENCODE_OPTIONS],
	const struct neap__safetensors *file, const struct neap_net_options *options,
	const struct neap_dataset *set);
/*
 * The first column of the table, other than the features [count], that has a class of the model in
 * its first row, or for a model of one number the column of its name; or NULL. The caller frees it.
 */
char *neap__model_table_target(const struct neap__safetensors *file, int classes, const char *path,
	char *const *feature, int count);
/*
 * " --sample-column ID --target CLASS --drop TIME": the options of `neap encode` for a table with
 * the model's features and a column of targets, "COLUMN" if it is not recognized. `sample`: the
 * column that names samples, or NULL. The caller frees the result; NULL: no memory.
 */
char *neap__model_table_options(const struct neap__safetensors *file,
	const struct neap_net_options *options, const char *path, const char *sample);
/*
 * " --label PATTERN" for a file whose name has a class of the model, while the name of its folder
 * is none; else "".
 */
#define NEAP__LABEL_OPTION 600
void neap__model_file_label(char room[NEAP__LABEL_OPTION], const struct neap__safetensors *file,
	int classes, const char *path);
/*
 * `rc` of data that could not be opened. If they have to be encoded first, the message is the
 * command that does so as for the training data; `predicts`: classes are not needed.
 */
int neap__model_advise_encoding(const struct neap__safetensors *file,
	const struct neap_net_options *options, const char *data, int predicts, int rc);
/*
 * 1: the spikes of the set were made with other settings, of which `line` (NEAP__TAKEN_TEXT bytes)
 * names one, or it has fewer channels; else 0.
 */
int neap__encoding_differs(char *line, struct neap_dataset *set, const struct neap__encoding *was);

/*
 * A list of texts in the metadata, such as the names of features, to be freed by
 * neap__model_class_names_free; count 0: there is none. 0, NEAP_EFORMAT or -ENOMEM.
 */
int neap__model_texts(
	char ***names, int *count, const struct neap__safetensors *file, const char *key);

/*
 * Opens a table of text, whose columns are found by these names, as a set; the column that
 * named the samples of the training data divides it into samples. `line` is about columns that are
 * ignored, "": none. `classes`: of the model; `judges`: the answers are compared with targets, so
 * that advice names their column. 0 or a negative code.
 */
int neap__model_open_table(struct neap_dataset **set, const struct neap__safetensors *file,
	const char *name, int classes, int judges, char line[NEAP__TAKEN_TEXT]);

/* What the data that a model was trained on asked for; a class a sample where the file says
 * nothing.
 */
enum neap_target neap__model_target(const struct neap__safetensors *file);

/* XXH3 of the bytes of all parameters. */
uint64_t neap__weights_hash(const struct neap_net *net);

#endif
