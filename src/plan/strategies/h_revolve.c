/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h_revolve.c: the strategy `h-revolve`: all levels of memory, the slots of tier 0 and the places
 * of the slow tiers, in one optimal recursion (Herrmann and Pallez 2020; level_solver.h).
 * Transfers are planned as waited for; a part of an asynchronous tier's read is hidden by the
 * next backward (level_schedule.h). The levels are tried in several orders (level_search.h).
 * Where tiers take staging from the slots, each tier alone and no tier are tried as well.
 *
 * Peak: s S + A bytes and the staging of the tiers in use (S a state, A a tape, s slots in use).
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
	/* Revolve's order: with large tables cut short it may be better, and it always works. */
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
	.leaf_steps = 1,
	.plan_seconds = NEAP__PLANS_BY_SEARCH,
	.color = "#777777",
	.mark = 16,
};
