/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.h: the one piece of memory of a sweep.
 *
 *     [staging][adjoint][live][tapes, growing up ...      ... slots, growing down]
 *
 * Slots are named by the schedule's numbers and lie at positions counted from the top. A slot may
 * move while it is not in flight, so that free positions never split the room for tapes. Tapes
 * form extents, in order of their offsets: a stack where all tapes stay. Where tapes leave for
 * tiers there are gaps between extents: tapes and, where the top has no room, slots go there, and
 * extents that are not in flight can move down. An extent with t0 == t1 is a state: one kept for
 * recovery (repair/recover_states.c), or a slot's. Logs lie among the tapes.
 */
#ifndef NEAP_SWEEP_ARENA_ARENA_H
#define NEAP_SWEEP_ARENA_ARENA_H

#include <stdint.h>
#include <neap/chain.h>
#include "sweep/arena/arena_memory.h"

enum neap__slot_state { NEAP__SLOT_FREE, NEAP__SLOT_HELD, NEAP__SLOT_AWAITED };

struct neap__slot {
	int64_t t;
	int64_t position;  /* -1: among the tapes */
	int32_t in_flight; /* transfers from or to it that were not waited for */
	int32_t state;
};

#define NEAP__LOG_EXTENT (-2) /* slot of an extent that is a log */

struct neap__arena_extent {
	int64_t t0, t1;
	uint64_t offset, bytes;
	int32_t slot;	/* whose state it is, else -1; NEAP__LOG_EXTENT: a log */
	int16_t flight; /* number of the ticket under which it leaves or comes, else -1 */
	int16_t pinned; /* 1: a tier reads or writes it, so it cannot move */
};

/* Room for an extent, which would be row `index` of the table. */
struct neap__place {
	int64_t index;
	uint64_t offset, bytes;
};

struct neap__arena {
	unsigned char *base; /* NULL: not mapped */
	uint64_t mapped;
	uint64_t mapping;	       /* number of the mapping: see struct neap__staging */
	uint64_t bytes;		       /* in use by this plan */
	uint64_t adjoint, live, tapes; /* offsets */
	uint64_t transit; /* offset of a state on its way; `live` where no token stands for it */
	uint64_t state;	  /* bytes of a slot */
	struct neap__memory memory; /* its bytes */
	int poison;		    /* fill what is freed with NEAP__POISON */
	int staging_held;	    /* transfers that were given up may still touch its staging */

	struct neap__slot *slots;
	int64_t *occupant; /* slot at a position; -1: free */
	int64_t nslots, positions, free_hint;

	struct neap__arena_extent *extents;
	int64_t nextents, extents_max;
	uint64_t top;  /* end of the last extent */
	uint64_t held; /* bytes of all extents */

	uint64_t used, peak; /* bytes that count, now and at most */
	uint64_t promised;   /* bytes for which there will be room; they count as used */
	uint64_t moved;	     /* bytes that were copied to make room */
};

/* Sizes the tables; 0 or -ENOMEM. fini frees them and the pages. */
int neap__arena_init(struct neap__arena *arena, int64_t slots, int64_t extents);
/* Makes the tables larger, with what they hold; never smaller. 0 or -ENOMEM. */
int neap__arena_extend(struct neap__arena *arena, int64_t slots, int64_t extents);
void neap__arena_fini(struct neap__arena *arena);
/* Unmaps the arena, but not staging that transfers which were given up may still touch. */
void neap__arena_unmap(struct neap__arena *arena);
/* Empties the arena; `base` bytes count from the start (adjoint, live state, staging). */
void neap__arena_reset(struct neap__arena *arena, uint64_t base);

/* Contiguous bytes between the tapes and the slots. */
uint64_t neap__arena_gap(const struct neap__arena *arena);
/* Gives a free slot a place: a position, the gap, or a gap among extents. There must be one. */
void neap__arena_take(struct neap__arena *arena, int64_t slot);
/* 1 if there is a place for a slot. */
int neap__arena_has_slot_room(const struct neap__arena *arena);
void neap__arena_drop(struct neap__arena *arena, int64_t slot);
unsigned char *neap__arena_slot(const struct neap__arena *arena, int64_t slot);
/* 1 when a free position lies nearer to the top than an occupied one, of *slot. */
int neap__arena_unpacked(struct neap__arena *arena, int64_t *slot);
/* Moves that slot to the free position. */
void neap__arena_pack(struct neap__arena *arena, int64_t slot);
/* `slot`, which holds nothing yet, and `other` change places. */
void neap__arena_swap(struct neap__arena *arena, int64_t slot, int64_t other);

/* Makes the arena larger by `bytes` that are mapped. Nothing is in flight, slots are packed. */
void neap__arena_grow(struct neap__arena *arena, uint64_t bytes);

/* Finds the lowest gap of `bytes` at least; that below the slots is the highest. 1 or 0. */
int neap__arena_fit(const struct neap__arena *arena, uint64_t bytes, struct neap__place *place);
/* Puts an extent at the start of a place that has room for it. NULL: the table is full. */
struct neap__arena_extent *neap__arena_insert(struct neap__arena *arena,
	const struct neap__place *place, int64_t t0, int64_t t1, uint64_t bytes);
/* Puts an extent above all others; `bytes` must fit the gap below the slots. */
struct neap__arena_extent *neap__arena_push(
	struct neap__arena *arena, int64_t t0, int64_t t1, uint64_t bytes);
/* Frees an extent. */
void neap__arena_pop(struct neap__arena *arena, struct neap__arena_extent *extent);
/* Frees the extents of a ticket. */
void neap__arena_release(struct neap__arena *arena, int flight);
/* Frees the extents of tapes of steps [t0, t1), but those in flight. */
void neap__arena_drop_tapes(struct neap__arena *arena, int64_t t0, int64_t t1);
/* Counts `bytes` that will be used but are not taken yet; and ends that. */
void neap__arena_promise(struct neap__arena *arena, uint64_t bytes);
void neap__arena_end_promise(struct neap__arena *arena, uint64_t bytes);
/* Moves extents down that are not pinned, until a gap has `bytes`. 1 if any moved. */
int neap__arena_slide(struct neap__arena *arena, uint64_t bytes);
/* The last extent, or NULL. */
struct neap__arena_extent *neap__arena_top(const struct neap__arena *arena);
/*
 * The tape that ends at t, or NULL; then *below becomes the greatest end of a tape below t, or -1.
 * Tapes in flight do not count.
 */
struct neap__arena_extent *neap__arena_find(
	const struct neap__arena *arena, int64_t t, int64_t *below);

#endif
