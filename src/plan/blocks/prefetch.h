/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefetch.h: turns a program (block_program.h) into actions: looks ahead, issues GETs as
 * early as memory allows and no earlier than FIFO order demands, waits for PUTs
 * where their memory is needed, or once they ought to have ended.
 */
#ifndef NEAP_PLAN_BLOCKS_PREFETCH_H
#define NEAP_PLAN_BLOCKS_PREFETCH_H

#include "plan/core/schedule.h"

/* What a schedule came to, when it ended. */
struct neap__prefetch_total {
	double makespan, stall, lost;
	uint64_t peak; /* bytes of slots and tapes */
	int64_t slots, advanced, recorded, actions;
	int64_t state_places, tape_places, longest; /* of the tier */
	uint64_t written, read;
};

struct neap__prefetch;
int neap__prefetch_new(struct neap__prefetch **prefetch);
void neap__prefetch_free(struct neap__prefetch *prefetch);
/* (Re)starts; NEAP_EINFEASIBLE where the plan does not fit the pool. Borrows problem. */
int neap__prefetch_start(struct neap__prefetch *prefetch, const struct neap_problem *problem,
	int tier, const struct neap_blocks *blocks);
/*
 * The actions of one more operation, each through emit(user, action) unless NULL.
 * 1, 0 at the end, or a negative code: NEAP_EINFEASIBLE where something never fits.
 */
int neap__prefetch_next(struct neap__prefetch *prefetch,
	void (*emit)(void *user, const struct neap_action *action), void *user);
/*
 * Start to end with nothing emitted, blocks left out where their rhythm is known: the
 * same totals, whatever the length. `most`: operations it may perform; *performed is
 * increased. 1 where that was too few, 0, or a negative code.
 */
int neap__prefetch_run(struct neap__prefetch *prefetch, const struct neap_problem *problem,
	int tier, const struct neap_blocks *blocks, int64_t most, int64_t *performed);
/* Rows that its tables have, `room` at least: as struct neap_schedule's tables. */
int64_t neap__prefetch_tables(struct neap__prefetch *prefetch, int64_t room);
void neap__prefetch_total(
	const struct neap__prefetch *prefetch, struct neap__prefetch_total *total);

#endif
