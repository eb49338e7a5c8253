/* SPDX-License-Identifier: Apache-2.0 */
/* counts.h: the answers, times and counts of calls of the model, and of what a run waited for or
 * lost. */
#ifndef NEAP_SWEEP_STEPS_COUNTS_H
#define NEAP_SWEEP_STEPS_COUNTS_H

#include "sweep/sweep_state.h"

/* The answer of callback `name`, which is not 0, as the sweep's. */
int neap__step_failure(const char *name, int rc);

/* After a call of callback `name`: its answer, as the sweep's. Inline: asked after every call. */
static inline int neap__step_answer(const char *name, int rc)
{
	return rc == 0 ? 0 : neap__step_failure(name, rc);
}

/* Before a call whose seconds are counted in *kind. Answers now, in seconds. */
double neap__step_start(struct neap_sweep *s, const double *kind);
/*
 * After a call: adds the time since `start` to *kind and to the trace. If the model has a fence,
 * waits for the call add their seconds later.
 */
void neap__step_charge(
	struct neap_sweep *s, double *kind, double start, uint32_t event, int64_t t0, int64_t t1);
/* The live state is at t now; the steps to it are added to *steps. */
void neap__step_passed(struct neap_sweep *s, int64_t t, int64_t *steps);
/* Counts a tape of [t0, t1) that did not fit. */
void neap__count_overflow(struct neap_sweep *s, int64_t t0, int64_t t1);

#endif
