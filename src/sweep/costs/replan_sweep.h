/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replan_sweep.h: a plan of blocks learns while it runs: where steps or a tier cost other than
 * planned, the rest is planned again (plan/blocks/block_replan.h).
 */
#ifndef NEAP_SWEEP_COSTS_REPLAN_SWEEP_H
#define NEAP_SWEEP_COSTS_REPLAN_SWEEP_H

#include "sweep/sweep_state.h"

/* Frees what a run found out. */
void neap__replan_forget(struct neap_sweep *s);
/* Starts anew, at the beginning of a run. */
void neap__replan_reset(struct neap_sweep *s);
/* 1 where the plan may be replaced while it runs. */
int neap__replan_possible(const struct neap_sweep *s);
/* Looks ahead; to be called once s->watch.mark_at steps were passed. Sets stats.foreseen later. */
void neap__replan_foresee(struct neap_sweep *s);
/* Learns from a transfer that ended. */
void neap__replan_learn(struct neap_sweep *s, const struct neap__ticket *ticket);
/*
 * To be called before an action is asked for; replaces the rest of the schedule where that is
 * worth it. 0; a negative code where the schedule is of no use any more.
 */
int neap__replan_consider(struct neap_sweep *s, struct neap_schedule *schedule);

#endif
