/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena_space.c: room in the arena. The plan counts bytes without gaps. So tapes of one size
 * always fit once the gaps are closed, which costs copies and, where a tier reads or writes what
 * is in the way, a wait. Means are tried from the cheapest on: gaps as they are, then moves, then
 * waits, then what can be made again (states kept for recovery, logs; tapes, if all else fails).
 */
#include "sweep/arena/arena_space.h"
#include "sweep/arena/arena_logs.h"
#include "sweep/steps/counts.h"
#include "sweep/transfers/transfer.h"
#include "base/checked.h"
#include "base/fail.h"

/* What may be given up for room: time (waits for transfers), tapes, logs. */
enum { WAIT = 1, TAPES = 2, LOGS = 4 };

/* Pins the extents of slots that are in flight. */
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

/* The topmost state kept for recovery, or NULL. */
static struct neap__arena_extent *recovery_state(const struct neap__arena *arena)
{
	for (int64_t i = arena->nextents - 1; i >= 0; i--)
		if (arena->extents[i].t0 == arena->extents[i].t1 && arena->extents[i].slot < 0)
			return &arena->extents[i];
	return NULL;
}

/* Frees tapes that a tier has already, though their WAIT did not come yet. 1 if there are some. */
static int release_sent(struct neap_sweep *s)
{
	for (int64_t i = s->arena.nextents - 1; i >= 0; i--) {
		const struct neap__arena_extent *extent = &s->arena.extents[i];
		if (extent->flight >= 0 && s->tickets[extent->flight].request.put &&
			!extent->pinned) {
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

/* Gives up the cheapest thing that `how` allows; `bytes`: the gap that is wanted. 1, 0: none. */
static int give_up_one(struct neap_sweep *s, uint64_t bytes, int how)
{
	struct neap__arena *arena = &s->arena;
	int64_t slot;
	if (arena->nextents < arena->extents_max) {
		int unpacked = neap__arena_unpacked(arena, &slot);
		int in_flight = unpacked && neap__transfer_in_flight(s, slot);
		if (unpacked && in_flight && how & WAIT) {
			if (slide(s, bytes))
				return 1;
			neap__transfer_end_slot(s, slot);
			in_flight = 0;
		}
		if (unpacked && !in_flight) {
			neap__arena_pack(arena, slot);
			return 1;
		}
		if (slide(s, bytes) ||
			(how & WAIT && s->sizes.scattered && neap__transfer_end_oldest(s)))
			return 1;
	}
	struct neap__arena_extent *state = how & WAIT ? recovery_state(arena) : NULL;
	if (state) {
		neap__arena_pop(arena, state);
		return 1;
	}
	return (how & WAIT && release_sent(s)) || (how & LOGS && neap__log_evict(s)) ||
	       (how & TAPES && evict_tape(s));
}

static int refuse(const struct neap_sweep *s, uint64_t bytes)
{
	return neap__fail(NEAP_EILLEGAL, "the arena of %llu bytes has no room for %llu more",
		(unsigned long long)s->arena.bytes, (unsigned long long)bytes);
}

int neap__arena_space_gap(struct neap_sweep *s, uint64_t bytes, int evict)
{
	struct neap__arena *arena = &s->arena;
	while (neap__arena_gap(arena) < bytes || arena->nextents == arena->extents_max) {
		if (give_up_one(s, UINT64_MAX, WAIT | LOGS | (evict ? TAPES : 0)))
			continue;
		if (!evict)
			return 0;
		if (!neap__transfer_end_oldest(s)) /* a slot among tapes cannot move before */
			return refuse(s, bytes);
	}
	return 0;
}

int neap__arena_space_slot(struct neap_sweep *s)
{
	while (!neap__arena_has_slot_room(&s->arena))
		if (!give_up_one(s, s->arena.state, WAIT | LOGS | TAPES))
			return refuse(s, s->arena.state);
	return 0;
}

static int hole(struct neap_sweep *s, uint64_t bytes, int how, struct neap__place *place)
{
	struct neap__arena *arena = &s->arena;
	while (arena->nextents == arena->extents_max || !neap__arena_fit(arena, bytes, place))
		if (!give_up_one(s, bytes, how))
			return 0;
	return 1;
}

int neap__arena_space_hole(
	struct neap_sweep *s, uint64_t bytes, int wait, struct neap__place *place)
{
	return hole(s, bytes, wait ? WAIT | LOGS : 0, place);
}

int neap__arena_space_log(struct neap_sweep *s, uint64_t bytes, struct neap__place *place)
{
	return hole(s, bytes, WAIT, place) || hole(s, bytes / 2, WAIT, place);
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
