/* SPDX-License-Identifier: Apache-2.0 */
/*
 * synthetic.h: a model for schedules: a state and a tape of given sizes, steps of given
 * lengths. The state counts the steps it has made and the tape notes the step it is of;
 * backward fails where they do not fit.
 */
#ifndef NEAP_STUDY_SYNTHETIC_H
#define NEAP_STUDY_SYNTHETIC_H

#include <neap/sweep.h>

struct neap__synthetic {
	int64_t steps;
	size_t state, tape, adjoint;	  /* bytes, 8 at least */
	double advance, record, backward; /* seconds a step, spent on the processor */
	double slot_write, slot_read;	  /* of a copy of a state: plans count them */
	double *forward;		  /* takes the seconds before the turn; or NULL */
};

/*
 * Runs `repeats` sweeps within `memory`; stats are those of the median one by time,
 * plan that of the sweep. tier: the slow memory, or NULL.
 */
int neap__synthetic_run(struct neap_sweep_stats *stats, struct neap_plan *plan,
	const struct neap__synthetic *model, uint64_t memory, const char *strategy,
	const struct neap_params *params, struct neap_tier *tier, int repeats);

/* Busy until so long after `start` (neap_clock). */
void neap__synthetic_spend(double start, double seconds);

#endif
