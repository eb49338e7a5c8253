/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model_rows.c: how the rows of a model's data are read, kept as metadata of its file: the next
 * step as target, means and deviations of features and of targets, the coding of spikes; and taken
 * from there.
 */
#include "train/model.h"
#include "data/coded_rows.h"
#include "data/dataset.h"
#include "data/row_reading.h"
#include "data/target_units.h"
#include "base/fail.h"
#include "base/print.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define INPUTS NEAP__MODEL_INPUTS

static void add_numbers(struct neap__json *json, const char *key, const double *x, int count)
{
	neap__json_begin(json, key, '[');
	for (int i = 0; i < count; i++) {
		char text[40];
		neap__json_exact(text, x[i]);
		neap__json_text(json, NULL, text);
	}
	neap__json_end(json, ']');
}

void neap__model_rows_write(struct neap__tensor_bundle *bundle, const struct neap_dataset *set)
{
	struct neap__json json = {0};

	if (!set->ops->values)
		return;
	int features = neap__features(set);
	neap__json_begin(&json, NULL, '{');
	neap__json_int(&json, "next", set->next);
	if (set->shift) {
		add_numbers(&json, "shift", set->shift, features);
		add_numbers(&json, "scale", set->scale, features);
	}
	if (set->coded) {
		char text[NEAP__CODING_TEXT];
		int64_t most;
		const struct neap__coding coding = neap__rows_coding(set, &most);
		neap__json_int(&json, "features", features);
		neap__json_text(&json, "coding", neap__coding_text(text, &coding));
	}
	if (set->target_mean) {
		add_numbers(&json, "target_mean", set->target_mean, set->info.classes);
		add_numbers(&json, "target_deviation", set->target_deviation, set->info.classes);
	}
	neap__json_end(&json, '}');
	neap__tensor_bundle_json(bundle, INPUTS, &json);
}

/* Numbers of a list of texts, as many as there have to be; NULL where it is none. */
static double *numbers_of(const json_t *list, size_t count)
{
	double *x = json_array_size(list) == count ? malloc(count * sizeof *x) : NULL;

	for (size_t i = 0; x && i < count; i++) {
		const char *text = json_string_value(json_array_get(list, i));
		if (!text || neap__json_read_number(&x[i], text) < 0 || !isfinite(x[i])) {
			free(x);
			return NULL;
		}
	}
	return x;
}

int neap__model_wrong_features(
	const struct neap_dataset *set, const struct neap__safetensors *file, int expected)
{
	char **names = NULL, advice[NEAP__FEATURES_TEXT];
	int count = 0, has = neap__features(set);

	if (neap__model_texts(&names, &count, file, NEAP__MODEL_FEATURES) < 0) {
		names = NULL;
		count = 0;
	}
	neap__features_advice(
		advice, set, (const char *const *)names, count == expected ? count : 0);
	neap__model_class_names_free(names, count);
	return neap__fail(NEAP_EUSAGE, "'%s' has %d feature%s, but the model was trained on %d. %s",
		set->name, has, has == 1 ? "" : "s", expected, advice);
}

/* 1, 0 where the object has none, or a negative code. */
static int take_scale(
	struct neap_dataset *set, const struct neap__safetensors *file, const json_t *json)
{
	const json_t *shift = json_object_get(json, "shift");
	size_t inputs = (size_t)neap__features(set);

	if (!shift)
		return 0;
	if (json_array_size(shift) != inputs)
		return neap__model_wrong_features(set, file, (int)json_array_size(shift));
	int rc = neap__rows_scale(
		set, numbers_of(shift, inputs), numbers_of(json_object_get(json, "scale"), inputs));
	return rc < 0 ? rc : 1;
}

int neap__model_rows_scale(struct neap_dataset *set, const struct neap__safetensors *file)
{
	const char *text = neap__safetensors_meta(file, INPUTS);
	json_t *json = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
	int rc = json && set->ops->values ? take_scale(set, file, json) : 0;

	json_decref(json);
	return rc;
}

int neap__model_coding(struct neap__coding *coding, const char *text)
{
	json_t *json = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
	int rc = neap__coding_parse(coding, json_string_value(json_object_get(json, "coding")));

	/* The metadata's fault, not an option's. */
	if (rc == NEAP_EUSAGE)
		rc = neap__fail(NEAP_EFORMAT,
			"its metadata " INPUTS " specifies an unknown coding. Read it with the "
			"version of neap that wrote it");
	json_decref(json);
	return rc;
}

int neap__model_targets(
	double **mean, double **deviation, const struct neap__safetensors *file, int outputs)
{
	const char *text = neap__safetensors_meta(file, INPUTS);
	json_t *json = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
	const json_t *means = json_object_get(json, "target_mean");
	int rc = means != NULL;

	*mean = *deviation = NULL;
	if (rc) {
		*mean = numbers_of(means, (size_t)outputs);
		*deviation = numbers_of(json_object_get(json, "target_deviation"), (size_t)outputs);
	}
	for (int i = 0; *deviation && i < outputs && rc == 1; i++)
		rc = (*deviation)[i] > 0 ? 1 : NEAP_EFORMAT;
	if (rc && (rc < 0 || !*mean || !*deviation)) {
		rc = neap__fail(NEAP_EFORMAT,
			"the means and deviations of the %d outputs in its metadata are damaged. "
			"Restore the file, or train a new model",
			outputs);
		free(*mean);
		free(*deviation);
		*mean = *deviation = NULL;
	}
	json_decref(json);
	return rc;
}

int neap__model_targets_scale(struct neap_dataset *set, const struct neap__safetensors *file)
{
	double *mean, *deviation;

	if (!neap__has_number_targets(set))
		return 0;
	int rc = neap__model_targets(&mean, &deviation, file, set->info.classes);
	if (rc <= 0)
		return rc;
	rc = neap__target_units_take(set, mean, deviation);
	return rc < 0 ? rc : 1;
}

/* Numbers characters as the classes of the model. */
static int adopt_classes(struct neap_dataset *set, const struct neap__safetensors *file)
{
	const char *text = neap__safetensors_meta(file, "neap.classes");
	json_t *list = text ? json_loads(text, 0, NULL) : NULL;
	size_t count = json_array_size(list);
	const char **names = calloc(count + 1, sizeof *names);
	int rc = names ? 0 : neap__fail_errno(ENOMEM, "names of classes");

	for (size_t i = 0; names && i < count; i++)
		names[i] = json_string_value(json_array_get(list, i));
	if (rc == 0 && count > 0 && count <= UINT16_MAX)
		rc = set->ops->adopt(set, names, (int)count);
	free(names);
	json_decref(list);
	return rc;
}

int neap__model_adopt_text(struct neap_dataset *set, const struct neap__safetensors *file)
{
	int is_text = neap__model_kind(file) == NEAP__OF_TEXT;
	return set->ops->adopt && is_text ? adopt_classes(set, file) : 0;
}

/* Reads the set as the object says: its targets, its normalisation, its coding. */
static int take_reading(struct neap_dataset *set, const struct neap__safetensors *file,
	const json_t *json, const char *text, int64_t max_steps)
{
	struct neap__coding coding;
	int64_t features = json_integer_value(json_object_get(json, "features"));

	NEAP_TRY(neap__model_coding(&coding, text));
	if (!set->ops->values)
		return coding.kind ? neap__model_refuse(file, set) : 0;
	if (json_integer_value(json_object_get(json, "next")) == 1)
		NEAP_TRY(neap__rows_next(set));
	NEAP_TRY(take_scale(set, file, json));
	if (coding.kind && features != set->info.inputs)
		return neap__model_wrong_features(set, file, (int)features);
	return neap__rows_encode(set, &coding, max_steps);
}

int neap__model_rows_take(
	struct neap_dataset *set, const struct neap__safetensors *file, int64_t max_steps)
{
	NEAP_TRY(neap__model_kind_fits(file, set));
	if (set->ops->adopt)
		return adopt_classes(set, file);
	const char *text = neap__safetensors_meta(file, INPUTS);
	json_t *json = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
	int rc = 0;

	if (text && !json_is_object(json))
		rc = neap__fail(NEAP_EFORMAT, "its metadata " INPUTS " is damaged");
	if (rc == 0 && json)
		rc = take_reading(set, file, json, text, max_steps);
	json_decref(json);
	return rc < 0 ? rc : 0;
}

int neap__model_match_features(
	char line[NEAP__TAKEN_TEXT], struct neap_dataset *set, const struct neap__safetensors *file)
{
	char **names;
	int count;

	NEAP_TRY(neap__model_texts(&names, &count, file, NEAP__MODEL_FEATURES));
	int rc = neap__rows_match(
		line, set, (const char *const *)names, count, "the model was trained on");
	neap__model_class_names_free(names, count);
	return rc;
}

/* What --missing of the training data did to a table. */
static void show_filled(
	char *room, size_t size, const struct neap_dataset *set, const char *missing)
{
	long long left = (long long)set->left_out;
	if (!set->filled) {
		neap__print(room, size,
			"%lld row%s with missing values %s left out by --missing %.20s, as in the "
			"training data",
			left, left == 1 ? "" : "s", left == 1 ? "was" : "were", missing);
		return;
	}
	int n = neap__print(room, size,
		"%lld missing value%s filled in by --missing %.20s, as in the training data",
		(long long)set->filled, set->filled == 1 ? " was" : "s were", missing);

	if (set->left_out && n > 0 && (size_t)n < size)
		neap__print(room + n, size - (size_t)n, ", and %lld row%s left out", left,
			left == 1 ? " was" : "s were");
}

int neap__model_open_table(struct neap_dataset **set, const struct neap__safetensors *file,
	const char *name, int classes, int judges, char line[NEAP__TAKEN_TEXT])
{
	char *target = NULL, **features, **samples = NULL, **missing = NULL;
	char ignored[NEAP__TAKEN_TEXT], filled[200] = "";
	int count, nsamples = 0, nmissing = 0;

	line[0] = '\0';
	NEAP_TRY(neap__model_texts(&features, &count, file, NEAP__MODEL_FEATURES));
	int rc = neap__model_texts(&samples, &nsamples, file, NEAP__MODEL_SAMPLES);
	if (rc == 0)
		rc = neap__model_texts(&missing, &nmissing, file, NEAP__MODEL_MISSING);
	if (rc == 0)
		target = neap__model_table_target(file, classes, name, features, count);
	const struct neap__table_choice choice = {.names = (const char *const *)features,
		.count = count,
		.sample = nsamples ? samples[0] : NULL,
		.target = target,
		.judges = judges,
		.missing = nmissing ? missing[0] : NULL};
	if (rc == 0)
		rc = neap__dataset_open_table(set, name, &choice, ignored);
	free(target);
	if (rc == 0 && ((*set)->filled || (*set)->left_out))
		show_filled(filled, sizeof filled, *set, missing[0]);
	if (rc == 0 && nsamples && (*set)->info.samples == 1 && (*set)->info.steps > 1 &&
		!(*set)->sample_names)
		neap__print(line, NEAP__TAKEN_TEXT,
			"'%.200s' has no column '%.60s', which names the samples in the training "
			"data, so its %lld rows are one sample. If they are several samples, add "
			"the column",
			name, samples[0], (long long)(*set)->info.steps);
	neap__model_class_names_free(features, count);
	neap__model_class_names_free(samples, nsamples);
	neap__model_class_names_free(missing, nmissing);
	if (rc == 0 && ignored[0])
		neap__print(line, NEAP__TAKEN_TEXT,
			"'%.100s': %s%signored columns, which are not features of the model: %s",
			name, filled, filled[0] ? "; " : "", ignored);
	else if (rc == 0 && filled[0])
		neap__print(line, NEAP__TAKEN_TEXT, "'%.100s': %s", name, filled);
	return rc;
}
