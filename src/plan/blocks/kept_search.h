/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kept_search.h: searches for the fastest block plan that keeps states (NEAP_BLOCKS_KEPT), for
 * `auto`, with a bounded number of simulations.
 */
#ifndef NEAP_PLAN_BLOCKS_KEPT_SEARCH_H
#define NEAP_PLAN_BLOCKS_KEPT_SEARCH_H

#include <neap/plan.h>

/* As neap__block_search (block_search.h), among plans that keep states. */
int neap__kept_search(struct neap_plan *plan, const struct neap_problem *problem, int tier,
	int64_t effort, double below);

#endif
