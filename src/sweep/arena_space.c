/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena_space.c: room in the arena. The plan counts what is there, without gaps; so for
 * tapes of one size everything always fits once the holes are closed, which costs
 * copies and, where an engine is at what is in the way, a wait. What is cheapest is
 * tried first: holes as they are, then moves, then waits, then what can be made
 * again (states kept for repairs; tapes, if all else fails).
 */
#include "sweep/arena_space.h"
#include "sweep/step_logs.h"
#include "sweep/steps.h"
#include "sweep/transfer.h"
#include "base/checked.h"
#include "base/fail.h"

enum { SETTLE = 1, EVICT = 2, LOGS = 4 };

/* Extents that are slots being sent stay where they are. */
static void pin_slots(struct neap_sweep *s)
{
	struct neap__arena *arena = &s->arena;
	for (int64_t i = 0; i < arena->nextents; i++)
		if (arena->extents[i].slot >= 0)
			arena->extents[i].pinned =
				(int16_t)neap__transfer_in_flight(s, arena->extents[i].slot);
}

static int slide(struct neap_sweep *s, uint64_t bytes)
{
	if (s->arena.top - s->arena.tapes == s->arena.held)
		return 0;
	pin_slots(s);
	return neap__arena_slide(&s->arena, bytes);
}

/* The topmost state kept for repairs. */
static struct neap__arena_extent *repair_state(const struct neap__arena *arena)
{
	for (int64_t i = arena->nextents - 1; i >= 0; i--)
		if (arena->extents[i].t0 == arena->extents[i].t1 && arena->extents[i].slot < 0)
			return &arena->extents[i];
	return NULL;
}

/* Tapes that are on a tier already, though nobody waited for it: forgone without loss. */
static int release_sent(struct neap_sweep *s)
{
	for (int64_t i = s->arena.nextents - 1; i >= 0; i--) {
		const struct neap__arena_extent *extent = &s->arena.extents[i];
		if (extent->flight >= 0 && s->tickets[extent->flight].put && !extent->pinned) {
			neap__arena_release(&s->arena, extent->flight);
			return 1;
		}
	}
	return 0;
}

static int evict_tape(struct neap_sweep *s)
{
	for (int64_t i = s->arena.nextents - 1; i >= 0; i--) {
		struct neap__arena_extent *extent = &s->arena.extents[i];
		if (extent->pinned || extent->t0 == extent->t1 || extent->slot == NEAP__LOG_EXTENT)
			continue;
		neap__count_overflow(s, extent->t0, extent->t1);
		neap__arena_pop(&s->arena, extent);
		return 1;
	}
	return 0;
}

/* Makes one thing give way, the cheapest; `bytes`: the hole that is wanted. */
static int loosen(struct neap_sweep *s, uint64_t bytes, int how)
{
	struct neap__arena *arena = &s->arena;
	int64_t slot;
	if (arena->nextents < arena->extents_max) {
		int loose = neap__arena_unpacked(arena, &slot);
		int flies = loose && neap__transfer_in_flight(s, slot);
		if (loose && flies && how & SETTLE) {
			if (slide(s, bytes))
				return 1;
			neap__transfer_end_slot(s, slot);
			flies = 0;
		}
		if (loose && !flies) {
			neap__arena_pack(arena, slot);
			return 1;
		}
		if (slide(s, bytes) || (how & SETTLE && neap__transfer_end_oldest(s)))
			return 1;
	}
	struct neap__arena_extent *state = how & SETTLE ? repair_state(arena) : NULL;
	if (state) {
		neap__arena_pop(arena, state);
		return 1;
	}
	return (how & SETTLE && release_sent(s)) || (how & LOGS && neap__log_evict(s)) ||
	       (how & EVICT && evict_tape(s));
}

static int refuse(const struct neap_sweep *s, uint64_t bytes)
{
	return neap__fail(NEAP_EILLEGAL, "the arena of %llu bytes has no room for %llu more",
		(unsigned long long)s->arena.bytes, (unsigned long long)bytes);
}

int neap__arena_space_gap(struct neap_sweep *s, uint64_t bytes, int evict)
{
	struct neap__arena *arena = &s->arena;
	while (neap__arena_gap(arena) < bytes || arena->nextents == arena->extents_max)
		if (!loosen(s, UINT64_MAX, SETTLE | LOGS | (evict ? EVICT : 0)))
			return evict ? refuse(s, bytes) : 0;
	return 0;
}

int neap__arena_space_slot(struct neap_sweep *s)
{
	while (!neap__arena_has_slot_room(&s->arena))
		if (!loosen(s, s->arena.state, SETTLE | LOGS | EVICT))
			return refuse(s, s->arena.state);
	return 0;
}

static int hole(struct neap_sweep *s, uint64_t bytes, int how, struct neap__place *place)
{
	struct neap__arena *arena = &s->arena;
	while (arena->nextents == arena->extents_max || !neap__arena_fit(arena, bytes, place))
		if (!loosen(s, bytes, how))
			return 0;
	return 1;
}

int neap__arena_space_hole(
	struct neap_sweep *s, uint64_t bytes, int settle, struct neap__place *place)
{
	return hole(s, bytes, settle ? SETTLE | LOGS : 0, place);
}

int neap__arena_space_log(struct neap_sweep *s, uint64_t bytes, struct neap__place *place)
{
	return hole(s, bytes, SETTLE, place) || hole(s, bytes / 2, SETTLE, place);
}

void neap__arena_space_pack(struct neap_sweep *s)
{
	int64_t slot;
	while (neap__arena_unpacked(&s->arena, &slot) && !neap__transfer_in_flight(s, slot))
		neap__arena_pack(&s->arena, slot);
	(void)slide(s, UINT64_MAX);
}

int neap__arena_space_tapes(
	struct neap_sweep *s, int64_t steps, int64_t least, struct neap__place *place)
{
	const struct neap__arena *arena = &s->arena;
	uint64_t tape = s->problem.chain.tape, worst = neap__worst(s), spare = worst - tape;
	uint64_t all = neap__sat_add(neap__sat_mul((uint64_t)steps, tape), spare);
	uint64_t some = neap__sat_add((uint64_t)(least < steps ? least : steps) * tape, spare);
	if (arena->nextents < arena->extents_max &&
		(neap__arena_fit(arena, all, place) || neap__arena_fit(arena, some, place)))
		return 1;
	return neap__arena_space_hole(s, some, 1, place) ||
	       neap__arena_space_hole(s, worst, 1, place);
}
