/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offload_auto.c: the plan that `auto` finds for stages with tiers beyond the named strategies.
 * Tries the greedy ladder (offload_search.c), the proposals of pofo_propose.h and a local search
 * from the best of them (offload_anneal.c). Of 300 random chains of 2 to 8 stages, an exact search
 * (tests/plan/offload_exact.h) finds a faster plan for 3, by 0.6% at most.
 */
#include <float.h>
#include <math.h>
#include "base/fail.h"
#include "plan/offload/offload_least.h"
#include "plan/offload/pofo_propose.h"
#include "plan/verify/measure_list.h"

/*
 * Simulations, if the caller specifies no effort. Measured on 42 random problems: with
 * 500, 6 of the plans are slower, by 1.5% at most, since the temperature falls faster.
 */
#define EFFORT 2000

/* The best schedule found, or any. NEAP_EINFEASIBLE: none. */
static int make(
	struct neap__action_list *out, const struct neap_problem *p, int64_t effort, int any)
{
	struct neap__offload_search x;
	double bound = any ? DBL_MAX : neap_bound(p) * (1 + 1e-9);
	int rc = neap__offload_search_init(&x, p, effort);
	if (rc == 0)
		rc = neap__offload_search_greedy(&x);
	if (rc == 0 && x.makespan > bound)
		rc = neap__pofo_propose(&x);
	if (rc == 0 && !any)
		rc = neap__offload_search_improve(&x, bound);
	if (rc == 0 && x.makespan < INFINITY)
		rc = neap__offload_search_list(&x, out);
	neap__offload_search_fini(&x);
	return rc == 0 && out->n == 0 ? neap__fail(NEAP_EINFEASIBLE, "no schedule fits") : rc;
}

int neap__offload_auto_solve(struct neap_plan *plan, const struct neap_problem *p, int64_t effort)
{
	struct neap__action_list list = {0};
	if (p->ntiers == 0)
		return 0;
	if (effort <= 0)
		effort = EFFORT;
	int rc = neap__offload_make_plan(&list, p, make, effort);
	if (rc == 0) {
		plan->params.effort = effort;
		rc = neap__action_list_measure(plan, p, &list);
	}
	neap__action_list_free(&list);
	return rc == NEAP_EINFEASIBLE ? 0 : rc;
}

int neap__offload_auto_open(struct neap_schedule *s)
{
	struct neap__action_list list = {0};
	int rc = s->problem.ntiers > 0
			 ? neap__offload_make_plan(&list, &s->problem, make, s->plan.params.effort)
			 : neap__fail(NEAP_EUSAGE, "schedule: the plan is not one of this problem");
	if (rc == 0)
		return neap__action_list_open(s, &list);
	neap__action_list_free(&list);
	return rc;
}

int neap__offload_auto_least(uint64_t *least, const struct neap_problem *p, int64_t effort)
{
	NEAP_TRY(neap__offload_least(least, p, make, effort > 0 ? effort : EFFORT));
	uint64_t chain = neap__chain_table_least(&p->chain);
	*least = *least < chain ? *least : chain;
	return 0;
}
