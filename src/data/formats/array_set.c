/* SPDX-License-Identifier: Apache-2.0 */
/*
 * array_set.c: data sets of arrays, as numpy and h5py write them:
 *     x          (samples, steps, features), or (samples, steps) of one feature: the inputs
 *     lengths    (samples) steps of each sample, where they are not all of them; or
 *     mask       (samples, steps) 1 in the steps of a sample, 0 behind its end
 *     y          (samples) integers or texts: a class a sample
 *                (samples, steps) integers: a class a step, below 0 where a step is masked
 *                (samples) or (samples, d) reals: numbers a sample
 *                (samples, steps, d) reals: numbers a step, NaN where a step is masked
 *     classes    (classes) texts: names of the classes, which y counts from 0
 *     features   (features) texts: names of the features, by which `predict` reads tables of text
 *     outputs    (d) texts: names of the numbers of y
 *     sample_column  one text: the column of a table that names the sample of a row, for `predict`
 *     missing    one text: the --missing of `encode` by which values of x were filled in, or rows
 *                left out
 * Where y is of steps, a mask may have gaps: a step of mask 0 in front of the end is masked.
 */
#include "data/formats/array_advice.h"
#include "data/bins.h"
#include "data/step_rows.h"
#include "data/target_units.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/print.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CLASSES = 65535, MOST_FEATURES = 65536, PIECE = 4096 };

struct array_set {
	struct neap_dataset set;
	struct neap__array_file *file;
	struct neap__array x, y, mask;
	int64_t *length; /* [samples]; NULL: all have all steps */
	int64_t gap[2];	 /* sample and step of the first gap of the mask; -1: none */
	double *row;	 /* [row_room] numbers of y or mask, while they are read */
	int64_t row_room;
};

static int read_numbers(
	struct array_set *s, const struct neap__array *array, int64_t at, int64_t count, double *to)
{
	return s->file->ops->read(s->file, array, at, count, to);
}

static int64_t steps(const struct array_set *s)
{
	return s->x.size[1];
}

static int wrong(const struct array_set *s, const struct neap__array *array, const char *must)
{
	return neap__array_wrong(s->file->path, array, must);
}

static int find(struct array_set *s, const char *name, struct neap__array *array)
{
	array->name = name;
	return s->file->ops->find(s->file, name, array);
}

static int64_t set_length(const struct neap_dataset *set, int64_t index)
{
	const struct array_set *s = (const struct array_set *)set;
	return s->length ? s->length[index] : steps(s);
}

static int set_values(
	struct neap_dataset *set, int64_t index, int64_t from, int64_t to, double *values)
{
	struct array_set *s = (struct array_set *)set;
	int64_t inputs = neap__features(set);
	return read_numbers(
		s, &s->x, (index * steps(s) + from) * inputs, (to - from) * inputs, values);
}

/* Where labels of steps go, and which are accepted. */
struct label_taker {
	const struct array_set *s;
	int64_t index, first;
	int32_t *labels;
	int most;
};

static int take_label(const struct label_taker *t, int64_t step, double number)
{
	if (!(number <= t->most && number >= INT32_MIN && number == floor(number)))
		return neap__fail(NEAP_EFORMAT,
			"'%s': 'y' of sample %lld, step %lld is %g; classes are 0 to %d, and "
			"numbers below 0 mask a step. Correct it, or add names to 'classes'",
			t->s->file->path, (long long)t->index, (long long)step, number, t->most);
	t->labels[step - t->first] = number < 0 ? -1 : (int32_t)number;
	return 0;
}

/* Sets the masked steps of [from, to) as targets have them. */
static int apply_mask(struct array_set *s, int64_t index, int64_t from, int64_t to, int32_t *labels,
	float *series)
{
	if (!s->mask.there)
		return 0;
	for (int64_t t = from, n; t < to; t += n) {
		n = to - t < PIECE ? to - t : PIECE;
		NEAP_TRY(read_numbers(s, &s->mask, index * steps(s) + t, n, s->row));
		for (int64_t k = 0; k < n; k++)
			if (s->row[k] == 0) {
				if (s->set.info.target == NEAP_TARGET_LABELS)
					labels[t - from + k] = -1;
				else
					series[(t - from + k) * s->set.info.classes] = NAN;
			}
	}
	return 0;
}

static int set_targets(struct neap_dataset *set, int64_t index, int64_t from, int64_t to,
	int32_t *labels, float *series)
{
	struct array_set *s = (struct array_set *)set;
	const struct label_taker taker = {s, index, from, labels, set->info.classes - 1};
	int64_t width = set->info.target == NEAP_TARGET_LABELS ? 1 : set->info.classes;
	int64_t most = s->row_room / width;

	for (int64_t t = from, n; t < to; t += n) {
		n = to - t < most ? to - t : most;
		NEAP_TRY(read_numbers(s, &s->y, (index * steps(s) + t) * width, n * width, s->row));
		for (int64_t k = 0; k < n * width; k++)
			if (set->info.target == NEAP_TARGET_LABELS)
				NEAP_TRY(take_label(&taker, t + k, s->row[k]));
			else
				series[(t - from) * width + k] =
					(float)neap__target_value(set, k % width, s->row[k]);
	}
	return apply_mask(s, index, from, to, labels, series);
}

static int set_read(struct neap_dataset *set, int64_t index, struct neap__event_buffer *buffer)
{
	(void)index, (void)buffer;
	return neap__fail(NEAP_EUSAGE,
		"'%s' contains numbers, not spikes. Pass --encode to convert them", set->name);
}

static void release(struct array_set *s)
{
	if (s->file)
		s->file->ops->close(s->file);
	free(s->length);
	free(s->row);
}

static void set_close(struct neap_dataset *set)
{
	release((struct array_set *)set);
}

static int read_sample_numbers(struct array_set *s);

static int set_numbers(struct neap_dataset *set)
{
	return read_sample_numbers((struct array_set *)set);
}

static const struct neap__dataset_ops ops = {.read = set_read,
	.close = set_close,
	.numbers = set_numbers,
	.length = set_length,
	.values = set_values,
	.targets = set_targets};

static int read_x(struct array_set *s)
{
	struct neap_dataset_info *info = &s->set.info;
	const char *must = "numbers of shape (samples, steps, features) or (samples, steps), with "
			   "none of them 0; docs/data.md has an example";

	NEAP_TRY(find(s, "x", &s->x));
	if (!s->x.there)
		return neap__fail(
			NEAP_EFORMAT, "'%s' has no array 'x'. Save the inputs as x", s->file->path);
	if (s->x.kind == NEAP__ARRAY_TEXTS || s->x.dims < 2)
		return wrong(s, &s->x, must);
	if (s->x.dims == 2)
		s->x.size[2] = 1;
	for (int i = 0; i < 3; i++)
		if (s->x.size[i] < 1)
			return wrong(s, &s->x, must);
	if (s->x.size[2] > MOST_FEATURES)
		return wrong(s, &s->x, "of at most 65536 features. Select some");
	if (s->x.size[1] > NEAP__MOST_STEPS)
		return wrong(s, &s->x, "of at most 400000000 steps. Split the samples");
	info->samples = s->x.size[0];
	info->inputs = (int)s->x.size[2];
	info->values = 1;
	return 0;
}

static int read_lengths(struct array_set *s, const struct neap__array *lengths)
{
	int64_t samples = s->set.info.samples;
	double piece[256];

	if (lengths->dims != 1 || lengths->size[0] != samples || lengths->kind == NEAP__ARRAY_TEXTS)
		return wrong(s, lengths, "integers of shape (samples), the steps of each");
	for (int64_t i = 0, n; i < samples; i += n) {
		n = samples - i < 256 ? samples - i : 256;
		NEAP_TRY(read_numbers(s, lengths, i, n, piece));
		for (int64_t k = 0; k < n; k++) {
			if (!(piece[k] >= 1 && piece[k] <= (double)steps(s) &&
				    piece[k] == floor(piece[k])))
				return neap__fail(NEAP_EFORMAT,
					"'%s': 'lengths'[%lld] is %g; it must be a whole number of "
					"steps from 1 to %lld, the steps of 'x'. Correct it",
					s->file->path, (long long)(i + k), piece[k],
					(long long)steps(s));
			s->length[i + k] = (int64_t)piece[k];
		}
	}
	return 0;
}

/* A sample ends behind its last step of mask 1; a step of mask 0 before it is a gap. */
static int read_mask(struct array_set *s)
{
	int64_t samples = s->set.info.samples;

	if (s->mask.dims != 2 || s->mask.size[0] != samples || s->mask.size[1] != steps(s) ||
		s->mask.kind == NEAP__ARRAY_TEXTS)
		return wrong(s, &s->mask, "numbers of shape (samples, steps), like x");
	for (int64_t i = 0; i < samples; i++) {
		int64_t first_zero = -1, zero_in_front = -1;
		s->length[i] = 0;
		for (int64_t t = 0, n; t < steps(s); t += n) {
			n = steps(s) - t < PIECE ? steps(s) - t : PIECE;
			NEAP_TRY(read_numbers(s, &s->mask, i * steps(s) + t, n, s->row));
			for (int64_t k = 0; k < n; k++) {
				if (s->row[k] != 0) {
					s->length[i] = t + k + 1;
					zero_in_front = first_zero;
				} else if (first_zero < 0) {
					first_zero = t + k;
				}
			}
		}
		if (s->length[i] == 0)
			return neap__fail(NEAP_EFORMAT,
				"'%s': 'mask' of sample %lld is 0 in all steps. Remove the sample, "
				"or set at least one step to 1",
				s->file->path, (long long)i);
		if (zero_in_front >= 0 && s->gap[0] < 0) {
			s->gap[0] = i;
			s->gap[1] = zero_in_front;
		}
	}
	return 0;
}

static int read_extents(struct array_set *s)
{
	struct neap__array lengths = {0};
	int64_t samples = s->set.info.samples;

	NEAP_TRY(find(s, "lengths", &lengths));
	NEAP_TRY(find(s, "mask", &s->mask));
	if (lengths.there && s->mask.there)
		return neap__fail(NEAP_EFORMAT,
			"'%s' has both 'lengths' and 'mask'. Save only one of them", s->file->path);
	s->set.info.steps = steps(s);
	if (!lengths.there && !s->mask.there)
		return 0;
	s->length = calloc((size_t)samples, sizeof *s->length);
	if (!s->length)
		return neap__fail_errno(ENOMEM, "'%s'", s->file->path);
	NEAP_TRY(lengths.there ? read_lengths(s, &lengths) : read_mask(s));
	s->set.info.steps = 0;
	for (int64_t i = 0; i < samples; i++)
		if (s->length[i] > s->set.info.steps)
			s->set.info.steps = s->length[i];
	return 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Classes that are texts are numbered in the order of their names. */
static int read_texts(struct array_set *s)
{
	struct neap_dataset *set = &s->set;
	char **texts = NULL, **names;
	int count = 0, n = 0;

	if (set->info.samples > INT32_MAX)
		return wrong(s, &s->y, "integers, as there are so many samples");
	NEAP_TRY(s->file->ops->texts(s->file, &s->y, (int)set->info.samples, &texts, &count));
	names = calloc((size_t)count + 1, sizeof *names);
	set->label = calloc((size_t)count + 1, sizeof *set->label);
	int rc = names && set->label ? 0 : neap__fail_errno(ENOMEM, "'%s'", s->file->path);
	if (rc == 0) {
		memcpy(names, texts, (size_t)count * sizeof *names);
		qsort(names, (size_t)count, sizeof *names, by_text);
		for (int i = 0; i < count; i++)
			if (i == 0 || strcmp(names[i], names[n - 1]) != 0)
				names[n++] = names[i];
		if (n > MOST_CLASSES)
			rc = wrong(s, &s->y, "at most 65535 different names");
	}
	set->class_names = rc == 0 ? calloc((size_t)n + 1, sizeof *names) : NULL;
	if (rc == 0 && !set->class_names)
		rc = neap__fail_errno(ENOMEM, "'%s'", s->file->path);
	for (int i = 0; rc == 0 && i < count; i++) {
		char **at = bsearch(&texts[i], names, (size_t)n, sizeof *names, by_text);
		set->label[i] = (int32_t)(at - names);
	}
	for (int i = 0; rc == 0 && i < n; i++, set->nclass_names = i)
		if (!(set->class_names[i] = strdup(names[i])))
			rc = neap__fail_errno(ENOMEM, "'%s'", s->file->path);
	free(names);
	neap__names_free(texts, count);
	set->info.classes = n;
	return rc;
}

/* Names of classes, where the file has some: they say how many classes there are. */
static int read_names(struct array_set *s)
{
	struct neap__array names = {0};

	NEAP_TRY(find(s, "classes", &names));
	if (!names.there)
		return 0;
	if (names.kind != NEAP__ARRAY_TEXTS || names.dims != 1)
		return wrong(
			s, &names, "texts of shape (classes), such as numpy.array(['a', 'b'])");
	if (names.size[0] == 0)
		return 0;
	return s->file->ops->texts(
		s->file, &names, MOST_CLASSES, &s->set.class_names, &s->set.nclass_names);
}

/* `wanted` names, if an array of this name has them; what else is called so is none of the set. */
static int read_texts_of(
	struct array_set *s, const char *array, int wanted, char ***texts, int *count)
{
	struct neap__array names = {0};

	if (find(s, array, &names) < 0 || !names.there || names.kind != NEAP__ARRAY_TEXTS ||
		names.dims != 1 || names.size[0] != wanted)
		return 0;
	return s->file->ops->texts(s->file, &names, MOST_FEATURES, texts, count);
}

static int read_text_of(struct array_set *s, const char *array, char **text)
{
	char **texts = NULL;
	int count = 0, rc = read_texts_of(s, array, 1, &texts, &count);

	if (rc == 0 && count == 1) {
		*text = texts[0];
		texts[0] = NULL;
	}
	neap__names_free(texts, count);
	return rc;
}

/* Targets that are numbers have no classes, so the names of outputs are stored as names of classes.
 */
static int read_outputs(struct array_set *s)
{
	struct neap_dataset *set = &s->set;

	neap__names_free(set->class_names, set->nclass_names);
	set->class_names = NULL;
	set->nclass_names = 0;
	return read_texts_of(
		s, "outputs", set->info.classes, &set->class_names, &set->nclass_names);
}

static int class_limit(const struct array_set *s)
{
	return (s->set.nclass_names ? s->set.nclass_names : MOST_CLASSES) - 1;
}

static int read_sample_labels(struct array_set *s)
{
	struct neap_dataset *set = &s->set;
	int64_t samples = set->info.samples;
	int most = -1;

	set->label = calloc((size_t)samples, sizeof *set->label);
	if (!set->label)
		return neap__fail_errno(ENOMEM, "'%s'", s->file->path);
	for (int64_t i = 0, n; i < samples; i += n) {
		n = samples - i < PIECE ? samples - i : PIECE;
		NEAP_TRY(read_numbers(s, &s->y, i, n, s->row));
		for (int64_t k = 0; k < n; k++) {
			if (!(s->row[k] >= 0 && s->row[k] <= class_limit(s)))
				return neap__fail(NEAP_EFORMAT,
					"'%s': 'y'[%lld] is %g; classes are whole numbers from 0 "
					"to "
					"%d. Number them so: y = numpy.unique(y, "
					"return_inverse=True)[1]; quantities are saved as reals: "
					"y.astype(float)",
					s->file->path, (long long)(i + k), s->row[k],
					class_limit(s));
			set->label[i + k] = (int32_t)s->row[k];
			most = set->label[i + k] > most ? set->label[i + k] : most;
		}
	}
	set->info.classes = set->nclass_names ? set->nclass_names : most + 1;
	return 0;
}

/* Finds how many classes there are in the steps, where no names say so. */
static int read_step_labels(struct array_set *s)
{
	struct neap_dataset *set = &s->set;
	int32_t labels[PIECE], most = -1;
	const struct neap__array mask = s->mask;
	int rc = 0;

	set->info.target = NEAP_TARGET_LABELS;
	set->info.classes = class_limit(s) + 1;
	s->mask.there = 0;
	for (int64_t i = 0; rc == 0 && i < set->info.samples; i++) {
		int64_t length = set_length(set, i);
		for (int64_t t = 0, n; rc == 0 && t < length; t += n) {
			n = length - t < PIECE ? length - t : PIECE;
			rc = set_targets(set, i, t, t + n, labels, NULL);
			for (int64_t k = 0; rc == 0 && k < n; k++)
				most = labels[k] > most ? labels[k] : most;
		}
	}
	s->mask = mask;
	if (!set->nclass_names)
		set->info.classes = most + 1;
	return rc;
}

static int read_sample_numbers(struct array_set *s)
{
	struct neap_dataset *set = &s->set;
	int64_t width = set->info.classes, samples = set->info.samples;
	uint64_t bytes = neap__sat_mul(neap__sat_mul((uint64_t)samples, (uint64_t)width), 4);
	int64_t most = s->row_room / width;

	if (!set->numbers)
		set->numbers = bytes <= PTRDIFF_MAX ? malloc(bytes) : NULL;
	if (!set->numbers)
		return neap__fail_errno(ENOMEM, "'%s'", s->file->path);
	if (s->y.dims > 1)
		most = 1;
	for (int64_t i = 0, n; i < samples; i += n) {
		n = samples - i < most ? samples - i : most;
		NEAP_TRY(read_numbers(s, &s->y, i * width, n * width, s->row));
		for (int64_t k = 0; k < n * width; k++) {
			if (!isfinite(s->row[k]))
				return neap__fail(NEAP_EFORMAT,
					"'%s': 'y' of sample %lld is %g, but must be a finite "
					"number. Correct or remove the sample",
					s->file->path, (long long)(i + k / width), s->row[k]);
			set->numbers[i * width + k] =
				(float)neap__target_value(set, k % width, s->row[k]);
		}
	}
	return 0;
}

static int read_y(struct array_set *s)
{
	struct neap_dataset_info *info = &s->set.info;
	const struct neap__array *y = &s->y;

	NEAP_TRY(read_names(s));
	info->classes = s->set.nclass_names;
	if (!y->there)
		return 0;
	if (y->dims > 0 && y->size[0] != info->samples)
		return neap__array_wrong_count(s->file->path, &s->x, y);
	if (y->dims < 1)
		return neap__array_wrong_y(s->file->path, y, steps(s));
	if (y->kind == NEAP__ARRAY_TEXTS)
		return y->dims == 1 && !s->set.nclass_names
			       ? read_texts(s)
			       : neap__array_wrong_y(s->file->path, y, steps(s));
	if (y->kind == NEAP__ARRAY_INTEGERS) {
		if (y->dims == 1)
			return read_sample_labels(s);
		return y->dims == 2 && y->size[1] == steps(s)
			       ? read_step_labels(s)
			       : neap__array_wrong_y(s->file->path, y, steps(s));
	}
	int64_t width = y->dims == 1 ? 1 : y->size[y->dims - 1];
	if (width < 1 || width > MOST_CLASSES || (y->dims == 3 && y->size[1] != steps(s)))
		return neap__array_wrong_y(s->file->path, y, steps(s));
	info->classes = (int)width;
	info->target = y->dims == 3 ? NEAP_TARGET_SERIES : NEAP_TARGET_NUMBERS;
	NEAP_TRY(read_outputs(s));
	return y->dims == 3 ? 0 : read_sample_numbers(s);
}

static int read_all(struct array_set *s)
{
	NEAP_TRY(read_x(s));
	NEAP_TRY(find(s, "y", &s->y));
	s->row_room = PIECE;
	if (s->y.there && s->y.size[s->y.dims - 1] <= MOST_CLASSES && s->y.dims > 1 &&
		s->y.size[s->y.dims - 1] > PIECE)
		s->row_room = s->y.size[s->y.dims - 1];
	s->row = malloc((size_t)s->row_room * sizeof *s->row);
	if (!s->row)
		return neap__fail_errno(ENOMEM, "'%s'", s->file->path);
	s->gap[0] = s->gap[1] = -1;
	NEAP_TRY(read_extents(s));
	NEAP_TRY(read_y(s));
	NEAP_TRY(read_texts_of(
		s, "features", s->set.info.inputs, &s->set.feature_names, &s->set.nfeature_names));
	NEAP_TRY(read_text_of(s, "sample_column", &s->set.sample_column));
	NEAP_TRY(read_text_of(s, "missing", &s->set.missing));
	memcpy(s->set.slow, s->file->slow, sizeof s->set.slow);
	s->set.read_bytes = s->file->read_bytes + (size_t)s->row_room * sizeof *s->row;
	if (s->gap[0] < 0 || neap__has_step_targets(&s->set))
		return 0;
	return neap__fail(NEAP_EFORMAT,
		"'%s': 'mask' of sample %lld is 0 at step %lld and 1 after it, which needs a 'y' "
		"with a target per step. Set the mask to 1 up to the end of the sample",
		s->file->path, (long long)s->gap[0], (long long)s->gap[1]);
}

int neap__array_set_open(struct neap_dataset **out, struct neap__array_file *file)
{
	struct array_set *s = calloc(1, sizeof *s);

	if (!s) {
		file->ops->close(file);
		return neap__fail_errno(ENOMEM, "data set");
	}
	s->file = file;
	s->set.ops = &ops;
	int rc = read_all(s);
	if (rc < 0) {
		release(s);
		neap__names_free(s->set.class_names, s->set.nclass_names);
		neap__names_free(s->set.feature_names, s->set.nfeature_names);
		free(s->set.sample_column);
		free(s->set.missing);
		free(s->set.label);
		free(s->set.numbers);
		free(s);
		return rc;
	}
	*out = &s->set;
	return 0;
}
