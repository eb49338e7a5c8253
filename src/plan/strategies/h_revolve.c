/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h-revolve: every level of memory, slots of tier 0 and places of the slow tiers, in
 * one optimal recursion (level_solver.h; Herrmann and Pallez 2020). Transfers are planned as waited
 * for; of an asynchronous tier's read the next backward hides its part (level_schedule.h).
 *
 * The levels stand in the order of (write, read), of (read, write) and of their sum;
 * the best is taken. Where tiers take staging from the slots, each tier alone and
 * none are tried as well. The last resort is Revolve's order in the slots.
 *
 * Peak: s S + A and the staging of the tiers in use, s slots used at most.
 */
#include "base/fail.h"
#include "plan/levels/level_schedule.h"
#include "plan/levels/level_search.h"
#include "plan/core/strategy.h"

static int solve(
	struct neap_plan *plan, const struct neap_problem *problem, const struct neap_params *fixed)
{
	int staging = 0, n = problem->ntiers;
	for (int i = 0; i < n; i++)
		staging |= problem->tiers[i].staging > 0;
	NEAP_TRY(neap__level_search_sets(plan, problem, fixed, 0, 0));
	if (staging || !plan->feasible)
		NEAP_TRY(neap__level_search_sets(
			plan, problem, fixed, 1 + (n == 1 && plan->feasible), n + 1));
	/* Tables cut short may have led astray; beyond that, a last resort. */
	NEAP_TRY(neap__level_search_sets(
		plan, problem, fixed, n + 2, plan->feasible ? n + 2 : 2 * n + 2));
	if (!plan->feasible)
		neap__level_schedule_refuse(plan, problem);
	return 0;
}

const struct neap__strategy neap__strategy_h_revolve = {
	.name = "h-revolve",
	.about = "all tiers in one optimal recursion, transfers waited for (Herrmann and Pallez "
		 "2020)",
	.solve = solve,
	.open = neap__level_search_open,
	.traits = NEAP_STRATEGY_TIERS,
	.plan_seconds = NEAP__PLANS_BY_SEARCH,
	.color = "#777777",
	.mark = 16,
};
