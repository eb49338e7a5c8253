/* SPDX-License-Identifier: Apache-2.0 */
/* block_plan.h: the numbers of a plan of blocks, by running it against the simulated clock. */
#ifndef NEAP_PLAN_BLOCKS_BLOCK_PLAN_H
#define NEAP_PLAN_BLOCKS_BLOCK_PLAN_H

#include "plan/blocks/prefetch.h"

/*
 * Fills the plan as a strategy's solve does, or leaves plan->feasible 0. `near` may be NULL. A
 * chain of more than 3 n blocks is run with n and with 2 n of them and continued in a straight
 * line; a run of more than 2 10^6 operations does not count as feasible. n = 0 runs the chain in
 * full, unless that takes more than 3 10^6 operations: then the totals are continued from as many
 * blocks as reach the steady state, and the arena is the whole budget. *actions (may be NULL) is
 * increased by the actions that were run. 0 or a negative code.
 */
int neap__block_plan_evaluate(struct neap_plan *plan, const struct neap_problem *problem, int tier,
	const struct neap_blocks *blocks, const struct neap_near *near,
	struct neap__prefetch *prefetch, int64_t n, int64_t *actions);
/*
 * Sets *makespan to that of a plan that keeps states, in seconds; INFINITY if it does not fit. The
 * run ends as soon as it is known to take `below` seconds or more: then *makespan is a number
 * between `below` and the makespan. *actions is increased by the operations. 0 or a negative code.
 */
int neap__block_plan_below(double *makespan, const struct neap_problem *problem, int tier,
	const struct neap_blocks *blocks, double below, struct neap__prefetch *prefetch,
	int64_t *actions);
/*
 * Runs a plan, with what replaced parts of it, to its end, and sets its numbers. NEAP_EINFEASIBLE
 * where it does not fit, or takes more than 3 10^6 operations.
 */
int neap__block_plan_run(struct neap_plan *plan, const struct neap_problem *problem,
	struct neap__prefetch *prefetch);
/* Blocks after which transfers are in their steady state, 16 at least. */
int64_t neap__block_plan_steady_blocks(
	const struct neap_problem *problem, int tier, const struct neap_blocks *blocks);
/* A strategy's `open` for plans of blocks. */
int neap__block_plan_open(struct neap_schedule *s);
/*
 * 1 where the schedule is one of blocks, all actions that it has made were taken, and the next is
 * the first of a block going up, at *step, with no GET in flight.
 */
int neap__block_plan_at_block(struct neap_schedule *s, int64_t *step);
/*
 * There, goes on as the last replan of `plan` says, with the costs of `problem`. A negative code:
 * the schedule is of no use any more.
 */
int neap__block_plan_switch(
	struct neap_schedule *s, const struct neap_problem *problem, const struct neap_plan *plan);

#endif
