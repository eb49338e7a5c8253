/* SPDX-License-Identifier: Apache-2.0 */
/* block_plan.h: the numbers of a plan of blocks, by running it against the simulated clock. */
#ifndef NEAP_PLAN_BLOCKS_BLOCK_PLAN_H
#define NEAP_PLAN_BLOCKS_BLOCK_PLAN_H

#include "plan/blocks/prefetch.h"

/*
 * Fills the plan as a strategy's solve does, or leaves plan->feasible 0. A chain of more than 3 n
 * blocks is run with n and with 2 n of them and continued in a straight line; a run of more than
 * 2 10^6 operations does not count as feasible. n = 0 runs the
 * chain in full, unless that takes more than 3 10^6 operations: then the totals are continued
 * from as many blocks as reach the steady state, and the arena is the whole budget. *actions
 * (may be NULL) is increased by the actions that were run. 0 or a negative code.
 */
int neap__block_plan_evaluate(struct neap_plan *plan, const struct neap_problem *problem, int tier,
	const struct neap_blocks *blocks, struct neap__prefetch *prefetch, int64_t n,
	int64_t *actions);
/* Blocks after which transfers are in their steady state, 16 at least. */
int64_t neap__block_plan_steady_blocks(
	const struct neap_problem *problem, int tier, const struct neap_blocks *blocks);
/* A strategy's `open` for plans of blocks. */
int neap__block_plan_open(struct neap_schedule *s);

#endif
