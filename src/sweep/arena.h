/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.h: the one piece of memory of a sweep.
 *
 *     [staging][adjoint][live][tapes, growing up ...      ... slots, growing down]
 *
 * Slots are named by the schedule's numbers and lie at positions counted from
 * the top; a slot may move while nothing is in flight, so that free positions
 * never split the room for tapes. Tapes form extents, in order of their offsets:
 * a stack where they all stay. Where tapes travel there are holes between them:
 * tapes and, where the top has no room, slots go into these; what is not in flight
 * can be moved down. An extent with t0 == t1 is a state: one kept for repairs
 * (recover_states.c), or a slot's. Logs lie among the tapes.
 */
#ifndef NEAP_SWEEP_ARENA_H
#define NEAP_SWEEP_ARENA_H

#include <stdint.h>
#include <neap/chain.h>

enum neap__slot_state { NEAP__SLOT_FREE, NEAP__SLOT_HELD, NEAP__SLOT_AWAITED };

struct neap__slot {
	int64_t t;
	int64_t position;  /* -1: among the tapes */
	int32_t in_flight; /* transfers in flight from or to it */
	int32_t state;
};

#define NEAP__LOG_EXTENT (-2)

struct neap__arena_extent {
	int64_t t0, t1;
	uint64_t offset, bytes;
	int32_t slot;	/* whose state it is, else -1; NEAP__LOG_EXTENT: a log */
	int16_t flight; /* ticket under which it leaves or comes, else -1 */
	int16_t pinned; /* an engine is at it */
};

/* Room for an extent: as row `index` of the table. */
struct neap__place {
	int64_t index;
	uint64_t offset, bytes;
};

struct neap__arena {
	unsigned char *base; /* NULL: not mapped */
	uint64_t mapped;
	uint64_t mapping;	       /* tells its pages from earlier ones */
	uint64_t bytes;		       /* in use by this plan */
	uint64_t adjoint, live, tapes; /* offsets */
	uint64_t state;		       /* bytes of a slot */
	int poison;		       /* fill what is freed with 0xAA */
	int staging_held; /* transfers that were given up may still touch its staging */

	struct neap__slot *slots;
	int64_t *occupant; /* of a position; -1: free */
	int64_t nslots, positions, free_hint;

	struct neap__arena_extent *extents;
	int64_t nextents, extents_max;
	uint64_t top;  /* end of the last extent */
	uint64_t held; /* bytes of all extents */

	uint64_t used, peak; /* bytes that count, now and at most */
	uint64_t promised;   /* bytes for which there will be room: they count */
	uint64_t moved;	     /* bytes, to make room */
};

/* Sizes the tables; 0 or -ENOMEM. fini frees them and the pages. */
int neap__arena_init(struct neap__arena *arena, int64_t slots, int64_t extents);
void neap__arena_fini(struct neap__arena *arena);
/* Gives its pages back, but staging to which somebody clings: that is left behind. */
void neap__arena_unmap(struct neap__arena *arena);
/* Empties it; `base` bytes count from the start (adjoint, live, staging in use). */
void neap__arena_reset(struct neap__arena *arena, uint64_t base);

/* Contiguous bytes between the tapes and the slots. */
uint64_t neap__arena_gap(const struct neap__arena *arena);
/* Takes a place for a free slot: a position, the gap, or a hole; one must be there. */
void neap__arena_take(struct neap__arena *arena, int64_t slot);
/* 1 if it would need to look no further. */
int neap__arena_has_slot_room(const struct neap__arena *arena);
void neap__arena_drop(struct neap__arena *arena, int64_t slot);
unsigned char *neap__arena_slot(const struct neap__arena *arena, int64_t slot);
/* 1 when a free position lies below an occupied one; *slot would move there. */
int neap__arena_unpacked(struct neap__arena *arena, int64_t *slot);
/* Moves that slot into the free position. */
void neap__arena_pack(struct neap__arena *arena, int64_t slot);
/* A slot that holds nothing yet takes the place of another, which moves to its. */
void neap__arena_swap(struct neap__arena *arena, int64_t slot, int64_t other);

/* Makes it larger by so many bytes, which are mapped. Nothing is in flight; slots are packed. */
void neap__arena_grow(struct neap__arena *arena, uint64_t bytes);

/* The lowest hole of `bytes` at least; the gap is the highest. 1 if there is one. */
int neap__arena_fit(const struct neap__arena *arena, uint64_t bytes, struct neap__place *place);
/* Puts an extent at the start of a place that has room for it. NULL: the table is full. */
struct neap__arena_extent *neap__arena_insert(struct neap__arena *arena,
	const struct neap__place *place, int64_t t0, int64_t t1, uint64_t bytes);
/* The same at the top; `bytes` must fit the gap. */
struct neap__arena_extent *neap__arena_push(
	struct neap__arena *arena, int64_t t0, int64_t t1, uint64_t bytes);
/* Frees an extent. */
void neap__arena_pop(struct neap__arena *arena, struct neap__arena_extent *extent);
/* Frees those of a flight. */
void neap__arena_release(struct neap__arena *arena, int flight);
/* Promises room, which something else may hold that will give way; or no longer. */
void neap__arena_promise(struct neap__arena *arena, uint64_t bytes);
void neap__arena_end_promise(struct neap__arena *arena, uint64_t bytes);
/*
 * Moves extents that are not pinned down, until there is a hole of `bytes`. 1 if
 * any moved.
 */
int neap__arena_slide(struct neap__arena *arena, uint64_t bytes);
/* The last extent, or NULL. */
struct neap__arena_extent *neap__arena_top(const struct neap__arena *arena);
/*
 * The tape that ends at t, or NULL; *below becomes the greatest end of a tape at or
 * below t. Tapes in flight are not looked at.
 */
struct neap__arena_extent *neap__arena_find(
	const struct neap__arena *arena, int64_t t, int64_t *below);

#endif
