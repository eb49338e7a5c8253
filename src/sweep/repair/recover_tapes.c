/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recover_tapes.c: recovers missing tapes. A hole is a range of steps that the schedule recorded
 * but whose tapes did not fit or were lost.
 *
 * A hole is recovered from its end, a leaf of tapes at a time. States are kept in the room beside
 * the leaf, where Revolve places them (Griewank, Walther 2000), in units of a leaf. With c states
 * and each unit passed r times at most, Revolve reverses C(c + r, c) units. States lie above the
 * tapes while the hole lasts, and give way to whatever the schedule asks for.
 */
#include "sweep/repair/recover_tapes.h"
#include "sweep/arena/arena_space.h"
#include "sweep/steps/copies.h"
#include "sweep/steps/counts.h"
#include "sweep/steps/pieces.h"
#include "sweep/repair/recover_states.h"
#include "sweep/repair/repair_costs.h"
#include "sweep/repair/rewrite_records.h"
#include "sweep/transfers/tape_transfer.h"
#include "sweep/transfers/transfer.h"
#include "base/fail.h"
#include "plan/recompute/binomial.h"
#include "sys/clock.h"

/*
 * Begins the recovery of a hole [h0, t). Tapes below the hole take the room of states that would
 * make it cheap: they are given up where that costs fewer steps in all.
 */
static int open_hole(struct neap_sweep *s, int64_t low, int64_t h0, int64_t t)
{
	struct neap__arena *arena = &s->arena;
	NEAP_TRY(neap__arena_space_gap(s, neap__worst(s), 1));
	uint64_t gap = neap__arena_gap(arena);
	double best = neap__recover_tapes_cost(s, t - h0, gap);
	int64_t keep = arena->nextents;
	for (int64_t i = arena->nextents - 1; i >= 0; i--) {
		const struct neap__arena_extent *extent = &arena->extents[i];
		if (extent->t1 > h0 || extent->t0 < low || extent->t0 >= extent->t1 ||
			extent->flight >= 0)
			break;
		gap += extent->bytes;
		double c = neap__recover_tapes_cost(s, t - extent->t0, gap);
		if (c < best) {
			best = c;
			keep = i;
		}
	}
	while (arena->nextents > keep) {
		const struct neap__arena_extent *top = neap__arena_top(arena);
		neap__count_overflow(s, top->t0, top->t1);
		neap__arena_pop(arena, neap__arena_top(arena));
	}
	s->leaf_bytes = neap__recovery_share(s, neap__arena_gap(arena)).bytes;
	return 0;
}

/*
 * Moves the live state to where the last leaf before t begins, at `low` or above, and keeps states
 * on the way. `kept`: the live state is kept already.
 */
static int advance_to_leaf(struct neap_sweep *s, int64_t low, int64_t t, int kept)
{
	struct neap__arena *arena = &s->arena;
	for (;;) {
		int64_t n = t - s->live_t, m = neap__recovery_leaf_steps(s, s->leaf_bytes);
		uint64_t gap = neap__arena_gap(arena);
		int64_t states =
			gap > s->leaf_bytes ? (int64_t)((gap - s->leaf_bytes) / arena->state) : 0;
		int64_t start = t - m > low ? t - m : low;
		if (s->live_t >= start)
			return 0;
		if (states < 1 || n <= m || arena->nextents + 2 > arena->extents_max)
			return neap__rewrite_to(s, start);
		if (kept) {
			struct neap__binomial units = neap__binomial((n + m - 1) / m, states + 1);
			int64_t y = neap__binomial_split(&units) * m;
			y = s->live_t + (y < n ? y : n - m);
			NEAP_TRY(neap__rewrite_to(s, y < start ? y : start));
		}
		if (s->live_t >= start && s->live_t > t - m)
			return 0;
		struct neap__arena_extent *state =
			neap__arena_push(arena, s->live_t, s->live_t, arena->state);
		NEAP_TRY(neap__copy_save(s, arena->base + state->offset));
		kept = 1;
	}
}

/* Records from the live state to t; where tapes do not fit, the earlier ones are freed. */
static int record_leaf(struct neap_sweep *s, int64_t t0, int64_t t)
{
	struct neap__arena *arena = &s->arena;
	int64_t floor = arena->nextents;
	while (s->live_t < t) {
		int64_t target = s->live_t < t0 ? t0 : t;
		NEAP_TRY(neap__step_record(s, target));
		if (s->live_t == target)
			continue;
		if (arena->nextents > floor) {
			while (arena->nextents > floor)
				neap__arena_pop(arena, neap__arena_top(arena));
		} else {
			NEAP_TRY(neap__arena_space_gap(s, neap__worst(s), 1));
			floor = arena->nextents;
		}
	}
	return 0;
}

static int64_t start_of_hole(const struct neap_sweep *s, int64_t low, int64_t t)
{
	int64_t below;
	(void)neap__arena_find(&s->arena, t, &below);
	return below > low ? below : low;
}

/* 1 if a state is kept in the hole [h0, t): its recovery has begun then. */
static int state_within(const struct neap_sweep *s, int64_t h0, int64_t t)
{
	for (int64_t i = 0; i < s->arena.nextents; i++) {
		const struct neap__arena_extent *extent = &s->arena.extents[i];
		if (extent->t0 == extent->t1 && extent->slot < 0 && extent->t0 > h0 &&
			extent->t0 < t)
			return 1;
	}
	return 0;
}

/* As open_hole, where the tapes below lie anywhere and others are in flight to the arena. */
static void open_scattered_hole(struct neap_sweep *s, int64_t low, int64_t h0, int64_t t)
{
	struct neap__arena *arena = &s->arena;
	struct neap__arena_extent *tape;
	uint64_t gap = neap__arena_gap(arena), arriving = 0;
	int64_t below, keep = h0;
	for (int64_t i = 0; i < arena->nextents; i++)
		if (arena->extents[i].flight >= 0)
			arriving += arena->extents[i].bytes;
	if (arriving && neap__recover_tapes_cost(s, t - h0, gap + arriving) <
				0.8 * neap__recover_tapes_cost(s, t - h0, gap)) {
		neap__tape_transfer_postpone(s);
		neap__arena_space_pack(s);
		gap = neap__arena_gap(arena);
	}
	double best = neap__recover_tapes_cost(s, t - h0, gap);
	for (int64_t h = h0; (tape = neap__arena_find(arena, h, &below)) && tape->t0 >= low;) {
		h = tape->t0;
		gap += tape->bytes;
		if (neap__recover_tapes_cost(s, t - h, gap) < best) {
			best = neap__recover_tapes_cost(s, t - h, gap);
			keep = h;
		}
	}
	for (int64_t h = h0; h > keep;) {
		tape = neap__arena_find(arena, h, &below);
		neap__count_overflow(s, tape->t0, h);
		h = tape->t0;
		neap__arena_pop(arena, tape);
	}
	neap__arena_space_pack(s);
	s->leaf_bytes = neap__recovery_share(s, neap__arena_gap(arena)).bytes;
}

/*
 * Recovers where tapes leave for tiers. The holes of a tier that lost much follow each other, each
 * a range of its own, and the nearest state may be x_0: states are kept on the way from there to
 * the hole, as for one hole that reaches so far down.
 */
static int recover_scattered(struct neap_sweep *s, int64_t low, int64_t t0, int64_t t)
{
	int64_t h0 = start_of_hole(s, low, t);
	neap__recover_state_drop_from(s, t);
	neap__arena_space_pack(s);
	if (!state_within(s, h0, t))
		open_scattered_hole(s, low, h0, t);
	NEAP_TRY(neap__arena_space_gap(s, neap__worst(s), 1));
	h0 = start_of_hole(s, low, t);
	uint64_t gap = neap__arena_gap(&s->arena);
	if (s->leaf_bytes == 0 || s->leaf_bytes > gap)
		s->leaf_bytes = neap__recovery_share(s, gap).bytes;
	int live = s->live_t >= 0;
	NEAP_TRY(neap__recover_state_load(s, t - 1));
	if (!s->fallback && neap__fallback_pays(s, t)) {
		s->fallback = NEAP__FALLBACK_DUE;
		return 0;
	}
	NEAP_TRY(advance_to_leaf(s, h0, t, !live));
	return record_leaf(s, t0, t);
}

/* Recovers where tapes are a stack. */
static int recover_stacked(struct neap_sweep *s, int64_t low, int64_t t0, int64_t t)
{
	struct neap__arena *arena = &s->arena;
	struct neap__arena_extent *top;
	int64_t below, h0;

	while ((top = neap__arena_top(arena)) && top->t0 == top->t1 && top->t0 >= t)
		neap__arena_pop(arena, top);
	if (!top || top->t0 < top->t1 || !s->leaf_bytes) {
		neap__recover_state_drop_all(s);
		(void)neap__arena_find(arena, t, &below);
		h0 = below > low ? below : low;
		NEAP_TRY(open_hole(s, low, h0, t));
	} else {
		NEAP_TRY(neap__arena_space_gap(s, neap__worst(s), 1));
	}
	(void)neap__arena_find(arena, t, &below);
	h0 = below > low ? below : low;
	NEAP_TRY(neap__recover_state_load(s, t - 1));
	int kept = s->live_t >= h0;
	NEAP_TRY(neap__rewrite_to(s, h0));
	NEAP_TRY(advance_to_leaf(s, h0, t, kept));
	return record_leaf(s, t0, t);
}

/* Frees slots that hold states at or after t, which nobody needs any more. */
static void free_slots(struct neap_sweep *s, int64_t t)
{
	struct neap__arena *arena = &s->arena;
	for (int64_t i = 0; i < arena->nslots; i++)
		if (arena->slots[i].state == NEAP__SLOT_HELD && arena->slots[i].t >= t)
			neap__arena_drop(arena, i);
	neap__arena_space_pack(s);
}

int neap__recover_tapes(struct neap_sweep *s, int64_t low, int64_t t0, int64_t t)
{
	double start = neap__seconds();
	s->recovering++;
	s->journal.in_hole = 1;
	neap__transfer_postpone(s);
	if (s->fallback)
		free_slots(s, t);
	NEAP_TRY(s->sizes.scattered ? recover_scattered(s, low, t0, t)
				    : recover_stacked(s, low, t0, t));
	s->journal.in_hole = 0;
	s->recovering--;
	neap__recover_state_trace(s, NEAP__EVENT_REFILL, start, t0, t);
	return 0;
}
