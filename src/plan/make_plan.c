/* SPDX-License-Identifier: Apache-2.0 */
/* make_plan.c: a problem and the name of a strategy in, a complete plan out. */
#include <neap/plan.h>

#include <math.h>
#include <string.h>
#include "base/fail.h"
#include "plan/core/stage_sizes.h"
#include "plan/core/strategy.h"

static int check_params(const struct neap_params *params)
{
	const struct {
		const char *name;
		int64_t value;
	} rows[] = {
		{"chunk", params->chunk},
		{"checkpoints", params->checkpoints},
		{"remote_chunk", params->remote_chunk},
		{"interval", params->interval},
		{"period", params->period},
		{"group", params->group},
		{"tail", params->tail},
		{"kept_tapes", params->kept_tapes},
		{"effort", params->effort},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (rows[i].value < 0)
			return neap__fail(NEAP_EUSAGE, "%s: %lld is negative", rows[i].name,
				(long long)rows[i].value);
	return 0;
}

/* a / b - 1; infinite where only b is 0. */
static double excess(double a, double b)
{
	if (b > 0)
		return a / b - 1;
	return a > 0 ? INFINITY : 0;
}

void neap__plan_complete(struct neap_plan *plan, const struct neap_problem *problem)
{
	const struct neap_chain *chain = &problem->chain;
	plan->slow_bytes = 0;
	for (int i = 0; i < problem->ntiers; i++)
		plan->slow_bytes += plan->tiers[i].peak_bytes;
	plan->overhead = excess(plan->makespan,
		chain->stages
			? neap__stages_least_time(chain)
			: (double)(chain->steps + chain->join) * (chain->record + chain->backward) +
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
	const struct neap_chain *chain = &problem->chain;
	memset(plan, 0, sizeof *plan);
	plan->strategy = plan->chosen = row->name;
	if (chain->join && row == &neap__auto)
		plan->chosen = (row = &neap__join)->name;
	if (chain->join && row != &neap__join) {
		neap__refuse(plan, 0, "plans one chain");
		return 0;
	}
	if (chain->stages && !neap__takes_stages(row)) {
		neap__refuse(plan, 0, "needs a uniform chain");
		return 0;
	}
	NEAP_TRY(row->solve(plan, problem, fixed));
	if (plan->feasible)
		neap__plan_complete(plan, problem);
	return 0;
}

/* bound below 0: not known. */
static int make(struct neap_plan *plan, const struct neap_problem *problem, const char *strategy,
	const struct neap_params *params, double bound)
{
	static const struct neap_params none;
	memset(plan, 0, sizeof *plan);
	const struct neap__strategy *row = neap__strategy_find(strategy);
	if (!row)
		return neap__fail(
			NEAP_EUSAGE, "strategy: \"%s\" is unknown", strategy ? strategy : "(none)");
	NEAP_TRY(neap_problem_check(problem));
	NEAP_TRY(check_params(params ? params : &none));
	plan->strategy = plan->chosen = row->name;
	if (problem->chain.steps == 0) {
		plan->chosen = neap__strategies[0]->name;
		plan->feasible = 1;
		return 0;
	}
	int rc = neap__plan_row(plan, row, problem, params ? params : &none);
	plan->strategy = row->name;
	if (rc < 0)
		return rc;
	neap__plan_bound(plan, bound < 0 ? neap_bound(problem) : bound);
	return 0;
}

int neap_plan_make(struct neap_plan *plan, const struct neap_problem *problem, const char *strategy,
	const struct neap_params *params)
{
	return make(plan, problem, strategy, params, -1);
}

int neap_plan_make_bounded(struct neap_plan *plan, const struct neap_problem *problem,
	const char *strategy, const struct neap_params *params, double bound)
{
	return make(plan, problem, strategy, params, fmax(bound, 0));
}
