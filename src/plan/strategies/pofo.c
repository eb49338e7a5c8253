/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pofo.c: the strategy `pofo`: recomputation with offload on a chain of unequal stages (after
 * POFO, Beaumont, Eyraud-Dubois and Shilova 2021). A fluid dynamic program proposes plans
 * (pofo_propose.h). Where none fits, everything is sent that may be, or nothing (the plan of
 * `chain`).
 *
 * Peak: found by verifying the actions, in bytes.
 */
#include <math.h>
#include "base/fail.h"
#include "plan/offload/offload_least.h"
#include "plan/offload/pofo_propose.h"
#include "plan/core/strategy.h"
#include "plan/core/sizing.h"
#include "plan/verify/measure_list.h"
#include "plan/strategy_table.h"

/* The plan of `chain`, which sends nothing. */
static int list_chain(struct neap__action_list *out, const struct neap_problem *p)
{
	struct neap_plan plan = {.size = sizeof plan};
	struct neap_schedule *s = NULL;
	struct neap_action a;
	int rc = neap__schedule_open_row(&s, &neap__strategy_chain, p, &plan);
	if (rc == 0)
		rc = 1;
	while (rc > 0 && (rc = neap_schedule_next(s, &a)) > 0)
		neap__action_list_add(out, &a);
	neap_schedule_close(s);
	return rc < 0 ? rc : out->error;
}

static int make(
	struct neap__action_list *out, const struct neap_problem *p, int64_t effort, int any)
{
	struct neap__offload_search x;
	(void)any;
	int rc = neap__offload_search_init(&x, p, effort);
	if (rc == 0)
		rc = neap__pofo_propose(&x);
	if (rc == 0 && !(x.makespan < INFINITY))
		rc = neap__offload_search_extremes(&x);
	if (rc == 0)
		rc = x.makespan < INFINITY ? neap__offload_search_list(&x, out)
					   : list_chain(out, p);
	neap__offload_search_fini(&x);
	return rc;
}

static int solve(
	struct neap_plan *plan, const struct neap_problem *p, const struct neap_params *fixed)
{
	struct neap__action_list list = {0};
	(void)fixed;
	if (!p->chain.stages)
		neap__refuse(plan, 0, "needs steps that differ, but these are all equal");
	else if (p->ntiers == 0)
		neap__refuse(plan, 0, "needs a slow tier");
	else {
		int rc = neap__offload_make_plan(&list, p, make, 0);
		if (rc == 0)
			rc = neap__action_list_measure(plan, p, &list);
		neap__action_list_free(&list);
		if (rc != NEAP_EINFEASIBLE)
			return rc;
		uint64_t least = 0;
		NEAP_TRY(neap__offload_least(&least, p, make, 0));
		neap__refuse(plan, least, "the stages need %llu bytes at least",
			(unsigned long long)least);
	}
	return 0;
}

static int open(struct neap_schedule *s)
{
	struct neap__action_list list = {0};
	int rc = s->problem.chain.stages && s->problem.ntiers
			 ? neap__offload_make_plan(&list, &s->problem, make, 0)
			 : neap__fail(NEAP_EUSAGE, "schedule: the plan is not one of this problem");
	if (rc == 0)
		return neap__action_list_open(s, &list);
	neap__action_list_free(&list);
	return rc;
}

const struct neap__strategy neap__strategy_pofo = {
	.name = "pofo",
	.about = "unequal stages, recomputed or sent to a slow tier (after POFO, Beaumont et al. "
		 "2021)",
	.solve = solve,
	.open = open,
	.traits = NEAP_STRATEGY_STAGES | NEAP_STRATEGY_TIERS,
};
