/* SPDX-License-Identifier: Apache-2.0 */
/*
 * open_schedule.c: neap_schedule_open: finds the row of the table that made a plan, and opens its
 * schedule. Apart from core/schedule.c, so that the core does not know the table.
 */
#include <neap/plan.h>

#include "base/fail.h"
#include "base/struct_size.h"
#include "plan/core/schedule.h"
#include "plan/strategy_table.h"
#include "plan/core/strategy.h"

int neap_schedule_open(struct neap_schedule **schedule, const struct neap_problem *problem,
	const struct neap_plan *plan)
{
	NEAP_NEED(schedule, problem, plan);
	NEAP_TRY(neap_problem_check(problem));
	NEAP_TRY(neap__struct_size(plan->size, sizeof *plan, sizeof *plan, "neap_plan"));
	if (!plan->feasible)
		return neap__fail(NEAP_EINFEASIBLE, "%s: %s", plan->strategy, plan->why);
	const struct neap__strategy *row = neap__strategy_find(plan->chosen);
	if (!plan->actions && (!row || !row->open))
		return neap__fail(NEAP_EUSAGE, "schedule: the plan names no strategy");
	return neap__schedule_open_row(schedule, row, problem, plan);
}
