/* SPDX-License-Identifier: Apache-2.0 */
/* log_plan.h: what a sweep decided, in lines for NEAP_LOG=debug (base/debug_log.h). */
#ifndef NEAP_SWEEP_LOG_PLAN_H
#define NEAP_SWEEP_LOG_PLAN_H

#include <neap/plan.h>
#include <neap/tier.h>

/* The sizes, costs and tiers that a plan is made for, and the plan; `seconds`: of planning. */
void neap__log_plan(const struct neap_problem *problem, const struct neap_plan *plan,
	struct neap_tier *const *tiers, double seconds);
/* A plan for the rest of a sweep, from `step` on, for measured costs; NULL: none is faster. */
void neap__log_replan(const struct neap_problem *planned, const struct neap_problem *found,
	int64_t step, const struct neap_plan *rest);

#endif
