/* SPDX-License-Identifier: Apache-2.0 */
/* model.c: parameters, settings and moments as tensors and metadata, and back. */
#include "nn/cellfile/cell_program.h"
#include "nn/net.h"
#include "train/model.h"
#include "nn/bf16_net.h"
#include "nn/core/on_device.h"
#include "data/dataset.h"
#include "train/settings.h"
#include "data/row_reading.h"
#include "data/target_units.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define INPUTS NEAP__MODEL_INPUTS
#define MOMENTS "optimizer." /* prefix of the names of moments */

/* Names a tensor that goes with a parameter. */
struct label {
	char text[160];
};

static struct label label(const char *before, const char *name, const char *after)
{
	struct label l;
	neap__print(l.text, sizeof l.text, "%s%s%s", before, name, after);
	return l;
}

static enum neap__dtype dtype_of(enum neap_precision precision)
{
	return precision == NEAP_DOUBLE ? NEAP__F64 : NEAP__F32;
}

static int shape_of(const struct neap_param *param, uint64_t shape[2])
{
	shape[0] = (uint64_t)(param->column ? param->count : param->rows);
	shape[1] = (uint64_t)param->columns;
	return param->column ? 1 : 2;
}

void neap__model_add(struct neap__tensor_bundle *bundle, const struct neap_net *net)
{
	struct neap_param param;
	uint64_t shape[2], rows;

	for (int i = 0; i < neap_net_params(net); i++) {
		if (neap_net_param(net, i, &param) < 0)
			continue;
		int dims = shape_of(&param, shape);
		neap__tensor_bundle_tensor(
			bundle, param.name, dtype_of(param.precision), dims, shape, param.data);
		if (!param.column)
			continue;
		rows = (uint64_t)param.rows + 1;
		neap__tensor_bundle_tensor(bundle, label("", param.name, ".row_start").text,
			NEAP__U32, 1, &rows, param.row_start);
		neap__tensor_bundle_tensor(bundle, label("", param.name, ".column").text, NEAP__U16,
			1, shape, param.column);
	}
}

/* The names of the first classes of a data set; null where a class has none. */
static void write_classes(struct neap__json *json, const struct neap_dataset *set, int classes)
{
	neap__json_begin(json, NULL, '[');
	for (int i = 0; i < classes; i++)
		neap__json_text(json, NULL, neap_dataset_class_name(set, i));
	neap__json_end(json, ']');
}

/* Adds a list of texts as metadata; nothing if it is empty. */
static void add_texts(
	struct neap__tensor_bundle *bundle, const char *key, char *const *texts, int count)
{
	struct neap__json json = {0};

	if (count == 0)
		return;
	neap__json_begin(&json, NULL, '[');
	for (int i = 0; i < count; i++)
		neap__json_text(&json, NULL, texts[i]);
	neap__json_end(&json, ']');
	neap__tensor_bundle_json(bundle, key, &json);
}

static const char *const target_names[] = {NEAP_TARGET_TABLE(NEAP_CHOICE_NAME)};

void neap__model_describe(struct neap__tensor_bundle *bundle,
	const struct neap_net_options *options, const struct neap_dataset *set, int64_t max_steps)
{
	char text[32];
	struct neap__json net = {0}, classes = {0};

	neap__settings_write_net(&net, options);
	write_classes(&classes, set, options->classes);
	neap__tensor_bundle_meta(bundle, "neap.format", "1");
	neap__tensor_bundle_json(bundle, "neap.net", &net);
	neap__tensor_bundle_json(bundle, "neap.classes", &classes);
	neap__model_encoding_write(bundle, options, set);
	add_texts(bundle, NEAP__MODEL_FEATURES, set->feature_names, set->nfeature_names);
	add_texts(bundle, NEAP__MODEL_SAMPLES, &set->sample_column, set->sample_column != NULL);
	add_texts(bundle, NEAP__MODEL_MISSING, &set->missing, set->missing != NULL);
	neap__print(text, sizeof text, "%" PRId64, max_steps);
	neap__tensor_bundle_meta(bundle, "neap.max_steps", text);
	neap__tensor_bundle_meta(bundle, "neap.target", target_names[set->info.target]);
}

/* A tensor of the file that must have this type and shape. */
static int take(void *into, const struct neap__safetensors *file, const char *name,
	enum neap__dtype dtype, int dims, const uint64_t *shape)
{
	const struct neap__file_tensor *tensor = neap__safetensors_find(file, name);

	if (!tensor)
		return neap__fail(NEAP_EFORMAT,
			"tensor '%s' is missing; the file may belong to another network", name);
	int same = tensor->dtype == dtype && tensor->dims == dims;
	for (int i = 0; same && i < dims; i++)
		same = tensor->shape[i] == shape[i];
	if (!same)
		return neap__fail(NEAP_EFORMAT,
			"tensor '%s' has a type or shape that differs from the network's settings; "
			"the file may belong to another network",
			name);
	memcpy(into, tensor->data, tensor->bytes);
	return 0;
}

/* A sparse parameter must connect the same units. */
static int take_pattern(const struct neap_param *param, const struct neap__safetensors *file)
{
	uint64_t rows = (uint64_t)param->rows + 1, count = (uint64_t)param->count;
	uint32_t *start = malloc((size_t)rows * sizeof *start);
	uint16_t *column = malloc((size_t)count * sizeof *column + 1);
	int rc = start && column ? 0 : neap__fail_errno(ENOMEM, "%s", param->name);

	if (rc == 0)
		rc = take(start, file, label("", param->name, ".row_start").text, NEAP__U32, 1,
			&rows);
	if (rc == 0)
		rc = take(
			column, file, label("", param->name, ".column").text, NEAP__U16, 1, &count);
	if (rc == 0 && (memcmp(start, param->row_start, (size_t)rows * sizeof *start) != 0 ||
			       memcmp(column, param->column, (size_t)count * sizeof *column) != 0))
		rc = neap__fail(NEAP_EFORMAT,
			"the connections of '%s' differ from those of the network's seed; the file "
			"may have been edited",
			param->name);
	free(start);
	free(column);
	return rc;
}

int neap__model_take(struct neap_net *net, const struct neap__safetensors *file)
{
	struct neap_param param;
	uint64_t shape[2];
	int expected = 0, there = 0;

	for (int i = 0; i < neap_net_params(net); i++) {
		NEAP_TRY(neap_net_param(net, i, &param));
		expected += param.column ? 3 : 1;
		if (param.column)
			NEAP_TRY(take_pattern(&param, file));
		int dims = shape_of(&param, shape);
		NEAP_TRY(
			take(param.data, file, param.name, dtype_of(param.precision), dims, shape));
	}
	for (int i = 0; i < file->tensors; i++)
		there += strncmp(file->tensor[i].name, MOMENTS, strlen(MOMENTS)) != 0;
	if (there != expected)
		return neap__fail(NEAP_EFORMAT, "the file has %d tensors, but the network has %d",
			there, expected);
	return 0;
}

void neap__moments_add(struct neap__tensor_bundle *bundle, const struct neap__optimizer *optimizer,
	const struct neap_net *net)
{
	const struct neap__rule *rule = optimizer->rule;
	struct neap_param param;
	char before[64];
	uint64_t shape[2];

	for (int i = 0; i < optimizer->tensors; i++) {
		for (int m = 0; m < NEAP__MOMENTS_MAX && rule->moments[m]; m++) {
			if (neap_net_param(net, i, &param) < 0 || !optimizer->moment[i][m])
				continue;
			neap__print(before, sizeof before, MOMENTS "%s.%s.", rule->name,
				rule->moments[m]);
			int dims = shape_of(&param, shape);
			neap__tensor_bundle_tensor(bundle, label(before, param.name, "").text,
				NEAP__F64, dims, shape, optimizer->moment[i][m]);
		}
	}
}

int neap__moments_take(struct neap__optimizer *optimizer, const struct neap_net *net,
	const struct neap__safetensors *file)
{
	const struct neap__rule *rule = optimizer->rule;
	struct neap_param param;
	char before[64];
	uint64_t shape[2];

	for (int i = 0; i < optimizer->tensors; i++) {
		for (int m = 0; m < NEAP__MOMENTS_MAX && rule->moments[m]; m++) {
			NEAP_TRY(neap_net_param(net, i, &param));
			if (!optimizer->moment[i][m])
				continue;
			neap__print(before, sizeof before, MOMENTS "%s.%s.", rule->name,
				rule->moments[m]);
			int dims = shape_of(&param, shape);
			NEAP_TRY(take(optimizer->moment[i][m], file,
				label(before, param.name, "").text, NEAP__F64, dims, shape));
		}
	}
	return 0;
}

/*
 * Roughly how many weights a specification asks for: a few bytes of text must
 * not make a net of gigabytes that the file's tensors could never fill.
 */
static int check_size(const struct neap_net_options *options, const struct neap__safetensors *file)
{
	double weights, bytes = 0;

	NEAP_TRY(neap__net_weights(&weights, options));
	for (int i = 0; i < file->tensors; i++)
		bytes += (double)file->tensor[i].bytes;
	if (weights / 2 > bytes / sizeof(float) + 65536)
		return neap__fail(NEAP_EFORMAT,
			"its tensors are too small for the network '%.60s'; the file may be "
			"truncated",
			options->spec);
	return 0;
}

/* Tiles where nothing here computes them become chains: only the rounding of sums differs. */
static int create(struct neap_net **net, const struct neap_net_options *options, const char *device)
{
	struct neap_net_options here = *options;

	here.device = device;
	if (here.products == NEAP_TILES && (neap__is_device(device) || !neap__tiles_work()))
		here.products = NEAP_CHAINS;
	return neap_net_create(net, &here);
}

/* The net of a model's settings, without its weights; NEAP_EFORMAT: the settings have no sense. */
static int make_net(struct neap_net **net, struct neap_net_options *options, const json_t *json,
	const struct neap__safetensors *file, int threads, const char *device)
{
	int rc = neap__settings_take_net(options, json);

	if (rc == 0 && neap__cell_program_reads(options->spec))
		rc = neap__fail(NEAP_EFORMAT,
			"its network '%.60s' names a cell file instead of containing its text; the "
			"file was changed after training",
			options->spec);
	if (rc == 0)
		rc = check_size(options, file);
	if (rc == 0) {
		options->threads = threads;
		if (!neap__is_device(device)) /* the processor has no other */
			options->math = NEAP_MATH_EXACT;
		rc = create(net, options, device);
	}
	return rc == NEAP_EUSAGE ? NEAP_EFORMAT : rc; /* nonsense in a file is the file's fault */
}

int neap__model_open(struct neap_net **net, struct neap_net_options *options, int64_t *max_steps,
	const struct neap__safetensors *file, int threads, const char *device, int compile_cells)
{
	const char *text = neap__safetensors_meta(file, "neap.net");
	const char *cut = neap__safetensors_meta(file, "neap.max_steps");
	json_t *json = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;

	if (!json)
		return neap__fail(NEAP_EFORMAT,
			"its metadata does not describe a network. Pass model.safetensors or "
			"last.safetensors of 'neap train', or a NIR graph");
	int rc = make_net(net, options, json, file, threads, device);
	if (rc == 0 && compile_cells && (rc = neap__cells_compile(*net)) < 0) {
		neap_net_free(*net);
		*net = NULL;
	}
	options->spec = options->shape = NULL; /* belonged to json */
	json_decref(json);
	if (rc < 0)
		return rc;
	char *end = NULL;
	*max_steps = cut ? strtoll(cut, &end, 10) : 0;
	rc = *max_steps < 0 || (end && *end)
		     ? neap__fail(NEAP_EFORMAT, "neap.max_steps is '%.30s'", cut)
		     : neap__model_take(*net, file);
	if (rc < 0) {
		neap_net_free(*net);
		*net = NULL;
	}
	return rc;
}

/* Refuses a data set whose classes have other names; NEAP_EUSAGE. */
static int check_classes(const char *text, const struct neap_dataset *set, const char *name, int n)
{
	/* Both as they stand in a file, where a name's bytes that are not UTF-8 differ. */
	struct neap__json written = {0};
	write_classes(&written, set, n);
	json_t *model = text ? json_loads(text, 0, NULL) : NULL;
	json_t *data = written.text.error ? NULL : json_loads(written.text.data, 0, NULL);
	int rc = data ? 0 : neap__fail_errno(ENOMEM, "%s", name);

	for (int i = 0; rc == 0 && i < n; i++) {
		const char *theirs = json_string_value(json_array_get(data, (size_t)i));
		const char *ours = json_string_value(json_array_get(model, (size_t)i));
		if (ours && theirs && strcmp(ours, theirs) != 0)
			rc = neap__fail(NEAP_EUSAGE,
				"class %d of %s is '%.60s', but class %d of the model is '%.60s'. "
				"Encode the data with --classes in the order of the model",
				i, name, theirs, i, ours);
	}
	json_decref(model);
	json_decref(data);
	neap__json_free(&written);
	return rc;
}

/* Numbers the classes as the model does where their names or number differ and all are known. */
static int map_classes(const struct neap__safetensors *file, const struct neap_net_options *options,
	struct neap_dataset *set, const char *otherwise)
{
	const struct neap__class_owner owner = {"the model", otherwise};
	const char *text = neap__safetensors_meta(file, "neap.classes");
	char **names;
	if (set->info.target != NEAP_TARGET_LABEL ||
		(set->info.classes <= options->classes &&
			check_classes(text, set, set->name, set->info.classes) == 0))
		return 0;
	NEAP_TRY(neap__model_class_names(&names, file, options->classes));
	int rc = neap__dataset_map_classes(
		set, (const char *const *)names, options->classes, &owner);
	neap__model_class_names_free(names, options->classes);
	return rc;
}

const char *neap__model_targets_name(enum neap_target target)
{
	static const char *const kinds[NEAP_TARGETS] = {"one class per sample",
		"one class per step", "numbers per sample", "numbers per step"};

	return kinds[target];
}

/* Refuses targets of another kind than the model's. */
static int check_targets(const struct neap__safetensors *file, const struct neap_dataset *set)
{
	enum neap_target is = set->info.target, was = neap__model_target(file);

	if (is == was || !neap__safetensors_meta(file, "neap.target") ||
		!neap__dataset_is_labelled(set))
		return 0;
	return neap__fail(NEAP_EUSAGE,
		"%s has %s as targets, but the model was trained on %s. Pass data with targets of "
		"that kind, or train a new model on this data",
		set->name, neap__model_targets_name(is), neap__model_targets_name(was));
}

int neap__model_channels_fit(const struct neap__safetensors *file,
	const struct neap_net_options *options, struct neap_dataset *set)
{
	struct neap_dataset_info info = {.size = sizeof info};
	char settings[NEAP__ENCODE_OPTIONS];

	neap_dataset_info(set, &info);
	if ((info.values != 0) != (options->values != 0))
		return neap__model_refuse(file, set);
	if (info.values && info.inputs != options->inputs)
		return neap__model_wrong_features(set, file, options->inputs);
	if (info.inputs <= options->inputs)
		return 0;
	if (neap__model_encode_options(settings, file, options, set))
		return neap__fail(NEAP_EUSAGE,
			"%s has %d input channels, but the model has %d. Encode the recordings as "
			"its training data: neap encode ...%s",
			info.name, info.inputs, options->inputs, settings);
	return neap__fail(NEAP_EUSAGE,
		"%s has %d input channels, but the model has %d. Encode the data with the same "
		"settings as the training data, or train a new model with --channels %d",
		info.name, info.inputs, options->inputs, info.inputs);
}

int neap__model_fits(const struct neap__safetensors *file, const struct neap_net_options *options,
	struct neap_dataset *set, const char *otherwise)
{
	struct neap_dataset_info info = {.size = sizeof info};

	neap_dataset_info(set, &info);
	if ((info.values != 0) != (options->values != 0))
		return neap__model_refuse(file, set);
	NEAP_TRY(neap__model_kind_fits(file, set));
	NEAP_TRY(check_targets(file, set));
	NEAP_TRY(map_classes(file, options, set, otherwise));
	NEAP_TRY(neap__model_channels_fit(file, options, set));
	neap_dataset_info(set, &info);
	int numbers = neap__has_number_targets(set);
	if (info.classes > options->classes || (numbers && info.classes != options->classes))
		return neap__fail(NEAP_EUSAGE,
			"%s has %d %s, but the model has %d. Pass data with the targets that the "
			"model was trained on, or train a new model",
			info.name, info.classes,
			numbers ? info.classes == 1 ? "output" : "outputs" : "classes",
			options->classes);
	return check_classes(
		neap__safetensors_meta(file, "neap.classes"), set, info.name, info.classes);
}

uint64_t neap__weights_hash(const struct neap_net *net)
{
	struct neap_param param;
	uint64_t hash = 0;

	for (int i = 0; i < neap_net_params(net); i++) {
		if (neap_net_param(net, i, &param) < 0)
			continue;
		size_t width = param.precision == NEAP_DOUBLE ? sizeof(double) : sizeof(float);
		hash = XXH3_64bits_withSeed(param.data, (size_t)param.count * width, hash);
	}
	return hash;
}
