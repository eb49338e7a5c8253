/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_search.h: searches for the fastest block plan (block_program.h) for `auto`, with a bounded
 * number of simulations.
 */
#ifndef NEAP_PLAN_BLOCKS_BLOCK_SEARCH_H
#define NEAP_PLAN_BLOCKS_BLOCK_SEARCH_H

#include <neap/plan.h>

/*
 * Sets *plan to the best plan through `tier` found with `effort` simulations (long ones count as
 * several), with its predicted numbers; plan->feasible is 0 if none was found. The same problem and
 * effort give the same plan. `below` is a makespan in seconds that other strategies reach: starts
 * more than twice as slow are not improved. Returns 0 or a negative code.
 */
int neap__block_search(struct neap_plan *plan, const struct neap_problem *problem, int tier,
	int64_t effort, double below);

#endif
