/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep_pace.h: how long a sweep takes over each hundredth of its steps, forward (the first
 * pass) and backward, transfers and recomputation included: is a step's cost constant?
 */
#ifndef NEAP_MEASURE_SWEEP_PACE_H
#define NEAP_MEASURE_SWEEP_PACE_H

#include <neap/sweep.h>
#include <neap/train.h>

enum { NEAP__PIECES = 100, NEAP__PIECE_LEAST = 64 };

/* Where one direction stood when; at[i], when[i] for i = 0..marks-1. */
struct neap__pace_marks {
	int marks;
	int64_t at[NEAP__PIECES + 1];
	double when[NEAP__PIECES + 1];
};

/* A model that hands everything on and looks at the clock between pieces. */
struct neap__sweep_pace {
	struct neap_step_ops ops; /* the model's own */
	void *user;
	int64_t steps, piece; /* piece 0: too few steps for pieces */
	struct neap__pace_marks forward, backward;
};

/* Puts itself in place of `ops`, which a sweep then gets with `pieces` as user. */
NEAP_API void neap__sweep_pace_watch(
	struct neap__sweep_pace *pieces, struct neap_step_ops *ops, void *user);
/* Before a run of so many steps. */
NEAP_API void neap__sweep_pace_start(struct neap__sweep_pace *pieces, int64_t steps);
/* After it: medians of the first and of the last tenth of the pieces. */
NEAP_API void neap__sweep_pace_now(const struct neap__sweep_pace *pieces, struct neap_pace *pace);

#endif
