/* SPDX-License-Identifier: Apache-2.0 */
/*
 * online_tier.h: emits the actions of a sweep whose length becomes known on the way, with a slow
 * tier. What is done going forward serves whatever the length turns out to be:
 *
 *     states   are kept in fast memory as online_placement.h says. Whenever the tier is idle, by
 *              the plan's costs, the oldest of them is written, and its memory falls free.
 *     tapes    every step is recorded while the chain is short: the tapes of the last R steps
 *              are kept, the oldest go. So a chain of R steps costs no recomputation, and
 *              a longer one spares R steps of it. Beyond ring_until steps this does not pay.
 *     sent     where the tier is fast enough, the tapes of `send` steps out of send + J are
 *              written instead of dropped, J the steps of a leaf.
 *
 * Then the chain is reversed: what is in memory first, then what comes back, each record asked
 * for while the part before it is reversed. With places for N records, and all of them taken,
 * every second state is forgotten, and from then on half as many are written.
 *
 *     P, S, A   bytes of fast memory for states and tapes, of a state, of a tape
 *     B         bytes kept free for tapes on their way: two chunks of q steps, 0 if none is sent
 *     S + B     are kept free for what comes back while a part is reversed
 *
 * Ours; the placement of states is Wang, Moin and Iaccarino's (2009).
 */
#ifndef NEAP_PLAN_ONLINE_ONLINE_TIER_H
#define NEAP_PLAN_ONLINE_ONLINE_TIER_H

#include "plan/online/online_placement.h"
#include "plan/core/schedule.h"

#define NEAP__ONLINE_STATES 65536  /* places for states on the tier at most */
#define NEAP__ONLINE_CHUNKS 16384  /* places for tapes at most */
#define NEAP__ONLINE_PIECES 262144 /* tapes of single steps on the tier at most */
#define NEAP__ONLINE_RECENT 4096   /* steps whose tapes are kept in passing, at most */
#define NEAP__ONLINE_RECORDS 48	   /* transfers in flight at most */
#define NEAP__ONLINE_LEAVING 2	   /* chunks of tapes on their way out at most */

/* What depends on the problem alone. */
struct neap__online_sizes {
	int tier;	/* 1..; 0: none is of use */
	int64_t pool;	/* P */
	int64_t state;	/* S */
	int64_t tape;	/* A, 1 at least */
	int64_t slots;	/* states that may be kept, with the one that is on its way */
	int64_t recent; /* R */
	int64_t piece;	/* steps recorded at once, of tapes that may be dropped */
	int64_t send;	/* steps, INT64_MAX: all; 0: none */
	int64_t chunk;	/* q */
	int64_t ring_until;
	int64_t states, chunks;		 /* places on the tier */
	double write_state, write_chunk; /* seconds */
	double read_state, read_chunk;
};

/* A record on the tier: the state at t0 == t1, or the tapes of [t0, t1). */
struct neap__online_record {
	int64_t t0, t1, place;
	int64_t slot; /* where it comes to; at the turn, the record that is read after it */
	double end;   /* of its write, by the plan's costs; at the turn, of the reversal below it */
	int32_t ticket; /* of its transfer; -1: none */
	uint8_t coming; /* it was asked for */
};

struct neap__online_tapes {
	int64_t t0, t1;
	int send; /* 1: they are to be sent; -1: they were */
};

struct neap__online_tier {
	const struct neap_chain *chain;
	struct neap__online_sizes sizes;
	struct neap__leaf_revolve costs;
	struct neap__placement
		placement; /* entry 0 is in its slot, if it has one, and on the tier */
	int64_t steps;	   /* T; INT64_MAX while the length is not known */
	int64_t from, at; /* the last ADVANCE or RECORD; the live state is at `at`, -1: undefined */
	int64_t position; /* of the adjoint; -1: going forward */
	int64_t level;	  /* of the part that starts with the live state */
	int64_t due;	  /* step at which the next state is to be kept; -1: not known */
	int begun, turned;
	int written;	     /* entry 0 of the list is on the tier, or on its way */
	int keeps;	     /* the live state is to be kept, whatever it costs */
	double now, idle_at; /* seconds of the plan's costs: passed; when the tier is idle */
	int64_t send_left;   /* steps of this run of tapes that are sent */
	int64_t held, taped; /* slots taken; steps whose tapes are in memory or coming */
	int64_t stride;	     /* one in `stride` states is written */
	int full;	     /* the tier has no place left, whatever is forgotten */
	/* Tapes in memory that were recorded in passing: a ring. */
	struct neap__online_tapes *ring;
	int64_t ring_room, ring_head, ring_count, ring_steps;
	struct neap__online_record *records; /* by t0 */
	int64_t nrecords, records_room;
	int64_t asked; /* records from this one on were asked for, or need not be */
	int32_t leaving[NEAP__ONLINE_LEAVING]; /* tickets of tapes, oldest first */
	int nleaving, states_coming;
	int64_t beside;		  /* tapes in memory that lie below the present part, in states */
	int64_t chunks_coming;	  /* steps of them, or here and not reversed */
	int64_t chunks_beyond;	  /* those below a state that is coming, too */
	int64_t leaf, leaf_piece; /* first step of the leaf whose tapes are there; -1: none */
	int32_t *free_slots;
	int64_t slots_free, slots_made, slots_room;
	int32_t *free_places; /* of states */
	int64_t places_free, places_made, places_room, chunks_made;
	int64_t promised; /* chunks that were sent, or will be */
	uint64_t tickets; /* bits: those taken */
};

/* How a problem is gone through. sizes->tier is 0 where no tier helps, or none can be used. */
void neap__online_sizes(struct neap__online_sizes *sizes, const struct neap_problem *p);
/* Rows of the ring of tapes that are kept in passing. */
int64_t neap__online_ring_room(const struct neap__online_sizes *sizes);
/* Sets *x up; all zero before. 0 or -ENOMEM. x borrows the chain. */
int neap__online_tier_init(struct neap__online_tier *x, const struct neap_chain *chain,
	const struct neap__online_sizes *sizes);
void neap__online_tier_fini(struct neap__online_tier *x);
/* Allocates all tables at their largest. 0 or -ENOMEM. */
int neap__online_tier_reserve(struct neap__online_tier *x);
/* Emits the next few actions; none at the end, once x->steps is known. 0 or a negative code. */
int neap__online_tier_refill(struct neap__online_tier *x, struct neap_schedule *s);
/* The chain ends: `at` is within the last ADVANCE or RECORD. */
void neap__online_tier_finish(struct neap__online_tier *x, int64_t at, int64_t steps);

/* The rest is shared by online_records.c and the files online_tier*.c. */

int64_t neap__online_slot(struct neap__online_tier *x);
void neap__online_slot_free(struct neap__online_tier *x, int64_t slot);
int32_t neap__online_ticket(struct neap__online_tier *x);
void neap__online_wait(struct neap__online_tier *x, struct neap_schedule *s, int32_t ticket);
/* Waits for the tapes that left first. */
void neap__online_wait_tapes(struct neap__online_tier *x, struct neap_schedule *s);
/* Gives up the place of a record, whose row goes. */
void neap__online_give_up(
	struct neap__online_tier *x, struct neap_schedule *s, const struct neap__online_record *r);
/* At the turn: forgets states on the tier that take longer to read than they save. 0 or -ENOMEM. */
int neap__online_choose_records(struct neap__online_tier *x, struct neap_schedule *s);
/* Drops all tapes in memory; those that are on their way out go on. */
void neap__online_drop_all(struct neap__online_tier *x, struct neap_schedule *s);
/* Sends all tapes that are still to be sent, drops the others, and waits. 0 or -ENOMEM. */
int neap__online_send_all(struct neap__online_tier *x, struct neap_schedule *s);
void neap__online_drop_tapes(struct neap_schedule *s, int64_t t0, int64_t t1);
/* Removes a record, and forgets its place. */
void neap__online_forget(struct neap__online_tier *x, struct neap_schedule *s, int64_t record);
/* The next actions of the reversal. */
int neap__online_tier_backward(struct neap__online_tier *x, struct neap_schedule *s);

static inline struct neap__online_tapes *neap__online_ring(
	const struct neap__online_tier *x, int64_t i)
{
	return &x->ring[(x->ring_head + i) % x->ring_room];
}

/* Bytes in use. */
static inline int64_t neap__online_used(const struct neap__online_tier *x)
{
	return x->held * x->sizes.state + x->taped * x->sizes.tape;
}

#endif
