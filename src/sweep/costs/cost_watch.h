/* SPDX-License-Identifier: Apache-2.0 */
/* cost_watch.h: what a run has measured of steps and transfers, compared with the costs of its
 * plan. */
#ifndef NEAP_SWEEP_COSTS_COST_WATCH_H
#define NEAP_SWEEP_COSTS_COST_WATCH_H

#include "sweep/sweep_state.h"

/*
 * A plan is replaced only if the rest of the sweep takes this many times as long as planning,
 * searches for other plans included. Chosen: planning then costs at most 1%.
 */
#define NEAP__REPLAN_WORTH 100

/* Frees what a run found out. */
void neap__replan_forget(struct neap_sweep *s);
/* Resets everything, at the beginning of a run. */
void neap__replan_reset(struct neap_sweep *s);
/* 1 where the plan may be replaced while it runs. */
int neap__replan_possible(const struct neap_sweep *s);
/* Looks ahead; to be called once s->watch.mark_at steps were passed. Sets stats.foreseen later. */
void neap__replan_foresee(struct neap_sweep *s);
/* Learns from a transfer that ended. */
void neap__replan_learn(struct neap_sweep *s, const struct neap__ticket *ticket);
/* Seconds of a write of one state to the tier that the plan uses; 0 without a tier. */
double neap__watch_write_seconds(const struct neap_sweep *s, const struct neap_problem *p);
/* The costs of p are those that later measurements are compared with. */
void neap__watch_set_known(struct neap_sweep *s, const struct neap_problem *p);
/* 1 if a measured cost differs from the planned one by so much that another plan may pay. */
int neap__watch_is_off(double found, double planned);
/* Seconds of forward steps so far: measured, and by the costs of the plan. */
double neap__watch_found_forward(const struct neap_sweep *s);
double neap__watch_planned_forward(const struct neap_sweep *s);
/*
 * Takes the forward steps since the last call as a sample of the pace, if they took long enough.
 * Sets *least to the least quotient of measured over planned seconds of all samples but the first,
 * whose steps find cold caches and unmapped pages. 1; 0 while there are too few samples.
 */
int neap__watch_sample(struct neap_sweep *s, double *least);
/* Samples begin again, by the costs of a new plan; they need no first one that is left out. */
void neap__watch_restart(struct neap_sweep *s);
/*
 * The problem where forward steps take `forward` times as long, backward steps `backward` times,
 * and transfers what writes tell.
 */
void neap__watch_scale(
	const struct neap_sweep *s, double forward, double backward, struct neap_problem *now);

#endif
