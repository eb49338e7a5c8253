/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_advice.c: the command that encodes data as a model's training data was, for data that has
 * to be encoded first: its settings, and how the data shows the classes (model.h).
 */
#include "train/model.h"
#include "data/events/event_source.h"
#include "data/formats/contents.h"
#include "data/names/pattern_proposal.h"
#include "data/recordings.h"
#include "data/tables/csv.h"
#include "data/tables/event_tables.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/quote.h"
#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* 1: an array file of events, which is no data set yet; with these names of classes, if not NULL.
 */
static int has_events(const char *data, char **names, int count)
{
	const struct neap_event_options options = {.size = sizeof options,
		.classes = (const char *const *)names,
		.nclasses = names ? count : 0};
	struct neap__event_source *source;

	if (neap__array_events_open(&source, data, NULL, &options, NULL) < 0)
		return 0;
	source->close(source);
	return 1;
}

/* 1: an array file with one recording, whose class only its folder would name. */
static int is_recording(const char *data)
{
	const struct neap_event_options options = {.size = sizeof options};
	struct neap__event_source *source;

	if (neap__array_events_open(&source, data, NULL, &options, NULL) < 0)
		return 0;
	int is = source->recording;
	source->close(source);
	return is;
}

/* The names of the model's classes as a command that writes them to classes.txt; "": none is needed
 * to read the events, or they cannot be read. */
static void write_classes(
	struct neap__text *to, const struct neap__safetensors *file, int count, const char *data)
{
	char **names = NULL;

	if (!has_events(data, NULL, 0) && neap__model_class_names(&names, file, count) == 0 &&
		names && has_events(data, names, count)) {
		neap__text_add(to, "printf '%%s\\n'");
		for (int i = 0; i < count; i++)
			neap__text_add(to, " %s", neap__quoted(names[i]));
		neap__text_add(to, " > classes.txt; ");
	}
	neap__model_class_names_free(names, count);
}

static int is_among(const char *name, char *const *names, int count)
{
	for (int k = 0; k < count; k++)
		if (names[k] && strcmp(names[k], name) == 0)
			return 1;
	return 0;
}

/* " --drop time": columns of the table that are none of the features and not `kept`, if given. */
static void add_drops(struct neap__text *to, const char *path, char *const *feature, int count,
	const char *const kept[2])
{
	struct neap__csv csv;
	struct neap__text list = {0};

	if (neap__csv_open(&csv, path) == 0 && neap__csv_next(&csv) > 0)
		for (int64_t i = 0; i < csv.fields; i++)
			if (!is_among(csv.field[i], feature, count) &&
				!(kept[0] && strcmp(kept[0], csv.field[i]) == 0) &&
				!(kept[1] && strcmp(kept[1], csv.field[i]) == 0))
				neap__text_add(&list, "%s%s", list.length ? "," : "", csv.field[i]);
	if (list.length)
		neap__text_add(to, " --drop %s", neap__word(list.data));
	neap__text_free(&list);
	neap__csv_close(&csv);
}

char *neap__model_table_target(const struct neap__safetensors *file, int classes, const char *path,
	char *const *feature, int count)
{
	struct neap__csv csv;
	char **name = NULL, **header = NULL, **sample = NULL, *found = NULL;
	int nsamples = 0;
	int64_t fields = 0;
	enum neap_target target = neap__model_target(file);
	int is_number = target == NEAP_TARGET_NUMBERS || target == NEAP_TARGET_SERIES;

	if (neap__model_class_names(&name, file, classes) < 0 || !name)
		return NULL;
	/* Numbers of samples can look like classes. */
	if (neap__model_texts(&sample, &nsamples, file, NEAP__MODEL_SAMPLES) < 0)
		nsamples = 0;
	if (neap__csv_open(&csv, path) == 0 && neap__csv_next(&csv) > 0) {
		fields = csv.fields;
		header = calloc((size_t)fields, sizeof *header);
	}
	for (int64_t i = 0; header && i < fields; i++)
		header[i] = strdup(csv.field[i]);
	for (int64_t i = 0; header && is_number && classes == 1 && i < fields && !found; i++)
		if (header[i] && name[0] && strcmp(header[i], name[0]) == 0)
			found = strdup(header[i]);
	if (header && !found && neap__csv_next(&csv) > 0)
		for (int64_t i = 0; i < fields && i < csv.fields && !found; i++)
			if (header[i] && !is_among(header[i], feature, count) &&
				!is_among(header[i], sample, nsamples) &&
				is_among(csv.field[i], name, classes))
				found = strdup(header[i]);
	for (int64_t i = 0; header && i < fields; i++)
		free(header[i]);
	free(header);
	neap__csv_close(&csv);
	neap__model_class_names_free(sample, nsamples);
	neap__model_class_names_free(name, classes);
	return found;
}

/* " --missing previous": as the training data's, or if the tables below `path` have gaps. */
static void add_missing(
	struct neap__text *to, const struct neap__safetensors *file, const char *path)
{
	char **missing = NULL;
	int filled = 0;

	if (neap__model_texts(&missing, &filled, file, NEAP__MODEL_MISSING) == 0 &&
		(filled || neap__tables_have_gaps(path)))
		neap__text_add(to, " --missing %s", filled ? missing[0] : "previous");
	neap__model_class_names_free(missing, filled);
}

/* " --labels FILE", and " --target COLUMN" if it has further columns than that of the targets. */
static void add_label_table(struct neap__text *to, const struct neap__safetensors *file,
	int classes, const char *labels)
{
	struct neap__csv csv;
	int64_t fields = 0;

	neap__text_add(to, " --labels %s", neap__quoted(labels));
	if (neap__csv_open(&csv, labels) == 0 && neap__csv_next(&csv) > 0)
		fields = csv.fields;
	neap__csv_close(&csv);
	if (fields < 3)
		return;
	char *target = neap__model_table_target(file, classes, labels, NULL, 0);
	neap__text_add(to, " --target %s", target ? neap__word(target) : "COLUMN");
	free(target);
}

char *neap__model_table_options(const struct neap__safetensors *file,
	const struct neap_net_options *options, const char *path, const char *sample)
{
	struct neap__text to = {0};
	char **feature = NULL, *target = NULL, labels[600];
	int count = 0;

	if (neap__model_texts(&feature, &count, file, NEAP__MODEL_FEATURES) == 0 && count)
		target = neap__model_table_target(file, options->classes, path, feature, count);
	const char *const kept[] = {sample, target};
	if (sample)
		neap__text_add(&to, " --sample-column %s", neap__word(sample));
	/* Without features nothing tells which columns are left. */
	int labelled = count && !target && neap__labels_of_file(labels, sizeof labels, path);
	if (labelled)
		add_label_table(&to, file, options->classes, labels);
	else
		neap__text_add(&to, " --target %s", target ? neap__word(target) : "COLUMN");
	if (count)
		add_drops(&to, path, feature, count, kept);
	add_missing(&to, file, path);
	if (count && !target && !labelled)
		neap__text_add(&to, ", without COLUMN in the list; or, if another table lists the "
				    "targets, --labels TABLE instead of --target COLUMN");
	neap__model_class_names_free(feature, count);
	free(target);
	return to.data;
}

enum {
	DROPS = 700 /* bytes of the options of tables */,
	LABEL = NEAP__OPTION_TEXT /* of --label */
};

/* 1: the first row of the table has all features. */
static int has_features(const char *path, char *const *feature, int count)
{
	for (int k = 0; k < count; k++)
		if (!neap__table_has_column(path, feature[k], strlen(feature[k])))
			return 0;
	return 1;
}

/* The first table of the folder with the features, or the first that is not `labels`; or NULL. */
static const char *find_features(
	const struct neap__recordings *all, const char *labels, char *const *feature, int count)
{
	const char *first = NULL;

	for (int64_t i = 0; i < all->count; i++) {
		const char *path = all->file[i].path;
		if (all->file[i].stray || strcmp(path, labels) == 0 ||
			!neap__recordings_ends(path, neap__table_endings))
			continue;
		if (has_features(path, feature, count))
			return path;
		first = first ? first : path;
	}
	return first;
}

/* " --label PATTERN" by which the names of the files in `data`, a folder or one of them, have
 * classes of the model; "": none does. */
static void class_label(char room[LABEL], const struct neap__safetensors *file, int classes,
	const char *data, const char *const *endings)
{
	struct neap__recordings all = {0};
	char **names = NULL, *pattern = NULL;
	int rc = neap__recordings_folder(data) ? neap__recordings_all(&all, data)
					       : neap__recordings_add(&all, data);
	const char **path = calloc((size_t)all.count + 1, sizeof *path);
	int64_t n = 0;

	room[0] = '\0';
	for (int64_t i = 0; rc == 0 && path && i < all.count; i++)
		if (!all.file[i].stray && neap__recordings_ends(all.file[i].path, endings))
			path[n++] = all.file[i].path;
	if (n && neap__model_class_names(&names, file, classes) == 0 && names)
		pattern = neap__pattern_of_names(path, n, (const char *const *)names, classes);
	if (pattern && strlen(pattern) < LABEL - 20)
		neap__print(room, LABEL, " --label %s", neap__quoted(pattern));
	free(pattern);
	neap__model_class_names_free(names, classes);
	free(path);
	neap__recordings_free(&all);
}

/* " --target COLUMN" or `label` for tables whose folders do not name their classes; `each_step`:
 * targets are per step, which only columns have. */
static void add_labels(struct neap__text *to, const char *target, const char *label, int each_step)
{
	if (target)
		neap__text_add(to, " --target %s", neap__word(target));
	else if (each_step)
		neap__text_add(to, " --target COLUMN");
	else
		neap__text_add(to, "%s", label[0] ? label : " --labels FILE.csv");
}

/*
 * The options for a folder of tables by one of them: --drop and --missing, or "". For eval,
 * `classes` of the model, also the option for their targets, if the folders have none; else 0.
 */
static void drop_options(
	char room[DROPS], const struct neap__safetensors *file, const char *folder, int classes)
{
	enum neap_target is = neap__model_target(file);
	int each_step = is == NEAP_TARGET_LABELS || is == NEAP_TARGET_SERIES;
	struct neap__recordings all = {0};
	struct neap__text to = {0};
	char **feature = NULL, *target = NULL, labels[600], label[LABEL] = "";
	const char *kept[2] = {NULL, NULL}, *first;
	int64_t flat = 0;
	int count = 0;

	room[0] = '\0';
	neap__labels_of(labels, sizeof labels, folder, 0);
	if (neap__model_texts(&feature, &count, file, NEAP__MODEL_FEATURES) == 0 && count &&
		neap__recordings_all(&all, folder) == 0 &&
		(first = find_features(&all, labels, feature, count))) {
		neap__recordings_count(folder, neap__table_endings, &flat);
		if (classes && (flat || is != NEAP_TARGET_LABEL)) {
			target = neap__model_table_target(file, classes, first, feature, count);
			if (is == NEAP_TARGET_LABEL && !labels[0])
				class_label(label, file, classes, folder, neap__table_endings);
			if (!target && !each_step && labels[0])
				add_label_table(&to, file, classes, labels);
			else
				add_labels(&to, target, label, each_step);
		}
		kept[0] = target;
		add_drops(&to, first, feature, count, kept);
		add_missing(&to, file, folder);
	}
	if (to.data && to.length < DROPS)
		neap__print(room, DROPS, "%s", to.data);
	free(target);
	neap__text_free(&to);
	neap__recordings_free(&all);
	neap__model_class_names_free(feature, count);
}

/* Refuses a folder of tables without a feature of the model, which no option of encode adds. */
static int check_columns(const struct neap__safetensors *file, const char *folder)
{
	struct neap__recordings all = {0};
	char **feature = NULL, labels[600];
	const char *first = NULL;
	int count = 0, rc = 0;

	neap__labels_of(labels, sizeof labels, folder, 0);
	if (neap__model_texts(&feature, &count, file, NEAP__MODEL_FEATURES) == 0 && count &&
		neap__recordings_all(&all, folder) == 0)
		first = find_features(&all, labels, feature, count);
	for (int k = 0; first && rc == 0 && k < count; k++)
		if (!neap__table_has_column(first, feature[k], strlen(feature[k])))
			rc = neap__fail(NEAP_EUSAGE,
				"'%s' contains tables, but '%s' has no column '%.60s', which is "
				"one "
				"of the %d features that the model was trained on. Add the column, "
				"or correct its name in the first line",
				folder, first, feature[k], count);
	neap__recordings_free(&all);
	neap__model_class_names_free(feature, count);
	return rc;
}

/* 1: the folder that contains the file has the name of a class of the model. */
static int is_in_class(const struct neap__safetensors *file, int classes, const char *path)
{
	char **names = NULL, *folder = NULL;
	int is = 0;

	if (neap__recordings_folder_name(&folder, path) == 0 &&
		neap__model_class_names(&names, file, classes) == 0)
		for (int i = 0; names && i < classes; i++)
			is |= names[i] && strcmp(names[i], folder) == 0;
	free(folder);
	neap__model_class_names_free(names, classes);
	return is;
}

void neap__model_file_label(char room[NEAP__LABEL_OPTION], const struct neap__safetensors *file,
	int classes, const char *path)
{
	_Static_assert(LABEL == NEAP__LABEL_OPTION, "one size");
	const char *const *endings = neap__recordings_ends(path, neap__sound_endings)
					     ? neap__sound_endings
					     : neap__event_endings;
	room[0] = '\0';
	if (!is_in_class(file, classes, path))
		class_label(room, file, classes, path, endings);
}

/* What is in a folder, if a model of this kind cannot answer it, even encoded; else NULL. */
static const char *other_contents(enum neap__model_kind kind, const char *folder)
{
	char command[NEAP__DETAIL_BYTES];
	int events = neap_encode_is_events(folder), tables = neap_encode_is_table(folder);
	int sounds = !events && !tables && neap__recordings_having(folder, neap__sound_endings);

	if (kind == NEAP__OF_SPIKES)
		return NULL;
	if (events)
		return kind == NEAP__OF_EVENTS ? NULL : "events";
	if (tables)
		return kind == NEAP__OF_NUMBERS || (kind == NEAP__OF_EVENTS &&
							   neap__event_tables_advise(
								   command, sizeof command, folder))
			       ? NULL
			       : "tables of numbers";
	if (sounds)
		return kind == NEAP__OF_SOUND ? NULL : "recordings";
	return neap__recordings_having(folder, (const char *const[]){".txt", NULL})
		       ? "texts"
		       : "no recordings, tables or events";
}

/*
 * The option --label of the command, "" if it needs none. `folder`: the folder that is encoded, or
 * NULL; takes_any: a file of its own is predicted with the settings of the model.
 */
static void label_option(char label[LABEL], const struct neap__safetensors *file, int classes,
	const char *data, const char *folder, int predicts, int takes_any)
{
	if (folder)
		neap__recordings_label(label, folder);
	else if (takes_any && is_recording(data))
		neap__print(label, LABEL, " --label '(.*)'");
	else if (!predicts && is_recording(data) && !is_in_class(file, classes, data)) {
		class_label(label, file, classes, data, neap__event_endings);
		if (!label[0])
			neap__print(label, LABEL, " --label REGEX");
	}
	if (predicts && label[0])
		neap__print(label, LABEL, " --label '(.*)'");
	else if (folder && label[0]) {
		char of_names[LABEL];
		int events = neap_encode_is_events(folder);
		class_label(of_names, file, classes, folder,
			events ? neap__event_endings : neap__sound_endings);
		if (of_names[0])
			memcpy(label, of_names, LABEL);
	}
}

/* Folders that are not encoded as a whole: 0, or fails with advice. */
static int refuse_folder(const struct neap__safetensors *file, const char *data)
{
	char line[NEAP__DETAIL_BYTES], command[NEAP__DETAIL_BYTES];
	enum neap__model_kind kind = neap__model_kind(file);
	const char *other;

	if (neap__recordings_having(data, NULL) == 0)
		return neap__fail(NEAP_EUSAGE,
			"the folder '%s' is empty. Put the data into it, or pass another one",
			data);
	if (neap__recordings_having(data, neap__sound_endings) == 0 &&
		neap__contents_set_in(line, sizeof line, data))
		return neap__fail(NEAP_EUSAGE, "'%s' is a folder. Pass the data set in it: %s",
			data, neap__quoted(line));
	if ((other = other_contents(kind, data)))
		return neap__model_wants(file, "'%s' contains %s", data, other);
	if (kind == NEAP__OF_EVENTS && neap__event_tables_advise(command, sizeof command, data))
		return neap__fail(NEAP_EUSAGE,
			"'%s' contains tables of events. Convert them, and repeat the command: %s",
			data, command);
	return 0;
}

/* The command that encodes a folder; `settings`: of the training data, NULL if they are unknown. */
static int advise_folder(const struct neap__safetensors *file,
	const struct neap_net_options *options, const char *data, const char *settings,
	int predicts, int rc)
{
	char label[LABEL] = "", drops[DROPS] = "", option[NEAP__OPTION_TEXT] = "";
	char channels[NEAP__CHANNELS_TEXT], training[4096], part[4096], its[60];
	/* A folder of both parts would be evaluated with what the model learned from. */
	int is_part = neap__recordings_parts(training, part, data);
	const char *folder = is_part ? part : data;
	int events = neap_encode_is_events(folder);

	label_option(label, file, options->classes, data, folder, predicts, predicts && settings);
	if (neap__model_kind(file) == NEAP__OF_NUMBERS && neap_encode_is_table(folder) &&
		check_columns(file, folder) < 0)
		return NEAP_EUSAGE;
	drop_options(drops, file, folder, predicts ? 0 : options->classes);
	if (!settings && events)
		neap__print(option, sizeof option, "%s", neap__event_channels(channels, folder));
	if (is_part)
		neap__print(its, sizeof its, "its part '%s'", strrchr(part, '/') + 1);
	return neap__fail(rc, "'%s' %s. Encode %s first%s: neap encode %s --out FILE.h5%s%s%s",
		data,
		is_part	 ? "is a folder with a part for training"
		: events ? "contains events"
			 : "is a folder",
		is_part ? its : "it", settings ? ", with the settings of the training data" : "",
		neap__quoted(folder), settings ? settings : option, label, drops);
}

/* The command that encodes a file of events; `line`: its reader's message about another file. */
static int advise_events(const struct neap__safetensors *file,
	const struct neap_net_options *options, const char *data, const char *settings,
	int predicts, const char *line)
{
	char label[LABEL] = "";
	struct neap__text classes = {0};

	write_classes(&classes, file, options->classes, data);
	if (!classes.length && !has_events(data, NULL, 0)) {
		neap__text_free(&classes);
		return neap__fail(NEAP_EFORMAT, "%s", line);
	}
	label_option(label, file, options->classes, data, NULL, predicts, predicts);
	int rc = neap__fail(NEAP_EFORMAT,
		"'%s' contains events. Encode it first, with the settings of the training data: "
		"%sneap encode %s --out FILE.h5%s%s%s",
		data, classes.length ? classes.data : "", neap__quoted(data), settings, label,
		classes.length ? " --classes classes.txt" : "");
	neap__text_free(&classes);
	return rc;
}

int neap__model_advise_encoding(const struct neap__safetensors *file,
	const struct neap_net_options *options, const char *data, int predicts, int rc)
{
	char settings[NEAP__ENCODE_OPTIONS], line[NEAP__DETAIL_BYTES];
	int known = neap__model_encode_options(settings, file, options, NULL);
	enum neap__model_kind kind = neap__model_kind(file);

	if (neap__recordings_folder(data)) {
		NEAP_TRY(refuse_folder(file, data));
		return advise_folder(file, options, data, known ? settings : NULL, predicts, rc);
	}
	if (rc != NEAP_EFORMAT)
		return rc;
	neap__print(line, sizeof line, "%s", neap_detail());
	if (kind != NEAP__OF_EVENTS && kind != NEAP__OF_SPIKES && has_events(data, NULL, 0))
		return neap__model_wants(file, "'%s' contains events", data);
	return known ? advise_events(file, options, data, settings, predicts, line)
		     : neap__fail(rc, "%s", line);
}
