/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offload_auto.c: the plan that `auto` finds for stages with tiers beyond the named strategies.
 * Tries the greedy ladder (offload_search.c), the proposals of pofo_propose.h and a local search
 * from the best of them (offload_anneal.c); for at most 8 stages then the exact search
 * (offload_exact.h), which is faster on 3 of 100 random chains, by 15% on average there, and
 * sometimes finds the only schedule that fits.
 */
#include <float.h>
#include <math.h>
#include "base/fail.h"
#include "plan/offload/offload_least.h"
#include "plan/offload/pofo_propose.h"
#include "plan/offload/offload_exact.h"
#include "plan/verify/measure_list.h"

#define EFFORT 2000 /* simulations, if the caller specifies no effort */
#define NODES 30    /* nodes of the exact search that cost as much as a simulation */

/* Replaces `out` by the exact schedule if that is faster than the best choice. */
static int exact(
	struct neap__action_list *out, const struct neap__offload_search *x, int64_t effort)
{
	struct neap__action_list found = {0};
	int proved;
	int rc = neap__offload_exact(
		&found, x->problem, effort * NODES, x->makespan * (1 - 1e-12), &proved);
	if (rc > 0) {
		struct neap_plan plan = {.size = sizeof plan};
		rc = neap__action_list_measure(&plan, x->problem, &found);
		if (rc == 0 && plan.makespan < x->makespan) {
			neap__action_list_free(out);
			*out = found;
			return 0;
		}
		rc = rc == NEAP_EILLEGAL ? 0 : rc; /* copies may cost, or take room */
	}
	neap__action_list_free(&found);
	return rc;
}

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
	if (rc == 0 && x.makespan > bound)
		rc = exact(out, &x, effort);
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

int neap__chain_offload(struct neap_plan *plan, const struct neap_problem *p)
{
	struct neap__offload_search x;
	struct neap__action_list list = {0};
	int rc = neap__offload_search_init(&x, p, 0);
	if (rc == 0)
		rc = neap__offload_search_greedy(&x);
	if (rc == 0 && x.makespan < INFINITY)
		rc = neap__offload_search_list(&x, &list);
	if (rc == 0 && x.makespan < INFINITY)
		rc = neap__action_list_measure(plan, p, &list);
	neap__action_list_free(&list);
	neap__offload_search_fini(&x);
	return rc;
}
