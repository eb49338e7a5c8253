/* SPDX-License-Identifier: Apache-2.0 */
/* block_search.h: the best plan of blocks (neap_blocks) that a bounded search finds. */
#ifndef NEAP_PLAN_BLOCKS_BLOCK_SEARCH_H
#define NEAP_PLAN_BLOCKS_BLOCK_SEARCH_H

#include <neap/plan.h>

/*
 * The best plan through `tier` found by `effort` simulations at most (longer ones
 * count for several), with its numbers; feasible 0 if there is none. The same
 * problem and effort always give the same plan. `below`: a makespan that others
 * reach; a search that stays far above it ends early.
 */
int neap__block_search(struct neap_plan *plan, const struct neap_problem *problem, int tier,
	int64_t effort, double below);

#endif
