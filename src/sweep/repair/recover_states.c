/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recover_states.c: recovers states inside the same arena, which no plan foresaw. A state that a
 * tier lost, and the tapes of a hole (recover_tapes.c), both come from the nearest state that is
 * left: the live state, a slot, a state kept for recovery, a record on a tier, or x_0. Lost
 * records are written again on the way (rewrite_records.c).
 */
#include "sweep/repair/recover_states.h"
#include "sweep/steps/copies.h"
#include "sweep/repair/repair_costs.h"
#include "sweep/repair/rewrite_records.h"
#include "sweep/transfers/transfer.h"
#include "base/fail.h"
#include "sys/clock.h"

void neap__recover_state_drop_from(struct neap_sweep *s, int64_t t)
{
	struct neap__arena *arena = &s->arena;
	for (int64_t i = arena->nextents - 1; i >= 0; i--) {
		struct neap__arena_extent *extent = &arena->extents[i];
		if (extent->t0 == extent->t1 && extent->slot < 0 && extent->t0 >= t)
			neap__arena_pop(arena, extent);
	}
}

void neap__recover_state_drop_all(struct neap_sweep *s)
{
	struct neap__arena_extent *top;
	if (s->sizes.scattered)
		neap__recover_state_drop_from(s, 0);
	while ((top = neap__arena_top(&s->arena)) && top->t0 == top->t1 && top->slot < 0)
		neap__arena_pop(&s->arena, top);
	s->leaf_bytes = 0;
}

struct source {
	int64_t t;
	const void *bytes; /* in memory; x_0 may be NULL */
	int tier;	   /* of a record; 0: in memory */
	int64_t place;
};

static void consider(struct source *best, struct source other, int64_t t)
{
	if (other.t <= t && other.t > best->t)
		*best = other;
}

/* The latest state at or before t; of two at the same step, the one in memory. */
static struct source nearest(struct neap_sweep *s, int64_t t)
{
	const struct neap__arena *arena = &s->arena;
	struct source best = {.t = 0, .bytes = s->x0};

	for (int64_t i = 0; i < arena->nslots; i++)
		if (arena->slots[i].state == NEAP__SLOT_HELD)
			consider(&best,
				(struct source){
					arena->slots[i].t, neap__arena_slot(arena, i), 0, 0},
				t);
	for (int64_t i = 0; i < arena->nextents; i++)
		if (arena->extents[i].t0 == arena->extents[i].t1 && arena->extents[i].slot < 0)
			consider(&best,
				(struct source){arena->extents[i].t0,
					arena->base + arena->extents[i].offset, 0, 0},
				t);
	if (s->live_t >= best.t && s->live_t <= t)
		return (struct source){s->live_t, neap__live(s), 0, 0};
	for (int tier = 1; tier <= s->problem.ntiers; tier++)
		for (int64_t i = 0; i < s->places[tier - 1]; i++)
			consider(&best,
				(struct source){s->state_records[tier - 1][i], NULL, tier, i}, t);
	return best;
}

int neap__recover_state_load(struct neap_sweep *s, int64_t t)
{
	for (;;) {
		struct source from = nearest(s, t);
		if (from.tier == 0)
			return from.bytes == neap__live(s) ? 0
							   : neap__copy_load(s, from.bytes, from.t);
		if (neap__transfer_fetch(s, from.tier, from.place, from.t) == 0)
			return 0;
		if (!neap__record_is_bad(s->state_records[from.tier - 1][from.place]))
			return neap__fail(NEAP_EMODEL, "a state that was read cannot be loaded");
	}
}

/* The live state becomes the state at t. */
static int recover_live(struct neap_sweep *s, int64_t t)
{
	NEAP_TRY(neap__recover_state_load(s, t));
	return neap__rewrite_to(s, t);
}

void neap__recover_state_trace(
	struct neap_sweep *s, uint32_t kind, double start, int64_t t0, int64_t t1)
{
	neap__trace_add(s->options.trace,
		&(struct neap__event){
			.start = start, .end = neap__seconds(), .t0 = t0, .t1 = t1, .kind = kind});
}

/* Copies the live state to `slot`; then the old live state comes back, or the GETs into it. */
static int fill_slot(struct neap_sweep *s, int64_t slot, int64_t old)
{
	NEAP_TRY(neap__copy_save(s, neap__arena_slot(&s->arena, slot)));
	s->arena.slots[slot].state = NEAP__SLOT_HELD;
	if (neap__transfer_resume(s))
		return 0;
	if (old >= 0)
		return recover_live(s, old);
	s->live_t = -1;
	return 0;
}

int neap__recover_state(struct neap_sweep *s, int64_t slot, int64_t t)
{
	double start = neap__seconds();
	int64_t old = s->live_t;
	s->recovering++;
	neap__transfer_postpone(s);
	NEAP_TRY(neap__recover_state_load(s, t));
	s->fallback = neap__fallback_pays(s, t) ? NEAP__FALLBACK_DUE : NEAP__FALLBACK_NONE;
	if (!s->fallback) {
		NEAP_TRY(neap__rewrite_to(s, t));
		if (slot != NEAP_LIVE)
			NEAP_TRY(fill_slot(s, slot, old));
	}
	s->recovering--;
	neap__recover_state_trace(s, NEAP__EVENT_RECOVER, start, t, t);
	return 0;
}
