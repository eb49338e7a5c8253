/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_rows.h: samples whose steps are rows of a table: their values, normalised as the set says,
 * and the targets of their steps. A format reads numbers as they are in its file; here they become
 * what a batch holds. Where the targets are the values of the step after, a sample has one step
 * less than rows.
 */
#ifndef NEAP_DATA_STEP_ROWS_H
#define NEAP_DATA_STEP_ROWS_H

#include "data/dataset.h"

#include <math.h>

/* 1 where the targets of a set are of steps. */
static inline int neap__has_step_targets(const struct neap_dataset *set)
{
	return set->info.target == NEAP_TARGET_LABELS || set->info.target == NEAP_TARGET_SERIES;
}

/* Steps of a sample, cut at `most` (0: not). */
int64_t neap__steps_of(const struct neap_dataset *set, int64_t index, int64_t most);
/* The first of `steps` steps whose middle is at `time` or later, in steps; `steps`: none is. */
static inline int64_t neap__step_at(double time, int64_t steps)
{
	return (int64_t)fmin(fmax(ceil(time - 0.5), 0), (double)steps);
}

/* Bytes of a step in a batch: values and targets; spikes are not counted. */
size_t neap__step_bytes(const struct neap_dataset *set);

/*
 * Reads rows [from, to) of a sample as a batch has them: values[to - from][neap__features(set)].
 * The set's lock is held. 0 or a negative code.
 */
int neap__rows_read(
	struct neap_dataset *set, int64_t index, int64_t from, int64_t to, float *values);
/*
 * Read steps [from, to) of a sample: values[to - from][inputs], and labels or series, whichever the
 * set has; NULL: not wanted. Take the set's lock. 0 or a negative code.
 */
int neap__step_values(
	struct neap_dataset *set, int64_t index, int64_t from, int64_t to, float *values);
int neap__step_targets(struct neap_dataset *set, int64_t index, int64_t from, int64_t to,
	int32_t *labels, float *series);
/* Counts the first `length` steps that have a target. */
int neap__step_count(struct neap_dataset *set, int64_t index, int64_t length, int64_t *counted);
/* The same of targets that are read already. */
int64_t neap__count_targets(
	const struct neap_dataset *set, const int32_t *labels, const float *series, int64_t length);

/*
 * The mean of each input and the inverse of its deviation over samples index[count] (NULL: all),
 * into shift[inputs] and scale[inputs]. An input that is constant gets a scale of 1. 0 or a
 * negative code.
 */
int neap__step_moments(struct neap_dataset *set, const int64_t *index, int64_t count, double *shift,
	double *scale);

#endif
