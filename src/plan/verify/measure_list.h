/* SPDX-License-Identifier: Apache-2.0 */
/* measure_list.h: what an action list takes: bytes by verify, seconds by simulate. */
#ifndef NEAP_PLAN_VERIFY_MEASURE_LIST_H
#define NEAP_PLAN_VERIFY_MEASURE_LIST_H

#include "plan/core/action_list.h"

/*
 * Verifies and simulates: fills the plan's bytes, slots, tiers, steps, makespan and
 * stall. NEAP_EILLEGAL where it is not legal or does not fit the budget.
 */
int neap__action_list_measure(struct neap_plan *plan, const struct neap_problem *problem,
	const struct neap__action_list *list);

/* Fills the plan's bytes, slots, tiers, steps, makespan and stall from those of its actions. */
void neap__plan_measured(struct neap_plan *plan, const struct neap_verdict *verdict,
	const struct neap_simulation *simulation);

#endif
