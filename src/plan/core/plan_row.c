/* SPDX-License-Identifier: Apache-2.0 */
/* plan_row.c: asks a row, and completes its plan. */
#include "plan/core/plan_row.h"

#include <math.h>
#include <string.h>
#include "base/fail.h"
#include "plan/core/leaf_groups.h"
#include "plan/core/sizing.h"
#include "plan/core/stage_sizes.h"

/* The relative difference of two sums of the same times in a different order is below this. */
#define ROUNDING 1e-13

/* a / b - 1, without rounding of sums in a different order; infinite if only b is 0. */
static double excess(double a, double b)
{
	if (b > 0)
		return fabs(a - b) <= ROUNDING * b ? 0 : a / b - 1;
	return a > 0 ? INFINITY : 0;
}

void neap__plan_complete(struct neap_plan *plan, const struct neap_problem *problem)
{
	/* As plans are made: whether the caller counted the calls of long actions or not. */
	const struct neap_problem counted = neap__calls_counted(problem);
	const struct neap_chain *chain = &counted.chain;
	plan->slow_bytes = 0;
	for (int i = 0; i < problem->ntiers; i++)
		plan->slow_bytes += plan->tiers[i].peak_bytes;
	plan->overhead = excess(plan->makespan,
		chain->stages ? neap__stages_least_time(chain)
			      : ((double)(chain->steps + chain->join) - neap__last_missing(chain)) *
						(chain->record + chain->backward) +
					(chain->join ? 4 : 2) * chain->call);
}

void neap__plan_bound(struct neap_plan *plan, double bound)
{
	plan->bound = bound;
	if (plan->feasible)
		plan->gap = excess(plan->makespan, plan->bound);
}

int neap__plan_row(struct neap_plan *plan, const struct neap__strategy *row,
	const struct neap_problem *problem, const struct neap_params *fixed)
{
	return neap__plan_row_below(plan, row, problem, fixed, INFINITY);
}

int neap__plan_row_below(struct neap_plan *plan, const struct neap__strategy *row,
	const struct neap_problem *problem, const struct neap_params *fixed, double below)
{
	const struct neap_chain *chain = &problem->chain;
	*plan = (struct neap_plan){.size = sizeof *plan};
	plan->strategy = plan->chosen = row->name;
	if (chain->join && !(row->traits & NEAP_STRATEGY_JOIN)) {
		neap__refuse(plan, 0, "plans one chain");
		return 0;
	}
	if (chain->stages && !(row->traits & NEAP_STRATEGY_STAGES)) {
		neap__refuse(plan, 0, "needs a uniform chain");
		return 0;
	}
	NEAP_TRY(row->solve_below && below < INFINITY
			 ? row->solve_below(plan, problem, fixed, below)
			 : row->solve(plan, problem, fixed));
	NEAP_TRY(neap__leaf_groups_improve(plan, row, problem, fixed));
	if (plan->feasible)
		neap__plan_complete(plan, problem);
	return 0;
}
