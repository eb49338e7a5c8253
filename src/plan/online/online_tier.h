/* SPDX-License-Identifier: Apache-2.0 */
/*
 * online_tier.h: emits the actions of a sweep with a slow tier whose number of steps becomes known
 * only at its end. The forward pass prepares for any length:
 *
 *     states   are checkpointed in fast memory by online_placement.h. Whenever the tier is idle
 *              according to the planned costs, the oldest checkpoint is written and its memory
 * freed. tapes    while the chain is short, every step is recorded, and the tapes of the last R
 * steps are kept; older ones are dropped. A chain of R steps then needs no recomputation, and a
 * longer one saves R steps of it. After ring_until steps this is no longer faster. sent     if the
 * tier is fast enough, the tapes of `send` out of every send + J steps are written instead of
 * dropped; J is the number of steps of a leaf.
 *
 * The backward pass first uses the content of fast memory, then records of the tier, each of which
 * is prefetched while the part before it is reversed. When all places of the tier are used, every
 * second state is forgotten, and from then on half as many states are written.
 *
 *     P, S, A   bytes of fast memory for states and tapes, of a state, of a tape
 *     B         bytes reserved for tapes in transfer: two chunks of q steps, 0 if none are sent
 *     S + B     bytes reserved for records that are read while a part is reversed
 *
 * Our own method; the placement of states is from Wang, Moin and Iaccarino (2009).
 */
#ifndef NEAP_PLAN_ONLINE_ONLINE_TIER_H
#define NEAP_PLAN_ONLINE_ONLINE_TIER_H

#include "plan/online/online_placement.h"
#include "plan/core/schedule.h"

/* Limits of table sizes and of planning time; all chosen. */
#define NEAP__ONLINE_STATES 65536  /* places for states on the tier */
#define NEAP__ONLINE_CHUNKS 16384  /* places for chunks of tapes on the tier */
#define NEAP__ONLINE_PIECES 262144 /* tapes of single steps on the tier */
#define NEAP__ONLINE_RECENT 4096   /* R: steps whose tapes are kept in the forward pass */
#define NEAP__ONLINE_RECORDS 48	   /* transfers in flight; tickets are bits of a 64-bit word */
#define NEAP__ONLINE_LEAVING 2	   /* chunks of tapes in flight to the tier; B has room for two */

/* Values that depend only on the problem. */
struct neap__online_sizes {
	int tier;	/* from 1; 0: no tier helps */
	int64_t pool;	/* P */
	int64_t state;	/* S */
	int64_t tape;	/* A, 1 at least */
	int64_t slots;	/* largest number of states in memory, including one in transfer */
	int64_t recent; /* R */
	int64_t piece;	/* steps recorded at a time, if their tapes may be dropped later */
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
	int64_t slot; /* its destination; at the turn: the record that is read after it */
	double end;   /* planned end of its write; at the turn: of the reversal below it, seconds */
	int32_t ticket; /* of its transfer; -1: none */
	uint8_t coming; /* its read was issued */
};

struct neap__online_tapes {
	int64_t t0, t1;
	int send; /* 1: will be sent; 0: may be dropped; -1: sent or dropped */
};

struct neap__online_tier {
	const struct neap_chain *chain;
	struct neap__online_sizes sizes;
	struct neap__leaf_revolve costs;
	struct neap__placement
		placement; /* entry 0 is in its slot, if it has one, and on the tier */
	int64_t steps;	   /* T; INT64_MAX while the length is not known */
	int64_t from,
		at; /* range of the last ADVANCE or RECORD; live state at `at`, -1: undefined */
	int64_t position; /* step of the adjoint; -1: in the forward pass */
	int64_t level;	  /* of the part that starts with the live state */
	int64_t due;	  /* step of the next checkpoint; -1: not known */
	int begun, turned;
	int written;	     /* entry 0 of the list is on the tier, or its write is in flight */
	int keeps;	     /* the live state must be checkpointed next */
	double now, idle_at; /* planned seconds: elapsed; at which the tier becomes idle */
	int64_t send_left;   /* remaining steps of the current run of tapes to send */
	int64_t held, taped; /* slots in use; steps whose tapes are in memory or being read */
	int64_t stride;	     /* one in `stride` states is written */
	int full;	     /* the tier has no place left, even after forgetting states */
	/* Ring of the tapes in memory that were recorded in the forward pass. */
	struct neap__online_tapes *ring;
	int64_t ring_room, ring_head, ring_count, ring_steps;
	struct neap__online_record *records; /* by t0 */
	int64_t nrecords, records_room;
	int64_t asked; /* reads of records from this one on were issued, or are not needed */
	int32_t leaving[NEAP__ONLINE_LEAVING]; /* tickets of tapes, oldest first */
	int nleaving, states_coming;
	int64_t beside;		  /* size of tapes in memory below the current part, in states */
	int64_t chunks_coming;	  /* steps of chunks being read, or read and not yet reversed */
	int64_t chunks_beyond;	  /* of these, steps below a state that is also being read */
	int64_t leaf, leaf_piece; /* first step of the leaf whose tapes are in memory; -1: none */
	int32_t *free_slots;
	int64_t slots_free, slots_made, slots_room;
	int32_t *free_places; /* of states */
	int64_t places_free, places_made, places_room, chunks_made;
	int64_t promised; /* chunks that were or will be sent */
	uint64_t tickets; /* bit set of tickets in use */
};

/* Chooses the sizes for a problem. sizes->tier is 0 if no tier helps or can be used. */
void neap__online_sizes(struct neap__online_sizes *sizes, const struct neap_problem *p);
/* Number of rows of the ring of tapes. */
int64_t neap__online_ring_room(const struct neap__online_sizes *sizes);
/* Initialises *x, which is all zero; borrows the chain. Returns 0 or -ENOMEM. */
int neap__online_tier_init(struct neap__online_tier *x, const struct neap_chain *chain,
	const struct neap__online_sizes *sizes);
void neap__online_tier_fini(struct neap__online_tier *x);
/* Allocates all tables at their largest size. Returns 0 or -ENOMEM. */
int neap__online_tier_reserve(struct neap__online_tier *x);
/* Emits the next few actions; none at the end, when x->steps is known. 0 or a negative code. */
int neap__online_tier_refill(struct neap__online_tier *x, struct neap_schedule *s);
/* Ends the chain at step `at`, which is inside the last ADVANCE or RECORD. */
void neap__online_tier_finish(struct neap__online_tier *x, int64_t at, int64_t steps);

/* The following is shared by online_tier.c (forward pass), online_tier_reverse.c
 * (backward pass) and the files that both call: online_transfers.c, online_records.c. */

int64_t neap__online_slot(struct neap__online_tier *x);
void neap__online_slot_free(struct neap__online_tier *x, int64_t slot);
int32_t neap__online_ticket(struct neap__online_tier *x);
void neap__online_wait(struct neap__online_tier *x, struct neap_schedule *s, int32_t ticket);
/* Waits for the oldest tapes in flight. */
void neap__online_wait_tapes(struct neap__online_tier *x, struct neap_schedule *s);
/* Adds a record in order and plans its write; returns its ticket or a negative code. */
int neap__online_add_record(
	struct neap__online_tier *x, int64_t t0, int64_t t1, int64_t place, double seconds);
/* Frees memory of tapes. Returns 0 or a negative code. */
int neap__online_let_go(struct neap__online_tier *x, struct neap_schedule *s);
/* Starts to write tapes of the ring; their memory is freed by the wait. 0 or a negative code. */
int neap__online_send(
	struct neap__online_tier *x, struct neap_schedule *s, struct neap__online_tapes *tapes);
/* Index of the oldest tapes with this value of `send`; ring_count: none. */
int64_t neap__online_oldest(const struct neap__online_tier *x, int sent);
/* Drops all tapes that will not be sent. */
void neap__online_drop_unsent(struct neap__online_tier *x, struct neap_schedule *s);
/* Removes rows of sent or dropped tapes from the ring: all of them, or those at its start. */
void neap__online_close_ring(struct neap__online_tier *x);
void neap__online_pop_gone(struct neap__online_tier *x);
/* Frees the place of a record whose row is being removed. */
void neap__online_give_up(
	struct neap__online_tier *x, struct neap_schedule *s, const struct neap__online_record *r);
/* At the turn: forgets states whose reads take longer than the recomputation that they save. */
int neap__online_choose_records(struct neap__online_tier *x, struct neap_schedule *s);
/* Drops all tapes in memory; writes in flight continue. */
void neap__online_drop_all(struct neap__online_tier *x, struct neap_schedule *s);
/* Sends all tapes that are marked for it, drops the others, and waits. Returns 0 or -ENOMEM. */
int neap__online_send_all(struct neap__online_tier *x, struct neap_schedule *s);
void neap__online_drop_tapes(struct neap_schedule *s, int64_t t0, int64_t t1);
/* Removes a record and frees its place. */
void neap__online_forget(struct neap__online_tier *x, struct neap_schedule *s, int64_t record);
/* Emits the next actions of the backward pass. */
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
