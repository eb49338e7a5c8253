/* SPDX-License-Identifier: Apache-2.0 */
/* arena.c: the tables of the arena: positions of slots, and extents in order of their offsets. */
#include "sweep/arena/arena.h"
#include "base/checked.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int neap__arena_init(struct neap__arena *arena, int64_t slots, int64_t extents)
{
	struct neap__slot *slot = calloc((size_t)slots + 1, sizeof *slot);
	int64_t *occupant = calloc((size_t)slots + 1, sizeof *occupant);
	struct neap__arena_extent *extent = calloc((size_t)extents + 1, sizeof *extent);
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

int neap__arena_extend(struct neap__arena *arena, int64_t slots, int64_t extents)
{
	if (slots > arena->nslots) {
		struct neap__slot *slot = realloc(arena->slots, ((size_t)slots + 1) * sizeof *slot);
		arena->slots = slot ? slot : arena->slots;
		int64_t *occupant =
			realloc(arena->occupant, ((size_t)slots + 1) * sizeof *occupant);
		arena->occupant = occupant ? occupant : arena->occupant;
		if (!slot || !occupant)
			return neap__fail_errno(ENOMEM, "tables of a sweep");
		memset(slot + arena->nslots, 0,
			((size_t)(slots - arena->nslots) + 1) * sizeof *slot);
		for (int64_t i = arena->nslots; i <= slots; i++)
			occupant[i] = -1;
		arena->nslots = slots;
	}
	if (extents > arena->extents_max) {
		struct neap__arena_extent *extent =
			realloc(arena->extents, ((size_t)extents + 1) * sizeof *extent);
		if (!extent)
			return neap__fail_errno(ENOMEM, "tables of a sweep");
		memset(extent + arena->extents_max, 0,
			((size_t)(extents - arena->extents_max) + 1) * sizeof *extent);
		arena->extents = extent;
		arena->extents_max = extents;
	}
	return 0;
}

void neap__arena_unmap(struct neap__arena *arena)
{
	uint64_t stays = arena->staging_held ? neap__round_up(arena->adjoint, 4096) : 0;
	if (stays < arena->mapped)
		neap__memory_unmap(&arena->memory, arena->base + stays, arena->mapped - stays);
	arena->base = NULL;
	arena->mapped = 0;
	arena->staging_held = 0;
}

void neap__arena_fini(struct neap__arena *arena)
{
	neap__arena_unmap(arena);
	neap__memory_fini(&arena->memory);
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
	arena->held = arena->moved = arena->promised = 0;
	arena->used = arena->peak = base;
	if (arena->poison) /* not staging: a transfer of an earlier run may still touch it */
		neap__memory_fill(&arena->memory, arena->base + arena->adjoint, NEAP__POISON,
			arena->mapped - arena->adjoint);
}

static void count(struct neap__arena *arena, uint64_t bytes)
{
	arena->used += bytes;
	uint64_t all = arena->used + arena->promised;
	if (arena->promised && all > arena->bytes)
		all = arena->used > arena->bytes ? arena->used : arena->bytes;
	if (all > arena->peak)
		arena->peak = all;
}

static void poison(struct neap__arena *arena, void *at, uint64_t bytes)
{
	if (arena->poison)
		neap__memory_fill(&arena->memory, at, NEAP__POISON, bytes);
}

uint64_t neap__arena_gap(const struct neap__arena *arena)
{
	return arena->bytes - (uint64_t)arena->positions * arena->state - arena->top;
}

static unsigned char *at_position(const struct neap__arena *arena, int64_t position)
{
	return arena->base + arena->bytes - (uint64_t)(position + 1) * arena->state;
}

/* The extent of a slot that lies among the tapes. */
static struct neap__arena_extent *row_of(const struct neap__arena *arena, int64_t slot)
{
	struct neap__arena_extent *extent = arena->extents;
	while (extent->slot != slot)
		extent++;
	return extent;
}

unsigned char *neap__arena_slot(const struct neap__arena *arena, int64_t slot)
{
	int64_t position = arena->slots[slot].position;
	return position < 0 ? arena->base + row_of(arena, slot)->offset
			    : at_position(arena, position);
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
	poison(arena, at_position(arena, position), arena->state);
}

static void occupy(struct neap__arena *arena, int64_t slot, int64_t position)
{
	arena->occupant[position] = slot;
	arena->slots[slot].position = position;
	if (position >= arena->positions)
		arena->positions = position + 1;
}

static int position_left(const struct neap__arena *arena)
{
	int64_t free = arena->free_hint;
	while (free < arena->positions && arena->occupant[free] >= 0)
		free++;
	return free < arena->positions || neap__arena_gap(arena) >= arena->state;
}

int neap__arena_has_slot_room(const struct neap__arena *arena)
{
	struct neap__place place;
	return position_left(arena) || (arena->nextents < arena->extents_max &&
					       neap__arena_fit(arena, arena->state, &place));
}

void neap__arena_take(struct neap__arena *arena, int64_t slot)
{
	struct neap__place place;
	if (position_left(arena) || !neap__arena_fit(arena, arena->state, &place)) {
		occupy(arena, slot, lowest_free(arena));
		count(arena, arena->state);
		return;
	}
	neap__arena_insert(arena, &place, 0, 0, arena->state)->slot = (int32_t)slot;
	arena->slots[slot].position = -1;
}

void neap__arena_drop(struct neap__arena *arena, int64_t slot)
{
	struct neap__slot *row = &arena->slots[slot];
	row->state = NEAP__SLOT_FREE;
	if (row->position < 0) {
		neap__arena_pop(arena, row_of(arena, slot));
		return;
	}
	vacate(arena, row->position);
	arena->used -= arena->state;
}

int neap__arena_unpacked(struct neap__arena *arena, int64_t *slot)
{
	if (lowest_free(arena) >= arena->positions)
		return 0;
	*slot = arena->occupant[arena->positions - 1];
	return 1;
}

void neap__arena_pack(struct neap__arena *arena, int64_t slot)
{
	int64_t from = arena->slots[slot].position, to = lowest_free(arena);
	neap__memory_move(
		&arena->memory, at_position(arena, to), at_position(arena, from), arena->state);
	arena->moved += arena->state;
	occupy(arena, slot, to);
	vacate(arena, from);
}

void neap__arena_swap(struct neap__arena *arena, int64_t slot, int64_t other)
{
	int64_t from = arena->slots[slot].position, to = arena->slots[other].position;
	neap__memory_move(
		&arena->memory, at_position(arena, from), at_position(arena, to), arena->state);
	arena->moved += arena->state;
	arena->slots[slot].position = to;
	arena->slots[other].position = from;
	arena->occupant[to] = slot;
	arena->occupant[from] = other;
}

void neap__arena_grow(struct neap__arena *arena, uint64_t bytes)
{
	uint64_t held = (uint64_t)arena->positions * arena->state;
	uint64_t from = arena->bytes - held, to = from + bytes;
	neap__memory_move(&arena->memory, arena->base + to, arena->base + from, held);
	poison(arena, arena->base + from, bytes < held ? bytes : held);
	arena->bytes += bytes;
}

static uint64_t end_of(const struct neap__arena *arena, int64_t index)
{
	return index < 0 ? arena->tapes
			 : arena->extents[index].offset + arena->extents[index].bytes;
}

int neap__arena_fit(const struct neap__arena *arena, uint64_t bytes, struct neap__place *place)
{
	int64_t i = arena->top - arena->tapes == arena->held ? arena->nextents : 0;
	uint64_t below = end_of(arena, i - 1);
	for (; i < arena->nextents; i++) {
		uint64_t hole = arena->extents[i].offset - below;
		if (hole >= bytes && hole > 0) {
			*place = (struct neap__place){i, below, hole};
			return 1;
		}
		below = end_of(arena, i);
	}
	*place = (struct neap__place){i, arena->top, neap__arena_gap(arena)};
	return place->bytes >= bytes;
}

struct neap__arena_extent *neap__arena_insert(struct neap__arena *arena,
	const struct neap__place *place, int64_t t0, int64_t t1, uint64_t bytes)
{
	if (arena->nextents == arena->extents_max)
		return NULL;
	struct neap__arena_extent *extent = &arena->extents[place->index];
	memmove(extent + 1, extent, (size_t)(arena->nextents - place->index) * sizeof *extent);
	*extent = (struct neap__arena_extent){t0, t1, place->offset, bytes, -1, -1, 0};
	arena->nextents++;
	arena->top = end_of(arena, arena->nextents - 1);
	arena->held += bytes;
	count(arena, bytes);
	return extent;
}

struct neap__arena_extent *neap__arena_push(
	struct neap__arena *arena, int64_t t0, int64_t t1, uint64_t bytes)
{
	struct neap__place place = {arena->nextents, arena->top, bytes};
	return neap__arena_insert(arena, &place, t0, t1, bytes);
}

static void leave(struct neap__arena *arena, const struct neap__arena_extent *extent)
{
	arena->used -= extent->bytes;
	arena->held -= extent->bytes;
	poison(arena, arena->base + extent->offset, extent->bytes);
}

void neap__arena_pop(struct neap__arena *arena, struct neap__arena_extent *extent)
{
	leave(arena, extent);
	arena->nextents--;
	memmove(extent, extent + 1,
		(size_t)(&arena->extents[arena->nextents] - extent) * sizeof *extent);
	arena->top = end_of(arena, arena->nextents - 1);
}

void neap__arena_release(struct neap__arena *arena, int flight)
{
	int64_t left = 0;
	for (int64_t i = 0; i < arena->nextents; i++) {
		if (arena->extents[i].flight == flight)
			leave(arena, &arena->extents[i]);
		else
			arena->extents[left++] = arena->extents[i];
	}
	arena->nextents = left;
	arena->top = end_of(arena, left - 1);
}

void neap__arena_drop_tapes(struct neap__arena *arena, int64_t t0, int64_t t1)
{
	int64_t left = 0;
	for (int64_t i = 0; i < arena->nextents; i++) {
		struct neap__arena_extent *extent = &arena->extents[i];
		int tapes = extent->t0 < extent->t1 && extent->slot != NEAP__LOG_EXTENT;
		if (tapes && extent->flight < 0 && extent->t0 < t1 && extent->t1 > t0)
			leave(arena, extent);
		else
			arena->extents[left++] = *extent;
	}
	arena->nextents = left;
	arena->top = end_of(arena, left - 1);
}

void neap__arena_promise(struct neap__arena *arena, uint64_t bytes)
{
	arena->promised += bytes;
	count(arena, 0);
}

void neap__arena_end_promise(struct neap__arena *arena, uint64_t bytes)
{
	arena->promised -= bytes;
}

int neap__arena_slide(struct neap__arena *arena, uint64_t bytes)
{
	uint64_t below = arena->tapes;
	int moved = 0;
	if (arena->top - arena->tapes == arena->held)
		return 0;
	for (int64_t i = 0; i < arena->nextents; i++) {
		struct neap__arena_extent *extent = &arena->extents[i];
		if (extent->offset - below >= bytes)
			break;
		if (extent->offset > below && !extent->pinned) {
			uint64_t from = extent->offset, end = from + extent->bytes;
			neap__memory_move(&arena->memory, arena->base + below, arena->base + from,
				extent->bytes);
			extent->offset = below;
			arena->moved += extent->bytes;
			uint64_t free = below + extent->bytes > from ? below + extent->bytes : from;
			poison(arena, arena->base + free, end - free);
			moved = 1;
		}
		below = end_of(arena, i);
	}
	arena->top = end_of(arena, arena->nextents - 1);
	return moved;
}

struct neap__arena_extent *neap__arena_top(const struct neap__arena *arena)
{
	return arena->nextents ? &arena->extents[arena->nextents - 1] : NULL;
}

struct neap__arena_extent *neap__arena_find(
	const struct neap__arena *arena, int64_t t, int64_t *below)
{
	int64_t end = -1;
	for (int64_t i = arena->nextents - 1; i >= 0; i--) {
		struct neap__arena_extent *extent = &arena->extents[i];
		if (extent->t0 >= extent->t1 || extent->flight >= 0 ||
			extent->slot == NEAP__LOG_EXTENT)
			continue;
		if (extent->t1 == t)
			return extent;
		if (extent->t1 < t && extent->t1 > end)
			end = extent->t1;
	}
	*below = end;
	return NULL;
}
