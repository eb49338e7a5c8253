/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk_revolve.c: the strategy `disk-revolve`: `h-revolve` with the slots and one slow tier, which
 * counts as unlimited where it holds all states (Aupy, Herrmann, Hovland and Robert 2016). A
 * state is read as often as pays.
 *
 * Peak: s S + A bytes and the staging of the tier (S a state, A a tape, s slots in use).
 */
#include "base/fail.h"
#include "plan/levels/level_schedule.h"
#include "plan/levels/level_search.h"
#include "plan/core/strategy.h"
#include "plan/core/sizing.h"

static int solve(
	struct neap_plan *plan, const struct neap_problem *problem, const struct neap_params *fixed)
{
	if (problem->ntiers == 0) {
		neap__refuse(plan, 0, "needs a slow tier");
		return 0;
	}
	int n = problem->ntiers;
	NEAP_TRY(neap__level_search_sets(plan, problem, fixed, 1, n));
	if (!plan->feasible)
		NEAP_TRY(neap__level_search_sets(plan, problem, fixed, n + 2, 2 * n + 2));
	if (!plan->feasible)
		neap__level_schedule_refuse(plan, problem);
	return 0;
}

const struct neap__strategy neap__strategy_disk_revolve = {
	.name = "disk-revolve",
	.about = "slots and one slow tier, a state read as often as pays (Aupy, Herrmann and "
		 "others 2016)",
	.solve = solve,
	.open = neap__level_search_open,
	.traits = NEAP_STRATEGY_TIERS,
	.leaf_steps = 1,
	.plan_seconds = NEAP__PLANS_BY_SEARCH,
	.color = "#999933",
	.mark = 10,
};
