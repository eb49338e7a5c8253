/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stageauto: what `auto` finds for unequal stages with tiers beyond the named
 * strategies: the greedy ladder, pofo's proposals, local search from the best of
 * them (offload_anneal.c), and for a few stages the exact search (offload_exact.c).
 */
#include <math.h>
#include "base/fail.h"
#include "plan/offload/pofo_propose.h"
#include "plan/offload/offload_exact.h"
#include "plan/verify/measure_list.h"

#define EFFORT 2000
#define NODES 30 /* of the exact search, a simulation's worth of work */

/* Where an exact schedule is faster than the choices', takes it. */
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

/* The best schedule found. NEAP_EINFEASIBLE: none. */
static int make(struct neap__action_list *out, const struct neap_problem *p, int64_t effort)
{
	struct neap__offload_search x;
	double bound = neap_bound(p);
	int rc = neap__offload_search_init(&x, p, effort);
	if (rc == 0)
		rc = neap__offload_search_greedy(&x);
	if (rc == 0 && x.makespan > bound * (1 + 1e-9))
		rc = neap__pofo_propose(&x);
	if (rc == 0)
		rc = neap__offload_search_improve(&x, bound * (1 + 1e-9));
	if (rc == 0 && x.makespan < INFINITY)
		rc = neap__offload_search_script(&x, out);
	if (rc == 0 && x.makespan > bound * (1 + 1e-9))
		rc = exact(out, &x, effort);
	neap__offload_search_fini(&x);
	return rc == 0 && out->n == 0 ? neap__fail(NEAP_EINFEASIBLE, "no schedule fits") : rc;
}

int neap__offload_auto_solve(struct neap_plan *plan, const struct neap_problem *p, int64_t effort)
{
	struct neap__action_list list = {0};
	if (p->ntiers == 0 || p->chain.steps > NEAP__STAGESEARCH_STAGES)
		return 0;
	if (effort <= 0)
		effort = EFFORT;
	int rc = make(&list, p, effort);
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
			 ? make(&list, &s->problem, s->plan.params.effort)
			 : neap__fail(NEAP_EUSAGE, "schedule: the plan is not one of this problem");
	if (rc == 0)
		return neap__action_list_open(s, &list);
	neap__action_list_free(&list);
	return rc;
}

int neap__chain_offload(struct neap_plan *plan, const struct neap_problem *p)
{
	struct neap__offload_search x;
	struct neap__action_list list = {0};
	int rc = neap__offload_search_init(&x, p, 0);
	if (rc == 0)
		rc = neap__offload_search_greedy(&x);
	if (rc == 0 && x.makespan < INFINITY)
		rc = neap__offload_search_script(&x, &list);
	if (rc == 0 && x.makespan < INFINITY)
		rc = neap__action_list_measure(plan, p, &list);
	neap__action_list_free(&list);
	neap__offload_search_fini(&x);
	return rc;
}
