/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offload_least.h: the least budget for which a search over plans with offload finds one. The
 * searches are heuristics: a larger budget may hide a plan that a smaller one shows. A plan for
 * a smaller budget is a plan for a larger one, so what fits the least budget is taken where a
 * search finds nothing. Then every budget from the least on has a plan.
 */
#ifndef NEAP_PLAN_OFFLOAD_OFFLOAD_LEAST_H
#define NEAP_PLAN_OFFLOAD_OFFLOAD_LEAST_H

#include "plan/core/action_list.h"

/* A search: a schedule of the problem, or NEAP_EINFEASIBLE. `any`: the first one will do. */
typedef int neap__offload_make(
	struct neap__action_list *out, const struct neap_problem *problem, int64_t effort, int any);

/*
 * The least budget, found by bisection over what `make` finds, up to the least of `chain`. More
 * than 40 stages: over plans whose groups are of one stage, which takes milliseconds instead
 * of seconds; a search may then find plans below it. More than are searched: that of `chain`.
 */
int neap__offload_least(uint64_t *least, const struct neap_problem *problem,
	neap__offload_make *make, int64_t effort);

/* As make; where that finds nothing: its plan for the least budget, if this one is no smaller. */
int neap__offload_make_plan(struct neap__action_list *out, const struct neap_problem *problem,
	neap__offload_make *make, int64_t effort);

#endif
