/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefetch_state.h: the state of prefetch.c, which prefetch_skip.c reads and moves on. prefetch.c
 * calls prefetch_start.c and prefetch_skip.c, which call neither each other nor prefetch.c.
 */
#ifndef NEAP_PLAN_BLOCKS_PREFETCH_STATE_H
#define NEAP_PLAN_BLOCKS_PREFETCH_STATE_H

#include "base/fail.h"
#include "base/grow.h"
#include "plan/blocks/block_program.h"
#include "plan/blocks/prefetch.h"
#include "plan/core/simulate.h"

/* Rings of operations and of GETs that are looked at at a time: powers of two; chosen. */
#define NEAP__PREFETCH_WINDOW 4096
#define NEAP__PREFETCH_GETS 1024

/* A GET: to be issued before operation `issue`, for operation `need`. */
struct neap__prefetch_get {
	int64_t issue, need;
	int64_t t0, t1, place, bytes;
	int32_t slot, ticket; /* slot: where the state comes to, or NEAP_LIVE */
	uint8_t tapes, live;  /* tapes, not a state; into the live buffer */
	uint8_t near, inside; /* as of its operation */
};

/* A PUT in flight. */
struct neap__prefetch_put {
	int64_t bytes, t0, t1, place;
	int32_t slot, ticket; /* slot: the staging of a state, or -1 */
	uint8_t tapes, inside;
};

/* The PUTs in flight of a tier: [head, tail). */
struct neap__prefetch_puts {
	int64_t head, tail;
	struct neap__prefetch_put row[NEAP_TICKETS];
	long double not_ended; /* seconds that the oldest lacked when it was last tested */
};

/* Numbers of slots or tickets: a free one is used again before a new one is made. */
struct neap__prefetch_numbers {
	int32_t *free;
	int64_t nfree, made, room;
};

struct neap__prefetch {
	struct neap__block_program program;
	struct neap_problem problem;
	struct neap__clock clock;
	int tiers[2], sync; /* the plan's tier and the near one; 0: none */
	int64_t pool, state,
		ahead; /* ahead: GETs in flight or placed, limits the work of place_get */
	int ended;
	int64_t head, tail; /* operations [head, tail) are in the window */
	struct neap__block_op ops[NEAP__PREFETCH_WINDOW];
	int64_t get_head, get_issued, get_tail; /* gets [head, issued) are in flight */
	struct neap__prefetch_get gets[NEAP__PREFETCH_GETS];
	struct neap__prefetch_puts puts[2];
	int64_t arriving, leaving; /* bytes of GETs and PUTs in flight */
	struct neap__prefetch_numbers slots, tickets;
	int32_t *slot_of; /* the slot of each handle of the program */
	int64_t handles;
	void (*emit)(void *user, const struct neap_action *action);
	void *user;
	int error;
	int64_t slots_now, tapes_now;
	struct neap__prefetch_total total;
	struct neap__prefetch_watch
		*watch; /* prefetch_skip.c; NULL: every operation is performed */
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
	struct neap__prefetch *x, int near, int64_t number)
{
	return &x->puts[near].row[number % NEAP_TICKETS];
}

/* Grows a table to `room` rows. 0 or -ENOMEM. */
static inline int neap__prefetch_reserve(int32_t **table, int64_t *rows, int64_t room)
{
	int rc = neap__grow(table, rows, room, sizeof **table);
	return rc < 0 ? neap__fail(rc, "schedule: out of memory") : 0;
}

/* prefetch_skip.c: from begin to end, blocks that are alike are left out. 0 or -ENOMEM. */
int neap__prefetch_watch_begin(struct neap__prefetch *x);
void neap__prefetch_watch_end(struct neap__prefetch *x);
/* To be called before the first operation of a block; may leave blocks out. */
void neap__prefetch_block_begins(struct neap__prefetch *x, int begins);

#endif
