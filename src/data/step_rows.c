/* SPDX-License-Identifier: Apache-2.0 */
/* step_rows.c: reading rows in pieces, as numbers of a batch, and their moments (step_rows.h). */
#include "data/step_rows.h"
#include "base/fail.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int64_t neap__steps_of(const struct neap_dataset *set, int64_t index, int64_t most)
{
	int64_t rows = set->ops->length(set, index) - set->next;
	int64_t steps = set->coded ? rows * set->repeat : rows;
	return most > 0 && steps > most ? most : steps;
}

size_t neap__step_bytes(const struct neap_dataset *set)
{
	const struct neap_dataset_info *info = &set->info;
	size_t bytes = info->values ? (size_t)info->inputs * sizeof(float) : 0;

	if (info->target == NEAP_TARGET_LABELS)
		bytes += sizeof(int32_t);
	if (info->target == NEAP_TARGET_SERIES)
		bytes += (size_t)info->classes * sizeof(float);
	return bytes;
}

/* Rows that are read at a time: room for them is made once. 0 or -ENOMEM. */
static int piece_rows(struct neap_dataset *set, int64_t *rows)
{
	size_t inputs = (size_t)neap__features(set);
	size_t most = NEAP__PIECE_NUMBERS > inputs ? NEAP__PIECE_NUMBERS : inputs;

	if (!set->piece)
		set->piece = malloc(most * sizeof *set->piece);
	*rows = (int64_t)(most / inputs);
	return set->piece ? 0 : neap__fail_errno(ENOMEM, "'%s'", set->name);
}

/* Rows [from, to) with the features in the order of the set. */
static int read_ordered(
	struct neap_dataset *set, int64_t index, int64_t from, int64_t to, double *numbers)
{
	size_t features = (size_t)neap__features(set);

	NEAP_TRY(set->ops->values(set, index, from, to, numbers));
	for (int64_t t = from; set->order && t < to; t++, numbers += features) {
		memcpy(set->unordered, numbers, features * sizeof *numbers);
		for (size_t k = 0; k < features; k++)
			numbers[k] = set->unordered[set->order[k]];
	}
	return 0;
}

/* Row t of the piece, which begins at row `from` of the sample, as the set's numbers. */
static int convert(
	const struct neap_dataset *set, int64_t index, int64_t from, int64_t rows, float *values)
{
	int64_t inputs = neap__features(set);

	for (int64_t i = 0; i < rows * inputs; i++) {
		int64_t k = i % inputs;
		double x = set->piece[i];
		if (set->shift)
			x = (x - set->shift[k]) * set->scale[k];
		if (!(fabs(x) <= FLT_MAX))
			return neap__fail(NEAP_EFORMAT,
				"'%s': sample %lld, step %lld, feature %lld is %g; numbers must be "
				"finite. If it pads a shorter sample, add an array 'lengths' or "
				"'mask'",
				set->name, (long long)index, (long long)(from + i / inputs),
				(long long)k, set->piece[i]);
		values[i] = (float)x;
	}
	return 0;
}

int neap__rows_read(
	struct neap_dataset *set, int64_t index, int64_t from, int64_t to, float *values)
{
	int64_t most, n;

	NEAP_TRY(piece_rows(set, &most));
	for (; from < to; from += n, values += n * neap__features(set)) {
		n = to - from < most ? to - from : most;
		NEAP_TRY(read_ordered(set, index, from, from + n, set->piece));
		NEAP_TRY(convert(set, index, from, n, values));
	}
	return 0;
}

int neap__step_values(
	struct neap_dataset *set, int64_t index, int64_t from, int64_t to, float *values)
{
	pthread_mutex_lock(&set->lock);
	int rc = neap__rows_read(set, index, from, to, values);
	pthread_mutex_unlock(&set->lock);
	return rc;
}

int neap__step_targets(struct neap_dataset *set, int64_t index, int64_t from, int64_t to,
	int32_t *labels, float *series)
{
	if (!neap__has_step_targets(set) || from >= to)
		return 0;
	pthread_mutex_lock(&set->lock);
	int rc = set->next && set->ops->values
			 ? neap__rows_read(set, index, from + 1, to + 1, series)
			 : set->ops->targets(set, index, from, to, labels, series);
	pthread_mutex_unlock(&set->lock);
	return rc;
}

int64_t neap__count_targets(
	const struct neap_dataset *set, const int32_t *labels, const float *series, int64_t length)
{
	int64_t counted = 0;

	for (int64_t t = 0; t < length; t++)
		counted += set->info.target == NEAP_TARGET_LABELS
				   ? labels[t] >= 0
				   : !isnan(series[t * set->info.classes]);
	return counted;
}

int neap__step_count(struct neap_dataset *set, int64_t index, int64_t length, int64_t *counted)
{
	int64_t classes = set->info.classes;
	int64_t most = classes < NEAP__PIECE_NUMBERS ? NEAP__PIECE_NUMBERS / classes : 1;
	int32_t *labels;
	float *series;
	int rc = 0;

	*counted = length;
	if (set->next || !neap__has_step_targets(set))
		return 0;
	*counted = 0;
	most = most < length ? most : length;
	labels = malloc((size_t)(most + 1) * sizeof *labels);
	series = malloc((size_t)(most * classes + 1) * sizeof *series);
	if (!labels || !series)
		rc = neap__fail_errno(ENOMEM, "'%s'", set->name);
	for (int64_t t = 0, n; rc == 0 && t < length; t += n) {
		n = length - t < most ? length - t : most;
		rc = neap__step_targets(set, index, t, t + n, labels, series);
		if (rc == 0)
			*counted += neap__count_targets(set, labels, series, n);
	}
	free(labels);
	free(series);
	return rc;
}

/* Adds rows to sums of the numbers (about `about`, a first guess at the mean) and their squares. */
static int add_sample(
	struct neap_dataset *set, int64_t index, const double *about, double *sum, double *squares)
{
	int64_t most, n, length = set->ops->length(set, index), inputs = neap__features(set);

	NEAP_TRY(piece_rows(set, &most));
	for (int64_t from = 0; from < length; from += n) {
		n = length - from < most ? length - from : most;
		NEAP_TRY(read_ordered(set, index, from, from + n, set->piece));
		for (int64_t i = 0; i < n * inputs; i++) {
			double x = set->piece[i] - about[i % inputs];
			if (!isfinite(set->piece[i]))
				return neap__fail(NEAP_EFORMAT,
					"'%s': sample %lld, step %lld, feature %lld is %g; numbers "
					"must be finite. If it pads a shorter sample, add an array "
					"'lengths' or 'mask'; if a value is missing, fill it in, "
					"for example "
					"x = numpy.nan_to_num(x)",
					set->name, (long long)index, (long long)(from + i / inputs),
					(long long)(i % inputs), set->piece[i]);
			sum[i % inputs] += x;
			squares[i % inputs] += x * x;
		}
	}
	return 0;
}

int neap__step_moments(
	struct neap_dataset *set, const int64_t *index, int64_t count, double *shift, double *scale)
{
	int64_t inputs = neap__features(set), samples = index ? count : set->info.samples;
	double *about = calloc((size_t)inputs * 3, sizeof *about), rows = 0;
	double *sum = about + inputs, *squares = sum + inputs;
	int rc = about ? 0 : neap__fail_errno(ENOMEM, "'%s'", set->name);

	pthread_mutex_lock(&set->lock);
	/* The first row is near enough to the mean for sums that cancel little. */
	int64_t first = index && samples > 0 ? index[0] : 0;
	if (rc == 0 && samples > 0 && set->ops->length(set, first) > 0)
		rc = read_ordered(set, first, 0, 1, about);
	for (int64_t k = 0; rc == 0 && k < inputs; k++)
		about[k] = isfinite(about[k]) ? about[k] : 0;
	for (int64_t i = 0; rc == 0 && i < samples; i++) {
		int64_t at = index ? index[i] : i;
		rc = add_sample(set, at, about, sum, squares);
		rows += (double)set->ops->length(set, at);
	}
	pthread_mutex_unlock(&set->lock);
	set->constants = set->offsets = set->constant = 0;
	for (int64_t k = 0; rc == 0 && k < inputs; k++) {
		double n = rows > 0 ? rows : 1, mean = sum[k] / n;
		double variance = squares[k] / n - mean * mean;
		shift[k] = about[k] + mean;
		/* Below this the spread is rounding: the input is constant. */
		int varies = variance > 1e-24 * (shift[k] * shift[k] + squares[k] / n);
		scale[k] = varies ? 1 / sqrt(variance) : 1;
		if (varies || rows < 2)
			continue;
		set->constant = set->constants ? set->constant : (int)k;
		set->constants++;
		set->offsets += shift[k] != 0;
	}
	free(about);
	return rc;
}
