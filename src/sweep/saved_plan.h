/* SPDX-License-Identifier: Apache-2.0 */
/* saved_plan.h: a sweep over a plan that was made before (neap_sweep_options.saved). */
#ifndef NEAP_SWEEP_SAVED_PLAN_H
#define NEAP_SWEEP_SAVED_PLAN_H

#include "sweep/sweep_state.h"

/*
 * Takes problem and plan from options.saved, in place of those described by the model. NEAP_EUSAGE
 * where sizes or tiers differ; the schedule is verified.
 */
int neap__saved_plan_take(struct neap_sweep *s);

/* Once tables are sized: NEAP_EINFEASIBLE where a tier does not hold what the plan puts there. */
int neap__saved_plan_fits(const struct neap_sweep *s);
/* The line for that, of both executors; tiers are numbered from 1. NEAP_EINFEASIBLE. */
int neap__saved_plan_no_room(uint64_t needs, int tier, uint64_t capacity);

#endif
