/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefetch.h: turns the operations of a block program (block_program.h) into actions, and issues
 * every GET at the earliest operation at which memory permits it. A PUT is waited for when its
 * memory is needed, or when it should have ended according to the planned speeds. Our own method.
 */
#ifndef NEAP_PLAN_BLOCKS_PREFETCH_H
#define NEAP_PLAN_BLOCKS_PREFETCH_H

#include "plan/core/schedule.h"

/* The totals of a complete schedule: seconds, bytes, counts. */
struct neap__prefetch_total {
	double makespan, stall, lost;
	uint64_t peak; /* bytes of slots and tapes */
	int64_t slots, advanced, recorded, actions;
	struct neap__prefetch_use {
		int64_t state_places, tape_places;
		int64_t longest; /* steps of the longest chunk */
		uint64_t written, read;
	} use[2]; /* of the plan's tier, and of the near tier */
};

struct neap__prefetch;
int neap__prefetch_new(struct neap__prefetch **prefetch);
void neap__prefetch_free(struct neap__prefetch *prefetch);
/*
 * Starts with this plan; `near` may be NULL. Returns 0, -ENOMEM, or NEAP_EINFEASIBLE if the plan
 * does not fit in the pool.
 */
int neap__prefetch_start(struct neap__prefetch *prefetch, const struct neap_problem *problem,
	int tier, const struct neap_blocks *blocks, const struct neap_near *near);
/*
 * As above, for a plan that was replaced while it ran. problem->chain and the rates of the tiers
 * have the values known now.
 */
int neap__prefetch_start_plan(struct neap__prefetch *prefetch, const struct neap_problem *problem,
	const struct neap_plan *plan);
/* Returns 1 if the next operation starts a block in the forward pass and no GET was issued; its
 * step. */
int neap__prefetch_at_block(struct neap__prefetch *prefetch, int64_t *step);
/*
 * At such an operation, replaces the rest of the plan by `blocks`, for the costs of `problem`;
 * sizes must be unchanged. After NEAP_EINFEASIBLE or -ENOMEM the schedule cannot be used.
 */
int neap__prefetch_replan(struct neap__prefetch *prefetch, const struct neap_problem *problem,
	const struct neap_blocks *blocks);
/*
 * Performs the next operation and passes its actions to emit(user, action), unless emit is NULL.
 * Returns 1, 0 at the end, or a negative code: NEAP_EINFEASIBLE if an operation can never fit.
 */
int neap__prefetch_next(struct neap__prefetch *prefetch,
	void (*emit)(void *user, const struct neap_action *action), void *user);
/*
 * For plans that keep states (one series): seconds that the schedule takes at least, if its next
 * operation is the first of a block that writes its state and is reversed; otherwise the time so
 * far.
 */
double neap__prefetch_least(struct neap__prefetch *prefetch);
/*
 * Runs the whole schedule and emits nothing. Blocks in the steady state are skipped
 * (prefetch_skip.c), so the running time does not grow with the chain; the totals are the same.
 * Performs at most `most` operations and adds their number to *performed. Ends early if the
 * schedule is known to take `below` seconds or more, which must be INFINITY except for plans that
 * keep states. Returns 1 if it did not reach the end, 0, or a negative code.
 */
int neap__prefetch_run(struct neap__prefetch *prefetch, const struct neap_problem *problem,
	int tier, const struct neap_blocks *blocks, const struct neap_near *near, double below,
	int64_t most, int64_t *performed);
/* Allocates at least `room` rows of each table; returns the number of rows, or -ENOMEM. */
int64_t neap__prefetch_tables(struct neap__prefetch *prefetch, int64_t room);
void neap__prefetch_total(
	const struct neap__prefetch *prefetch, struct neap__prefetch_total *total);

#endif
