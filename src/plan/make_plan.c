/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make_plan.c: neap_plan_make: checks the problem and the parameters, asks the row of the table
 * that the caller names, and adds the lower bound.
 */
#include <neap/plan.h>

#include <errno.h>
#include <math.h>
#include <string.h>
#include "base/fail.h"
#include "base/print.h"
#include "base/struct_size.h"
#include "plan/bound/bound_memory.h"
#include "plan/bound/stage_bound.h"
#include "plan/core/strategy.h"
#include "plan/core/plan_row.h"
#include "plan/core/predict_plan.h"
#include "plan/core/sizing.h"
#include "plan/strategy_table.h"

static int check_params(const struct neap_params *params)
{
	const struct {
		const char *name;
		int64_t value;
	} rows[] = {
#define NEAP__X(param, option, meaning) {#param, params->param},
		NEAP_PARAM_TABLE(NEAP__X)
#undef NEAP__X
			{"effort", params->effort},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (rows[i].value < 0)
			return neap__fail(NEAP_EUSAGE, "%s is %lld; it must not be negative",
				rows[i].name, (long long)rows[i].value);
	return 0;
}

/*
 * Of a plan that was made as if the last step were whole: the seconds of one whose last step is
 * chain.last of a step.
 */
static int shorten(struct neap_plan *plan, const struct neap_problem *problem)
{
	const struct neap_chain *chain = &problem->chain;
	double saved = neap__last_missing(chain) * (chain->record + chain->backward);
	if (!plan->feasible || !(neap__last_missing(chain) > 0))
		return 0;
	plan->model_bound = fmax(plan->model_bound - saved, 0);
	/* One after the other, and the last step is recorded and reversed once. */
	if (!plan->tier && !chain->log)
		plan->makespan = fmax(plan->makespan - saved, 0);
	else
		NEAP_TRY(neap__predict(plan, neap__strategy_find(plan->chosen), problem));
	neap__plan_complete(plan, problem);
	return 0;
}

static int refuse_strategy(const char *name)
{
	char all[512] = "";
	size_t n = 0;
	for (int i = 0; neap__strategies[i] && n < sizeof all; i++)
		n += (size_t)neap__print(
			all + n, sizeof all - n, "%s%s", i ? ", " : "", neap__strategies[i]->name);
	return neap__fail(NEAP_EUSAGE, "strategy: unknown strategy '%s'; expected one of %s",
		name ? name : "(none)", all);
}

/* bound: the lower bound in seconds; below 0: not known yet. */
static int make_whole(struct neap_plan *plan, const struct neap_problem *problem,
	const char *strategy, const struct neap_params *params, double bound)
{
	static const struct neap_params none;
	const struct neap__strategy *row = neap__strategy_find(strategy);
	if (!row)
		return refuse_strategy(strategy);
	NEAP_TRY(neap_problem_check(problem));
	NEAP_TRY(check_params(params ? params : &none));
	plan->strategy = plan->chosen = row->name;
	if (problem->chain.steps == 0) {
		plan->chosen = neap__strategies[0]->name;
		plan->feasible = 1;
		return 0;
	}
	(void)neap__bound_memory_short();
	const struct neap_problem counted = neap__calls_counted(problem);
	struct neap_problem whole = counted;
	whole.chain.last = 0;
	int rc = neap__plan_row(plan, row, &whole, params ? params : &none);
	plan->strategy = row->name;
	if (rc < 0)
		return rc;
	NEAP_TRY(shorten(plan, &counted));
	neap__plan_bound(plan, bound < 0 ? neap_bound(problem) : bound);
	return neap__bound_memory_short() ? neap__fail(-ENOMEM, "plan: out of memory") : 0;
}

static int make(struct neap_plan *plan, const struct neap_problem *problem, const char *strategy,
	const struct neap_params *params, double bound)
{
	struct neap_plan made = {.size = sizeof made};
	NEAP_TRY(neap__struct_size(plan->size, sizeof plan->size, sizeof made, "neap_plan"));
	int rc = make_whole(&made, problem, strategy, params, bound);
	neap__struct_give(plan, &made, sizeof made);
	return rc;
}

int neap_plan_make(struct neap_plan *plan, const struct neap_problem *problem, const char *strategy,
	const struct neap_params *params)
{
	NEAP_NEED(plan, problem, strategy);
	return make(plan, problem, strategy, params, -1);
}

int neap_plan_make_bounded(struct neap_plan *plan, const struct neap_problem *problem,
	const char *strategy, const struct neap_params *params, double bound)
{
	NEAP_NEED(plan, problem, strategy);
	return make(plan, problem, strategy, params, fmax(bound, 0));
}
