/* SPDX-License-Identifier: Apache-2.0 */
/*
 * synthetic.h: a model with a state and a tape of given sizes and steps of given seconds. The
 * state counts its steps and a tape holds the number of its step; backward fails where the
 * numbers differ.
 */
#ifndef NEAP_STUDY_SYNTHETIC_H
#define NEAP_STUDY_SYNTHETIC_H

#include <neap/sweep.h>

struct neap__synthetic {
	int64_t steps;
	size_t state, tape, adjoint;	  /* bytes, 8 at least */
	double advance, record, backward; /* seconds a step, spent on the processor */
	double slot_write, slot_read;	  /* of a copy of a state: plans count them */
	double *forward;		  /* set to the seconds before the turn; or NULL */
};

/*
 * Runs `repeats` sweeps within `memory`. *stats is that of the sweep of median time, *plan the
 * plan of them all. tier: the slow memory, or NULL.
 */
int neap__synthetic_run(struct neap_sweep_stats *stats, struct neap_plan *plan,
	const struct neap__synthetic *model, uint64_t memory, const char *strategy,
	const struct neap_params *params, struct neap_tier *tier, int repeats);

/* Keeps the processor busy until that many seconds after `start` (neap_clock). */
void neap__synthetic_spend(double start, double seconds);

#endif
