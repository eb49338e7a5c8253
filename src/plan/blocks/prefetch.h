/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefetch.h: prefetching: turns the operations of a block program (block_program.h) into
 * actions, and issues every GET at the earliest operation at which memory allows it. PUTs are
 * waited for where their memory is needed, or once they should have ended. Ours.
 */
#ifndef NEAP_PLAN_BLOCKS_PREFETCH_H
#define NEAP_PLAN_BLOCKS_PREFETCH_H

#include "plan/core/schedule.h"

/* The totals of a schedule that ended: seconds, bytes, counts. */
struct neap__prefetch_total {
	double makespan, stall, lost;
	uint64_t peak; /* bytes of slots and tapes */
	int64_t slots, advanced, recorded, actions;
	struct neap__prefetch_use {
		int64_t state_places, tape_places;
		int64_t longest; /* steps of the longest chunk */
		uint64_t written, read;
	} use[2]; /* of the plan's tier, and of the near one */
};

struct neap__prefetch;
int neap__prefetch_new(struct neap__prefetch **prefetch);
void neap__prefetch_free(struct neap__prefetch *prefetch);
/*
 * Starts over with this plan; `near` may be NULL. 0, -ENOMEM, or NEAP_EINFEASIBLE: it does not fit
 * the pool.
 */
int neap__prefetch_start(struct neap__prefetch *prefetch, const struct neap_problem *problem,
	int tier, const struct neap_blocks *blocks, const struct neap_near *near);
/*
 * The same for a plan that was replaced while it ran. problem->chain and the tiers' rates are those
 * known now.
 */
int neap__prefetch_start_plan(struct neap__prefetch *prefetch, const struct neap_problem *problem,
	const struct neap_plan *plan);
/* 1 where the next operation is the first of a block going up, and no GET was issued; its step. */
int neap__prefetch_at_block(struct neap__prefetch *prefetch, int64_t *step);
/*
 * There, replaces what follows by blocks of `blocks`, for the costs of `problem`, of the same sizes
 * as before. NEAP_EINFEASIBLE or -ENOMEM: the schedule is of no use any more.
 */
int neap__prefetch_replan(struct neap__prefetch *prefetch, const struct neap_problem *problem,
	const struct neap_blocks *blocks);
/*
 * Performs one more operation and gives its actions to emit(user, action), unless emit is NULL.
 * Returns 1, 0 at the end, or a negative code: NEAP_EINFEASIBLE where an operation never fits.
 */
int neap__prefetch_next(struct neap__prefetch *prefetch,
	void (*emit)(void *user, const struct neap_action *action), void *user);
/*
 * Runs from start to end and emits nothing. Blocks in the steady state are left out
 * (prefetch_skip.c), so that the time does not grow with the chain; the totals are the same.
 * Performs `most` operations at most and adds what it performed to *performed. Returns 1 where
 * `most` is too few, 0, or a negative code.
 */
int neap__prefetch_run(struct neap__prefetch *prefetch, const struct neap_problem *problem,
	int tier, const struct neap_blocks *blocks, const struct neap_near *near, int64_t most,
	int64_t *performed);
/* Allocates `room` rows of each table at least; returns the rows, or -ENOMEM. */
int64_t neap__prefetch_tables(struct neap__prefetch *prefetch, int64_t room);
void neap__prefetch_total(
	const struct neap__prefetch *prefetch, struct neap__prefetch_total *total);

#endif
