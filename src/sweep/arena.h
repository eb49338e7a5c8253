/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.h: the one piece of memory of a sweep.
 *
 *     [staging][adjoint][live][tapes, growing up ...      ... slots, growing down]
 *
 * Slots are named by the schedule's numbers and lie at positions counted from
 * the top; a slot may move while nothing is in flight, so that free positions
 * never split the room for tapes. Tapes form a stack of extents. An extent with
 * t0 == t1 is a state kept for repairs (repair.c).
 */
#ifndef NEAP_SWEEP_ARENA_H
#define NEAP_SWEEP_ARENA_H

#include <stdint.h>
#include <neap/chain.h>

enum neap__slot_state { NEAP__SLOT_FREE, NEAP__SLOT_HELD, NEAP__SLOT_AWAITED };

struct neap__slot {
	int64_t t;
	int64_t position;
	int32_t pins; /* transfers in flight from or to it */
	int32_t state;
};

struct neap__extent {
	int64_t t0, t1; /* t0 > t1: freed, waiting to become the top */
	uint64_t offset, bytes;
};

struct neap__arena {
	unsigned char *base; /* NULL: not mapped */
	uint64_t mapped;
	uint64_t bytes;		       /* in use by this plan */
	uint64_t adjoint, live, tapes; /* offsets */
	uint64_t state;		       /* bytes of a slot */
	int poison;		       /* fill what is freed with 0xAA */

	struct neap__slot *slots;
	int64_t *occupant; /* of a position; -1: free */
	int64_t nslots, positions, free_hint;

	struct neap__extent *extents;
	int64_t nextents, extents_max;
	uint64_t top; /* end of the stack */

	uint64_t used, peak; /* bytes that count, now and at most */
};

/* Sizes the tables; 0 or -ENOMEM. fini frees them and the pages. */
int neap__arena_init(struct neap__arena *arena, int64_t slots, int64_t extents);
void neap__arena_fini(struct neap__arena *arena);
/* Empties it; `base` bytes count from the start (adjoint, live, staging in use). */
void neap__arena_reset(struct neap__arena *arena, uint64_t base);

/* Contiguous bytes between the tapes and the slots. */
uint64_t neap__arena_gap(const struct neap__arena *arena);
/* Takes a position for a free slot; the gap must hold it or a position be free. */
void neap__arena_take(struct neap__arena *arena, int64_t slot);
void neap__arena_drop(struct neap__arena *arena, int64_t slot);
unsigned char *neap__arena_slot(const struct neap__arena *arena, int64_t slot);
/* 1 when a free position lies below an occupied one; *slot would move there. */
int neap__arena_loose(struct neap__arena *arena, int64_t *slot);
/* Moves that slot into the free position. */
void neap__arena_pack(struct neap__arena *arena, int64_t slot);

/* Pushes an extent at the top of the stack; `bytes` must fit the gap. NULL: the table is full. */
struct neap__extent *neap__arena_push(
	struct neap__arena *arena, int64_t t0, int64_t t1, uint64_t bytes);
/* Frees an extent, and the freed ones below it once it was the top. */
void neap__arena_pop(struct neap__arena *arena, struct neap__extent *extent);
/* The top of the stack, or NULL. */
struct neap__extent *neap__arena_top(const struct neap__arena *arena);
/* The tape that ends at t, or NULL; *below becomes the greatest end of a tape at or below t. */
struct neap__extent *neap__arena_find(const struct neap__arena *arena, int64_t t, int64_t *below);

#endif
