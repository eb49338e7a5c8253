/* SPDX-License-Identifier: Apache-2.0 */
#include "sweep/arena.h"
#include "base/fail.h"
#include "sys/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int neap__arena_init(struct neap__arena *arena, int64_t slots, int64_t extents)
{
	struct neap__slot *slot = calloc((size_t)slots + 1, sizeof *slot);
	int64_t *occupant = calloc((size_t)slots + 1, sizeof *occupant);
	struct neap__extent *extent = calloc((size_t)extents + 1, sizeof *extent);
	if (!slot || !occupant || !extent) {
		free(slot);
		free(occupant);
		free(extent);
		return neap__fail_errno(ENOMEM, "tables of a sweep");
	}
	free(arena->slots);
	free(arena->occupant);
	free(arena->extents);
	arena->slots = slot;
	arena->occupant = occupant;
	arena->extents = extent;
	arena->nslots = slots;
	arena->extents_max = extents;
	return 0;
}

void neap__arena_fini(struct neap__arena *arena)
{
	neap__unmap_pages(arena->base, arena->mapped);
	free(arena->slots);
	free(arena->occupant);
	free(arena->extents);
}

void neap__arena_reset(struct neap__arena *arena, uint64_t base)
{
	memset(arena->slots, 0, (size_t)arena->nslots * sizeof *arena->slots);
	for (int64_t i = 0; i < arena->nslots; i++)
		arena->occupant[i] = -1;
	arena->positions = arena->free_hint = 0;
	arena->nextents = 0;
	arena->top = arena->tapes;
	arena->used = arena->peak = base;
	if (arena->poison)
		memset(arena->base, 0xAA, arena->mapped);
}

static void count(struct neap__arena *arena, uint64_t bytes)
{
	arena->used += bytes;
	if (arena->used > arena->peak)
		arena->peak = arena->used;
}

static void spoil(struct neap__arena *arena, void *at, uint64_t bytes)
{
	if (arena->poison)
		memset(at, 0xAA, bytes);
}

uint64_t neap__arena_gap(const struct neap__arena *arena)
{
	return arena->bytes - (uint64_t)arena->positions * arena->state - arena->top;
}

static unsigned char *at_position(const struct neap__arena *arena, int64_t position)
{
	return arena->base + arena->bytes - (uint64_t)(position + 1) * arena->state;
}

unsigned char *neap__arena_slot(const struct neap__arena *arena, int64_t slot)
{
	return at_position(arena, arena->slots[slot].position);
}

/* The lowest free position is never below the hint. */
static int64_t lowest_free(struct neap__arena *arena)
{
	while (arena->free_hint < arena->positions && arena->occupant[arena->free_hint] >= 0)
		arena->free_hint++;
	return arena->free_hint;
}

static void vacate(struct neap__arena *arena, int64_t position)
{
	arena->occupant[position] = -1;
	if (position < arena->free_hint)
		arena->free_hint = position;
	while (arena->positions > 0 && arena->occupant[arena->positions - 1] < 0)
		arena->positions--;
	spoil(arena, at_position(arena, position), arena->state);
}

static void occupy(struct neap__arena *arena, int64_t slot, int64_t position)
{
	arena->occupant[position] = slot;
	arena->slots[slot].position = position;
	if (position >= arena->positions)
		arena->positions = position + 1;
}

void neap__arena_take(struct neap__arena *arena, int64_t slot)
{
	occupy(arena, slot, lowest_free(arena));
	count(arena, arena->state);
}

void neap__arena_drop(struct neap__arena *arena, int64_t slot)
{
	vacate(arena, arena->slots[slot].position);
	arena->slots[slot].state = NEAP__SLOT_FREE;
	arena->used -= arena->state;
}

int neap__arena_loose(struct neap__arena *arena, int64_t *slot)
{
	if (lowest_free(arena) >= arena->positions)
		return 0;
	*slot = arena->occupant[arena->positions - 1];
	return 1;
}

void neap__arena_pack(struct neap__arena *arena, int64_t slot)
{
	int64_t from = arena->slots[slot].position, to = lowest_free(arena);
	memcpy(at_position(arena, to), at_position(arena, from), arena->state);
	occupy(arena, slot, to);
	vacate(arena, from);
}

struct neap__extent *neap__arena_push(
	struct neap__arena *arena, int64_t t0, int64_t t1, uint64_t bytes)
{
	if (arena->nextents == arena->extents_max)
		return NULL;
	struct neap__extent *extent = &arena->extents[arena->nextents++];
	*extent = (struct neap__extent){t0, t1, arena->top, bytes};
	arena->top += bytes;
	count(arena, bytes);
	return extent;
}

void neap__arena_pop(struct neap__arena *arena, struct neap__extent *extent)
{
	arena->used -= extent->bytes;
	spoil(arena, arena->base + extent->offset, extent->bytes);
	extent->t0 = 1;
	extent->t1 = 0;
	while (arena->nextents > 0) {
		struct neap__extent *last = &arena->extents[arena->nextents - 1];
		if (last->t0 <= last->t1)
			break;
		arena->top = last->offset;
		arena->nextents--;
	}
}

struct neap__extent *neap__arena_top(const struct neap__arena *arena)
{
	return arena->nextents ? &arena->extents[arena->nextents - 1] : NULL;
}

struct neap__extent *neap__arena_find(const struct neap__arena *arena, int64_t t, int64_t *below)
{
	int64_t end = -1;
	for (int64_t i = arena->nextents - 1; i >= 0; i--) {
		struct neap__extent *extent = &arena->extents[i];
		if (extent->t0 >= extent->t1)
			continue;
		if (extent->t1 == t)
			return extent;
		if (extent->t1 < t && extent->t1 > end)
			end = extent->t1;
	}
	*below = end;
	return NULL;
}
