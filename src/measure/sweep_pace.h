/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep_pace.h: seconds that a sweep takes over each hundredth of its steps, forward (the first
 * pass) and backward, transfers and recomputation included. They show whether the seconds of a
 * step stay the same along a sweep.
 */
#ifndef NEAP_MEASURE_SWEEP_PACE_H
#define NEAP_MEASURE_SWEEP_PACE_H

#include <neap/sweep.h>
#include <neap/train.h>

enum { NEAP__PACE_RANGES = 100, NEAP__PACE_RANGE_LEAST = 64 };

/* Marks of one direction: step at[i] was reached at when[i] seconds, i = 0..marks-1. */
struct neap__pace_marks {
	int marks;
	int64_t at[NEAP__PACE_RANGES + 1];
	double when[NEAP__PACE_RANGES + 1];
};

/* A model that calls another one and takes the time between timed. */
struct neap__sweep_pace {
	struct neap_step_ops ops; /* the model's own */
	void *user;
	double (*seconds)(void); /* the clock; NULL: neap__seconds */
	int64_t steps, range;	 /* range 0: too few steps for ranges */
	struct neap__pace_marks forward, backward;
};

/* Replaces the step functions in `ops` by its own, whose user is `timed`. */
void neap__sweep_pace_wrap(struct neap__sweep_pace *timed, struct neap_step_ops *ops, void *user);
/* Before a run of so many steps. */
void neap__sweep_pace_start(struct neap__sweep_pace *timed, int64_t steps);
/* After it: medians of the first and of the last tenth of the timed. */
void neap__sweep_pace_now(const struct neap__sweep_pace *timed, struct neap_pace *pace);

#endif
