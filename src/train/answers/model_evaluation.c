/* SPDX-License-Identifier: Apache-2.0 */
/* model_evaluation.c: neap_eval: opens a model and its data, checks that they fit, evaluates. */
#include "train/evaluate.h"
#include "train/answers/answer_outputs.h"
#include "train/answers/decisions.h"
#include "train/answers/live_answers.h"
#include "train/answers/trained_on.h"
#include "data/dataset.h"
#include "data/events/late_events.h"
#include "data/missing_file.h"
#include "data/recordings.h"
#include "data/tables/event_tables.h"
#include "train/model.h"
#include "train/model_file.h"
#include "train/nir/nir_model.h"
#include "train/reports/input_doubts.h"
#include "train/trainer.h"
#include "train/ranks/rank_answers.h"
#include "nn/core/net_state.h"
#include "nn/core/on_device.h"
#include "base/fail.h"
#include "base/quote.h"
#include "base/print.h"
#include "base/struct_size.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static const struct neap_loss *loss_of(const struct neap__safetensors *file)
{
	const char *name = neap__safetensors_meta(file, "neap.loss");
	const struct neap_loss *loss = name ? neap_loss_find(name) : NULL;
	return loss ? loss : neap_loss_at(0);
}

/* 1: the model is a graph in NIR, which does not say what its inputs are, and the data has numbers.
 */
static int has_values(const struct neap_eval_options *options)
{
	struct neap_dataset_info info = {.size = sizeof info};
	struct neap_dataset *set;

	if (!neap__nir_takes(options->model) || neap__recording_named(options->data))
		return 0;
	if (neap__table_named(options->data))
		return 1;
	if (neap_dataset_open(&set, options->data) < 0)
		return 0;
	neap_dataset_info(set, &info);
	neap_dataset_close(set);
	return info.values != 0;
}

/* What answers are: as the data's targets, or the model's where the data has none. */
static enum neap_target target_of(
	const struct neap_dataset *set, const struct neap__safetensors *file)
{
	return neap__dataset_is_labelled(set) ? set->info.target : neap__model_target(file);
}

static int is_of_steps(enum neap_target target)
{
	return target == NEAP_TARGET_LABELS || target == NEAP_TARGET_SERIES;
}

/* What an evaluation opens. */
struct open_evaluation {
	struct neap__ranks ranks;
	struct neap__safetensors file;
	struct neap_net_options net_options;
	char *text; /* "text:FILE" for a file that is given without "text:", or NULL */
	struct neap_net *net;
	struct neap_dataset *set;
	struct neap_dataset_info info;
	struct neap_loader *loader;
	char **names;
	double *mean, *deviation;    /* of targets, as evaluate.h has them */
	enum neap_target target;     /* of answers */
	int of_steps;		     /* an answer a step */
	int is_live;		     /* the sound is heard while it is answered */
	char note[NEAP__TAKEN_TEXT]; /* about the data, for when it turns out to fit; "": none */
	struct neap__live_sound_options live;
};

static int check_sample(const struct neap_dataset_info *info, const int64_t *sample)
{
	if (!sample || (*sample >= 0 && *sample < info->samples))
		return 0;
	return neap__fail(NEAP_EUSAGE,
		"--sample: %s has no sample %lld; its %lld samples are counted from 0", info->name,
		(long long)*sample, (long long)info->samples);
}

static int open_loader(
	struct open_evaluation *e, const struct neap_eval_options *options, int64_t max_steps)
{
	struct neap_loader_options loading = {.size = sizeof loading,
		.batch = options->batch ? options->batch : 64,
		.dt = e->net_options.dt,
		.steps = max_steps,
		.index = options->sample,
		.count = 1};

	if (e->of_steps || options->every > 0 || neap__answer_outputs_step(options))
		loading.batch = 1;
	e->info.size = sizeof e->info;
	neap_dataset_info(e->set, &e->info);
	NEAP_TRY(check_sample(&e->info, options->sample));
	neap__ranks_loader(&e->ranks, e->net, &loading, e->info.samples);
	return neap_loader_open(&e->loader, e->set, &loading);
}

static int ends_in(const char *name, const char *ending)
{
	size_t n = strlen(name), m = strlen(ending);
	return n > m && strcasecmp(name + n - m, ending) == 0;
}

/* 1: for neap predict, which needs no labels. */
static int predicts(const struct neap_eval_options *options)
{
	return options->answered && options->of_steps;
}

/* 1: most files of the folder are none that encode reads, so they may be texts. */
static int is_of_texts(const char *folder)
{
	int64_t others = neap__recordings_having(folder, neap__sound_endings) +
			 neap__recordings_having(folder, neap__event_endings) +
			 neap__recordings_having(folder, neap__table_endings);

	return 2 * others < neap__recordings_having(folder, NULL);
}

/* Refuses names of data that cannot be what the model was trained on. */
static int check_name(
	const struct open_evaluation *e, const struct neap_eval_options *options, int hears)
{
	const char *data = options->data;
	char command[NEAP__DETAIL_BYTES];

	if (strcmp(data, "-") == 0 && !hears)
		return neap__model_wants(&e->file, "standard input (-) can only be a recording");
	int of_text = neap__model_kind(&e->file) == NEAP__OF_TEXT;
	if (!of_text && ends_in(data, ".txt") && access(data, F_OK) == 0)
		return neap__model_wants(&e->file, "'%.300s' is a text file", data);
	if (of_text && neap__recordings_folder(data) && is_of_texts(data) &&
		neap__join_texts(command, sizeof command, data))
		return neap__fail(NEAP_EUSAGE,
			"'%.300s' is a folder, and the model was trained on a text. Join its "
			"texts: "
			"%s; neap %s %s text:all.txt",
			data, command, predicts(options) ? "predict" : "eval",
			neap__quoted(options->model));
	if (of_text && strchr(data, ' ') && !strpbrk(data, "./:") && access(data, F_OK) < 0)
		return neap__fail(NEAP_EUSAGE,
			"there is no file '%.300s'. If it is a text itself, write it to a file: "
			"printf '%%s' %s > text.txt; neap %s %s text:text.txt",
			data, neap__quoted(data), predicts(options) ? "predict" : "eval",
			neap__quoted(options->model));
	return 0;
}

/* 1: the file has no other kind by its name, and the model was trained on a text, so it is read as
 * one. */
static int is_plain_text(const struct open_evaluation *e, const char *data)
{
	return neap__model_kind(&e->file) == NEAP__OF_TEXT && !neap__table_named(data) &&
	       !neap__recording_named(data) && !neap__recordings_folder(data) &&
	       access(data, F_OK) == 0 &&
	       (!neap__recordings_read(data) || neap__recordings_text(data));
}

/* The command that encodes a table with its targets. */
static int advise_table(const struct open_evaluation *e, const char *data, const char *advice)
{
	char **sample = NULL, *options;
	int count = 0;

	NEAP_TRY(neap__model_texts(&sample, &count, &e->file, NEAP__MODEL_SAMPLES));
	options = neap__model_table_options(&e->file, &e->net_options, data,
		count && e->set->sample_names ? sample[0] : e->set->sample_column);
	int rc = neap__fail(NEAP_EUSAGE,
		"'%.300s' %s encode it with a column of targets: neap encode %s --out "
		"FILE.h5%s",
		data, advice, neap__quoted(data), options ? options : " --target COLUMN");
	free(options);
	neap__model_class_names_free(sample, count);
	return rc;
}

/* Data that cannot be compared with: how to encode it with targets, as the training data was. */
static int no_labels(const struct open_evaluation *e, const char *data)
{
	char options[NEAP__ENCODE_OPTIONS], label[NEAP__LABEL_OPTION];
	static const char advice[] =
		"has no labels to compare the answers with. Use 'neap predict', or";

	if (neap__table_named(data))
		return advise_table(e, data, advice);
	neap__model_encode_options(options, &e->file, &e->net_options, NULL);
	neap__model_file_label(label, &e->file, e->net_options.classes, data);
	if (neap__recording_named(data) && label[0])
		return neap__fail(NEAP_EUSAGE,
			"'%.300s' %s encode it with its class: neap encode %s --out "
			"FILE.h5%s%s",
			data, advice, neap__quoted(data), options, label);
	return neap__recording_named(data)
		       ? neap__fail(NEAP_EUSAGE,
				 "'%.300s' %s encode recordings of known classes, in one folder "
				 "per class or with --label for their names: neap encode DIR --out "
				 "FILE.h5%s",
				 data, advice, options)
		       : neap__fail(NEAP_EUSAGE,
				 "'%.300s' %s pass data with targets: neap encode has --target and "
				 "--label, arrays have 'y'",
				 data, advice);
}

/* Opens the data: a sound that is heard live has nothing but its shape. */
static int open_data(struct open_evaluation *e, const struct neap_eval_options *options)
{
	struct neap_encoder_options encoder;
	char command[NEAP__DETAIL_BYTES];
	int rc = neap__model_encoder(&encoder, &e->file);

	NEAP_TRY(rc);
	NEAP_TRY(check_name(e, options, rc > 0));
	if (options->every > 0)
		NEAP_TRY(neap__decisions_check(options->every, options->window, e->net_options.dt));
	e->is_live = options->every > 0 && neap__recording_named(options->data);
	if (options->level > 0 && !e->is_live)
		return neap__fail(NEAP_EUSAGE,
			"--level applies to a recording or to standard input (-), but '%s' is a "
			"data set. Remove --level",
			options->data);
	if (neap__table_named(options->data) && neap__model_kind(&e->file) == NEAP__OF_EVENTS &&
		neap__event_tables_advise(command, sizeof command, options->data))
		return neap__fail(NEAP_EUSAGE,
			"'%.300s' is a table of events, which is converted before it is encoded: "
			"%s. Then "
			"pass the .npz file",
			options->data, command);
	if (neap__table_named(options->data) && !e->net_options.values &&
		!neap__safetensors_meta(&e->file, NEAP__MODEL_INPUTS))
		return neap__model_wants(&e->file, "'%.300s' is a table of numbers", options->data);
	if (neap__table_named(options->data))
		return neap__model_open_table(&e->set, &e->file, options->data,
			e->net_options.classes, !predicts(options), e->note);
	if (!e->is_live) {
		rc = neap__dataset_open_as(&e->set, options->data, rc > 0 ? &encoder : NULL);
		return rc < 0 ? neap__model_advise_encoding(&e->file, &e->net_options,
					options->data, predicts(options), rc)
			      : rc;
	}
	NEAP_TRY(neap__dataset_open_live(&e->set, options->data, rc > 0 ? &encoder : NULL));
	e->live = (struct neap__live_sound_options){.name = options->data,
		.encoder = &e->set->encoder,
		.level = options->level,
		.ask = {.interrupted = options->interrupted, .user = options->user}};
	return 0;
}

/* Reports that products are not summed in the order of the training (neap__model_open). */
static void say_order(const struct open_evaluation *e, const struct neap_eval_options *options)
{
	char line[NEAP__TAKEN_TEXT];

	if (e->net->options.products == e->net_options.products)
		return;
	neap__print(line, sizeof line,
		"'%.200s' was trained with --products tiles, but is evaluated with --products "
		"chains, because %s: sums are rounded differently. %s",
		options->model,
		neap__is_device(options->device) ? "devices have no tiles" : "tiles need AVX-512",
		neap__is_device(options->device)
			? "For the order of the training, evaluate on the CPU"
			: "NEAP_ISA=lowered computes in the order of the training, slowly");
	options->say(options->user, line);
}

/* Reports what the data leaves open, on rank 0. */
static int say_doubts(const struct open_evaluation *e, const struct neap_eval_options *options)
{
	struct neap__encoding encoding;
	char line[NEAP__TAKEN_TEXT];

	NEAP_TRY(neap__model_encoding(&encoding, &e->file, &e->net_options));
	if (!options->say || !neap__ranks_root(&e->ranks))
		return 0;
	say_order(e, options);
	if (e->note[0])
		options->say(options->user, e->note);
	if (e->set->doubt) {
		neap__print(
			line, sizeof line, "warning: '%.200s': %s", e->set->name, e->set->doubt);
		options->say(options->user, line);
	}
	if (!e->is_live && !e->set->ops->values && !e->set->ops->adopt && !e->set->coded &&
		e->set->info.events == 0) {
		neap__print(line, sizeof line,
			"warning: '%.200s' has no spikes, so the answer does not depend on it. "
			"Check the data; a silent recording has none",
			e->set->name);
		options->say(options->user, line);
	}
	if (neap__encoding_differs(line, e->set, &encoding) ||
		(!e->is_live && neap__late_doubt(line, e->set, 1)))
		options->say(options->user, line);
	int far = e->is_live ? 0 : neap__scale_doubt(line, e->set, NEAP__OF_MODEL);
	NEAP_TRY(far);
	if (far)
		options->say(options->user, line);
	if (!predicts(options) &&
		neap__trained_on(options->model, options->data, e->info.samples)) {
		neap__print(line, sizeof line,
			"'%.200s' is the training data of this model, so the results do not show "
			"how it answers new data. Pass data that it was not trained on",
			options->data);
		options->say(options->user, line);
	}
	if (neap__dataset_is_labelled(e->set) &&
		neap__dataset_names_taken(
			line, e->set, (const char *const *)e->names, e->net_options.classes))
		options->say(options->user, line);
	return 0;
}

static int open_model(
	struct open_evaluation *e, const struct neap_eval_options *options, int64_t *max_steps)
{
	const struct neap__nir_hints hints = {.dt = options->dt,
		.keeps_dt = 1,
		.reset = options->reset,
		.values = has_values(options)};
	char device[NEAP__DEVICE_NAME];

	NEAP_TRY(neap__model_file_read(&e->file, options->model, &hints));
	int rc = neap__model_open(&e->net, &e->net_options, max_steps, &e->file,
		neap__ranks_threads(&e->ranks, options->threads),
		neap__on_device_of_rank(device, options->device, e->ranks.local),
		options->compile_cells);
	return rc < 0 ? neap__fail_in(rc, "%s: ", options->model) : 0;
}

/* A text that is named by its file alone becomes text:FILE. */
static int name_text(struct open_evaluation *e, struct neap_eval_options *options)
{
	if (!is_plain_text(e, options->data))
		return 0;
	if (asprintf(&e->text, "text:%s", options->data) < 0) {
		e->text = NULL;
		return neap__fail_errno(ENOMEM, "'%s'", options->data);
	}
	options->data = e->text;
	return 0;
}

/* Maps the features and the classes of the data to those of the model. */
static int match_data(
	struct open_evaluation *e, const struct neap_eval_options *options, int64_t max_steps)
{
	char line[NEAP__TAKEN_TEXT];
	int rc = neap__model_match_features(line, e->set, &e->file);

	if (rc > 0 && options->say && neap__ranks_root(&e->ranks))
		options->say(options->user, line);
	NEAP_TRY(rc);
	rc = neap__model_rows_take(e->set, &e->file, max_steps);
	if (rc == NEAP_EFORMAT)
		return neap__fail_in(rc, "%s: ", options->model);
	NEAP_TRY(rc);
	NEAP_TRY(neap__model_class_names(&e->names, &e->file, e->net_options.classes));
	if (predicts(options) && neap__model_target(&e->file) == NEAP_TARGET_LABEL)
		NEAP_TRY(neap__dataset_forget_classes(
			e->set, (const char *const *)e->names, e->net_options.classes, e->note));
	return neap__model_fits(&e->file, &e->net_options, e->set,
		"use 'neap predict', which needs no known classes");
}

/* Opens model and data and checks that they fit; renames a text in `options`. */
static int open_all(struct open_evaluation *e, struct neap_eval_options *options)
{
	int64_t max_steps = 0;

	NEAP_TRY(open_model(e, options, &max_steps));
	NEAP_TRY(name_text(e, options));
	NEAP_TRY(open_data(e, options));
	NEAP_TRY(match_data(e, options, max_steps));
	int rc = neap__model_targets_scale(e->set, &e->file);
	NEAP_TRY(rc);
	if (predicts(options))
		neap__text_go_on(e->set);
	e->target = target_of(e->set, &e->file);
	int numbers = e->target == NEAP_TARGET_NUMBERS || e->target == NEAP_TARGET_SERIES;
	if (numbers && options->softmax)
		return neap__fail(NEAP_EUSAGE,
			"--softmax: '%s' answers with numbers, which have no probabilities; remove "
			"--softmax",
			options->model);
	if (numbers)
		NEAP_TRY(neap__model_targets(
			&e->mean, &e->deviation, &e->file, e->net_options.classes));
	e->of_steps = predicts(options) && is_of_steps(e->target);
	NEAP_TRY(open_loader(e, options, max_steps));
	if (!options->answered && !neap__dataset_is_labelled(e->set))
		return no_labels(e, options->data);
	return say_doubts(e, options);
}

/* Refuses ranks that would compute other bits. */
static int check_ranks(struct open_evaluation *e, const struct neap_eval_options *options)
{
	struct neap__rank_facts facts = {
		.data = options->data, .weights = neap__weights_hash(e->net)};

	if (!e->ranks.peers)
		return 0;
	int rc = neap__data_fingerprint(&facts.fingerprint, e->set);
	NEAP_TRY(neap__ranks_agree(&e->ranks, rc));
	return neap__ranks_same(&e->ranks, &facts);
}

/* The same evaluation with its archives; rank 0 writes them. */
static int evaluate_outputs(struct neap_eval_result *result, const struct open_evaluation *e,
	const struct neap_eval_options *options, struct neap__evaluation evaluation)
{
	const struct neap__answer_shape shape = {.target = e->target,
		.of_steps = e->of_steps,
		.timed = options->every > 0,
		.classes = e->net_options.classes,
		.class_name = e->names,
		.sample_name = e->set->sample_names,
		.samples = e->info.samples};
	struct neap__answer_outputs outputs;
	int (*run)(struct neap_eval_result *, const struct neap__evaluation *) =
		evaluation.live ? neap__live_answers : neap__evaluate;

	if (!options->arrays && !neap__answer_outputs_step(options))
		return run(result, &evaluation);
	NEAP_TRY(neap__answer_outputs_open(&outputs, &evaluation, options, &shape));
	int rc = run(result, &evaluation);
	return neap__answer_outputs_end(&outputs, rc);
}

static int evaluate_opened(struct neap_eval_result *result, struct open_evaluation *e,
	const struct neap_eval_options *options)
{
	const struct neap__evaluation evaluation = {.net = e->net,
		.options = &e->net_options,
		.loss = loss_of(&e->file),
		.loader = e->loader,
		.total = options->sample ? 1 : e->info.samples,
		.progress = options->progress,
		.advanced = options->advanced,
		.answered = options->answered,
		.user = options->user,
		.class_name = e->names,
		.sample_name = e->set->sample_names,
		.ranks = &e->ranks,
		.target = e->target,
		.mean = e->mean,
		.deviation = e->deviation,
		.normalised = e->set->next,
		.of_steps = e->of_steps,
		.every = options->every,
		.window = options->window,
		.live = e->is_live ? &e->live : NULL,
		.softmax = options->softmax};

	NEAP_TRY(evaluate_outputs(result, e, options, evaluation));
	result->class_name = e->names;
	e->names = NULL;
	return 0;
}

static void close_all(struct open_evaluation *e)
{
	neap__model_class_names_free(e->names, e->net_options.classes);
	free(e->text);
	free(e->mean);
	free(e->deviation);
	neap_loader_close(e->loader);
	neap_dataset_close(e->set);
	neap_net_free(e->net);
	neap__safetensors_free(&e->file);
}

/* Refuses options that have no sense, alone or together. */
static int check_options(const struct neap_eval_options *options)
{
	if (!options->model || !options->data)
		return neap__fail(NEAP_EUSAGE, "a model and a data set are required");
	if (options->batch < 0 || options->threads < 0)
		return neap__fail(NEAP_EUSAGE, "batch and threads must not be negative");
	if (options->arrays && (!options->answered || options->peers))
		return neap__fail(NEAP_EUSAGE, "arrays require `answered`, and a single process");
	if (!(options->every >= 0) || !(options->level >= 0) || isinf(options->level))
		return neap__fail(NEAP_EUSAGE, "`every` and `level` must not be negative");
	if (options->every > 0 && (!options->answered || options->peers))
		return neap__fail(NEAP_EUSAGE,
			"decisions (--every) require `answered`, and a single process");
	if (options->every > 0 && neap__answer_outputs_step(options))
		return neap__fail(NEAP_EUSAGE, "--every cannot be combined with --spikes and "
					       "--membranes; remove one of them");
	if (options->level > 0 && options->every <= 0)
		return neap__fail(NEAP_EUSAGE, "--level requires --every");
	if (!(options->window >= 0) || (options->window > 0 && options->every <= 0))
		return neap__fail(NEAP_EUSAGE, "--window requires --every");
	if (options->of_steps && options->peers)
		return neap__fail(NEAP_EUSAGE, "targets per step are not supported with several "
					       "ranks; run neap predict as one process");
	if (options->sample && options->peers)
		return neap__fail(NEAP_EUSAGE, "--sample is not supported with several ranks; run "
					       "neap predict as one process");
	NEAP_TRY(neap__answer_outputs_check(options));
	if ((options->dt > 0 || options->reset) && !neap__nir_takes(options->model))
		return neap__fail(NEAP_EUSAGE,
			"'%s' specifies its own dt and reset. Remove --dt and --reset, which apply "
			"to NIR graphs only",
			options->model);
	return 0;
}

int neap_eval(struct neap_eval_result *result, const struct neap_eval_options *options)
{
	NEAP_NEED(result, options);
	struct open_evaluation evaluating = {0}, *e = &evaluating;

	NEAP_TRY(neap__struct_size(
		result->size, sizeof *result, sizeof *result, "neap_eval_result"));
	NEAP_TRY(neap__struct_size(
		options->size, sizeof *options, sizeof *options, "neap_eval_options"));
	*result = (struct neap_eval_result){.size = sizeof(struct neap_eval_result)};
	NEAP_TRY(check_options(options));
	NEAP_TRY(neap__ranks_begin(&e->ranks, options->peers));
	struct neap_eval_options named = *options;
	int rc = neap__ranks_agree(&e->ranks, open_all(e, &named));
	if (rc == 0)
		rc = check_ranks(e, &named);
	if (rc == 0)
		rc = evaluate_opened(result, e, &named);
	neap__ranks_end(&e->ranks, rc);
	close_all(e);
	return rc;
}
