/* SPDX-License-Identifier: Apache-2.0 */
/* target_units.c: means and deviations of targets that are numbers (target_units.h). */
#include "data/target_units.h"
#include "data/step_rows.h"
#include "base/fail.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Sums over targets; about: a first guess at the mean, so that sums cancel little. */
struct target_sums {
	int64_t outputs;
	double *about, *sum, *squares, *rows; /* [outputs] */
	int found;			      /* 1: `about` is a row of targets */
};

static void add_row(struct target_sums *sums, const float *row)
{
	if (isnan(row[0])) /* a step that is masked */
		return;
	for (int64_t k = 0; k < sums->outputs; k++) {
		double x = (double)row[k];
		if (!sums->found) {
			sums->about[k] = isfinite(x) ? x : 0;
		} else if (isfinite(x)) {
			sums->sum[k] += x;
			sums->squares[k] += x * x;
			sums->rows[k]++;
		}
	}
	sums->found = 1;
}

/* Adds the targets of the steps of a sample, a piece at a time; the first row alone where none is
 * found. */
static int add_series(struct target_sums *sums, struct neap_dataset *set, int64_t index)
{
	int64_t length = neap__steps_of(set, index, 0), n, outputs = sums->outputs;
	int64_t most = outputs < NEAP__PIECE_NUMBERS ? NEAP__PIECE_NUMBERS / outputs : 1;
	float *series = malloc((size_t)(most * outputs) * sizeof *series);
	int first = !sums->found, rc = series ? 0 : neap__fail_errno(ENOMEM, "'%s'", set->name);

	for (int64_t t = 0; rc == 0 && t < length && !(first && sums->found); t += n) {
		n = length - t < most ? length - t : most;
		rc = neap__step_targets(set, index, t, t + n, NULL, series);
		for (int64_t k = 0; rc == 0 && k < n && !(first && sums->found); k++)
			add_row(sums, series + k * outputs);
	}
	free(series);
	return rc;
}

static int add_sample(struct target_sums *sums, struct neap_dataset *set, int64_t index)
{
	if (set->info.target == NEAP_TARGET_SERIES)
		return add_series(sums, set, index);
	add_row(sums, set->numbers + index * sums->outputs);
	return 0;
}

/*
 * Normalises by a first row, which takes a large mean away before numbers become 32 bits, and sums
 * what is left.
 */
static int sum_targets(
	struct target_sums *sums, struct neap_dataset *set, const int64_t *index, int64_t samples)
{
	size_t bytes = (size_t)sums->outputs * sizeof(double);

	for (int64_t i = 0; i < samples && !sums->found; i++)
		NEAP_TRY(add_sample(sums, set, index ? index[i] : i));
	double *mean = malloc(bytes), *deviation = malloc(bytes);
	if (mean && deviation) {
		memcpy(mean, sums->about, bytes);
		for (int64_t k = 0; k < sums->outputs; k++)
			deviation[k] = 1;
	}
	NEAP_TRY(neap__target_units_take(set, mean, deviation));
	for (int64_t i = 0; i < samples && sums->found; i++)
		NEAP_TRY(add_sample(sums, set, index ? index[i] : i));
	return 0;
}

/* Mean and deviation of an output that was normalised by sums->about. */
static void moments(const struct target_sums *sums, int64_t k, double *mean, double *deviation)
{
	double n = sums->rows[k] > 0 ? sums->rows[k] : 1, middle = sums->sum[k] / n;
	double variance = sums->squares[k] / n - middle * middle;
	/* Below this the spread is rounding: the output is constant. */
	int varies = variance > 1e-12 * (middle * middle + sums->squares[k] / n);

	*mean = sums->about[k] + middle;
	*deviation = varies ? sqrt(variance) : 1;
}

static int copy_inputs(struct neap_dataset *set)
{
	size_t outputs = (size_t)set->info.classes;

	if (!set->shift)
		return 0;
	double *mean = malloc(outputs * sizeof *mean), *deviation = malloc(outputs * sizeof *mean);
	for (size_t k = 0; mean && deviation && k < outputs; k++) {
		mean[k] = set->shift[k];
		deviation[k] = 1 / set->scale[k];
	}
	return neap__target_units_take(set, mean, deviation);
}

int neap__target_units_normalise(struct neap_dataset *set, const int64_t *index, int64_t count)
{
	size_t outputs = (size_t)set->info.classes;

	if (!neap__has_number_targets(set))
		return 0;
	if (set->next)
		return copy_inputs(set);
	double *room = calloc(4 * outputs, sizeof *room);
	double *mean = malloc(outputs * sizeof *mean), *deviation = malloc(outputs * sizeof *mean);
	int rc = room && mean && deviation ? 0 : neap__fail_errno(ENOMEM, "'%s'", set->name);
	struct target_sums sums = {.outputs = (int64_t)outputs,
		.about = room,
		.sum = room + outputs,
		.squares = room + 2 * outputs,
		.rows = room + 3 * outputs};
	if (rc == 0)
		rc = sum_targets(&sums, set, index, index ? count : set->info.samples);
	for (int64_t k = 0; rc == 0 && k < sums.outputs; k++)
		moments(&sums, k, &mean[k], &deviation[k]);
	free(room);
	if (rc == 0)
		return neap__target_units_take(set, mean, deviation);
	free(mean);
	free(deviation);
	return rc;
}

int neap__target_units_take(struct neap_dataset *set, double *mean, double *deviation)
{
	if (!mean || !deviation) {
		free(mean);
		free(deviation);
		return neap__fail_errno(ENOMEM, "'%s'", set->name);
	}
	free(set->target_mean);
	free(set->target_deviation);
	set->target_mean = mean;
	set->target_deviation = deviation;
	if (!set->numbers)
		return 0;
	pthread_mutex_lock(&set->lock);
	int rc = set->ops->numbers(set);
	pthread_mutex_unlock(&set->lock);
	return rc;
}

void neap__target_units_own(double *z, int outputs, const double *mean, const double *deviation)
{
	for (int k = 0; mean && k < outputs; k++)
		z[k] = z[k] * deviation[k] + mean[k];
}
