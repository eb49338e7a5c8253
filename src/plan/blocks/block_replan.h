/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_replan.h: a plan of blocks that is under way, and whose costs turn out to be others than
 * planned: the blocks that are still to come are planned again. Those behind stay as they are, and
 * what they sent away is used. Ours.
 */
#ifndef NEAP_PLAN_BLOCKS_BLOCK_REPLAN_H
#define NEAP_PLAN_BLOCKS_BLOCK_REPLAN_H

#include "plan/blocks/prefetch.h"

/*
 * `plan` has come to step `step`, where a block begins; `problem` has the costs that are known by
 * now, the sizes of before, and as capacities and memory what the sweep has taken. Sets the
 * plan's numbers to those it has with these costs. Then searches, with `effort` simulations,
 * other blocks for the steps from `step` on, which record no more steps at a time than
 * `chunk` (0: none); where the whole is faster by the share `gain` with them, that is
 * entered into the plan. 1 where it was, 0 where not, or a negative code; NEAP_EINFEASIBLE: the
 * plan takes too many operations to be run through.
 */
int neap__block_replan(struct neap_plan *plan, const struct neap_problem *problem, int64_t step,
	int64_t chunk, int64_t effort, double gain);

/*
 * Returns 1 if the plan `rest`, which came of `plan`, takes at most as long as `plan` in a problem
 * with other costs, 0 if it takes longer or is infeasible there, or a negative code.
 */
int neap__block_replan_holds(const struct neap_plan *rest, const struct neap_plan *plan,
	const struct neap_problem *problem);

#endif
