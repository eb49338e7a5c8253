/* SPDX-License-Identifier: Apache-2.0 */
/* block_plan.h: the numbers of a plan of blocks, by running it against the clock. */
#ifndef NEAP_PLAN_BLOCKS_BLOCK_PLAN_H
#define NEAP_PLAN_BLOCKS_BLOCK_PLAN_H

#include "plan/blocks/prefetch.h"

/*
 * Fills the plan as a strategy's solve does, or leaves feasible 0. Chains of more
 * than 3 n blocks are run with n and 2 n of them and continued in a straight line;
 * n = 0: in full, unless that takes more than some 10^6 actions, where the arena is
 * the whole budget, and the peak that of 2 n blocks. *actions (may be NULL) is increased by what
 * was run.
 */
int neap__block_plan_evaluate(struct neap_plan *plan, const struct neap_problem *problem, int tier,
	const struct neap_blocks *blocks, struct neap__prefetch *prefetch, int64_t n,
	int64_t *actions);
/* Blocks after which the rhythm of the transfers has settled, and 16 at least. */
int64_t neap__block_plan_steady_blocks(
	const struct neap_problem *problem, int tier, const struct neap_blocks *blocks);
/* A strategy's open for plans of blocks. */
int neap__block_plan_open(struct neap_schedule *s);

#endif
