/* SPDX-License-Identifier: Apache-2.0 */
/* prefetch_state.h: what prefetch.c keeps, for it and for prefetch_skip.c. */
#ifndef NEAP_PLAN_BLOCKS_PREFETCH_STATE_H
#define NEAP_PLAN_BLOCKS_PREFETCH_STATE_H

#include "plan/blocks/prefetch.h"
#include "plan/blocks/block_program.h"
#include "plan/core/simulate.h"

#define NEAP__PREFETCH_WINDOW 4096 /* operations, a power of two */
#define NEAP__PREFETCH_GETS 1024   /* a power of two */

struct neap__prefetch_get {
	int64_t issue, need; /* numbers of operations */
	int64_t t0, t1, place, bytes;
	int32_t slot, ticket; /* NEAP_LIVE, or the slot it came to */
	uint8_t tapes, live;
};

struct neap__prefetch_put { /* in flight, in order */
	int64_t bytes, t0, t1, place;
	int32_t slot, ticket; /* slot: its staging, or -1 */
	uint8_t tapes;
};

struct neap__prefetch_numbers { /* free ones first reused, else the next */
	int32_t *free;
	int64_t nfree, made, room;
};

struct neap__prefetch {
	struct neap__block_program program;
	struct neap_problem problem;
	struct neap__clock clock;
	int tier, sync;
	int64_t pool, state;
	int ended;
	int64_t head, tail; /* operations [head, tail) are in the window */
	struct neap__block_op ops[NEAP__PREFETCH_WINDOW];
	int64_t get_head, get_issued, get_tail; /* gets [head, issued) are in flight */
	struct neap__prefetch_get gets[NEAP__PREFETCH_GETS];
	int64_t put_head, put_tail;
	struct neap__prefetch_put puts[NEAP_TICKETS];
	int64_t arriving, leaving; /* bytes */
	struct neap__prefetch_numbers slots, tickets;
	int32_t *slot_of; /* of a handle */
	int64_t handles;
	void (*emit)(void *user, const struct neap_action *action);
	void *user;
	int error;
	int64_t slots_now, tapes_now;
	struct neap__prefetch_total total;
	struct neap__prefetch_watch
		*watch;	       /* prefetch_skip.c; NULL: every operation is performed */
	long double not_ended; /* of the oldest PUT, when it was last looked at */
};

static inline struct neap__block_op *neap__prefetch_op(struct neap__prefetch *x, int64_t number)
{
	return &x->ops[number & (NEAP__PREFETCH_WINDOW - 1)];
}

static inline struct neap__prefetch_get *neap__prefetch_get(
	struct neap__prefetch *x, int64_t number)
{
	return &x->gets[number & (NEAP__PREFETCH_GETS - 1)];
}

static inline struct neap__prefetch_put *neap__prefetch_put(
	struct neap__prefetch *x, int64_t number)
{
	return &x->puts[number % NEAP_TICKETS];
}

/* The operation about to be performed begins a block: may others be left out? */
void neap__prefetch_block_begins(struct neap__prefetch *x, int begins);

#endif
