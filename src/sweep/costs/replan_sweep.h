/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replan_sweep.h: a plan of blocks learns while it runs: where steps or a tier cost other than
 * planned, the rest is planned again (plan/blocks/block_replan.h).
 */
#ifndef NEAP_SWEEP_COSTS_REPLAN_SWEEP_H
#define NEAP_SWEEP_COSTS_REPLAN_SWEEP_H

#include "sweep/sweep_state.h"

/*
 * To be called before an action is asked for; replaces the rest of the schedule where that is
 * worth it. 0; a negative code where the schedule is of no use any more.
 */
int neap__replan_consider(struct neap_sweep *s, struct neap_schedule *schedule);

#endif
