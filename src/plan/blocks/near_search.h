/* SPDX-License-Identifier: Apache-2.0 */
/*
 * near_search.h: searches the best plan of blocks through two tiers at once (struct neap_near) for
 * `auto`, with a bounded number of simulations.
 */
#ifndef NEAP_PLAN_BLOCKS_NEAR_SEARCH_H
#define NEAP_PLAN_BLOCKS_NEAR_SEARCH_H

#include <neap/plan.h>

/*
 * Sets *plan to the best plan that uses both `far` and the faster `near` which `effort` simulations
 * find (long ones count as several); plan->feasible is 0 where none is found. A near tier
 * that holds a state and a tape of each step shares the records with the far one, a smaller one is
 * filled again in each block. The same
 * problem and effort give the same plan. `below` is a makespan in seconds that other plans reach: a
 * start of more than twice that is not improved. 0 or a negative code.
 */
int neap__near_search(struct neap_plan *plan, const struct neap_problem *problem, int far, int near,
	int64_t effort, double below);

#endif
