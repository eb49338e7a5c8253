/* SPDX-License-Identifier: Apache-2.0 */
/*
 * finish_without_tiers.c: finishes a sweep whose tiers are gone. The plan of such a sweep brings
 * back state after state, each from far below. Once that would cost more than twice what Revolve
 * does in fast memory alone, the plan is given up: what is left is reversed as one hole
 * (recover_tapes.c), in the whole arena and in what the budget has beyond it. Only where tapes
 * stay: tapes on a tier may still be there.
 */
#include "sweep/repair/finish_without_tiers.h"
#include "sweep/actions.h"
#include "sweep/arena_space.h"
#include "sweep/repair/recover_tapes.h"
#include "sweep/repair/rewrite_records.h"
#include "sweep/transfer.h"
#include "base/checked.h"
#include "base/fail.h"

#define STATES 128 /* beyond the arena, at most: half of the rows that its table has to spare */
#define TAPES                                                                                      \
	(64 * NEAP__RECORD_BLOCK) /* steps of tapes beyond the arena, at most: they take as many   \
				     rows as 64 states */

/*
 * 1 where tapes or logs of a plan may be on a tier: what is there still serves. Where the length
 * was not known, states are the most of what is written, and such tapes are given up.
 */
static int tapes_serve(const struct neap_sweep *s)
{
	return s->sizes.scattered && !s->ops.ended;
}

uint64_t neap__fallback_spare(const struct neap_sweep *s)
{
	const struct neap_chain *chain = &s->problem.chain;
	uint64_t room = s->problem.memory - s->arena.bytes, places = 0;
	for (int i = 0; i < s->problem.ntiers; i++)
		places += (uint64_t)s->sizes.places[i];
	/* With a journal: the size of a commit is fixed when the sweep is planned. */
	if (tapes_serve(s) || !places || s->journal.base.directory ||
		s->problem.memory < s->arena.bytes)
		return 0;
	uint64_t most = neap__sat_add(
		neap__sat_mul(chain->state, STATES), neap__sat_mul(neap__worst(s), TAPES));
	return (room < most ? room : most) & ~(uint64_t)63;
}

/* The same, as far as it is mapped. */
static uint64_t spare(const struct neap_sweep *s)
{
	uint64_t mapped = s->spare_bytes & ~(uint64_t)63, bytes = neap__fallback_spare(s);
	return bytes < mapped ? bytes : mapped;
}

/* Steps from `from` on to the tapes that the tier lost, up to t. */
static double to_lost_tapes(const struct neap_sweep *s, int tier, int64_t from, int64_t t)
{
	double steps = 0;
	for (int64_t i = 0; i < s->sizes.tape_places[tier - 1]; i++) {
		const struct neap__tape_record *record = &s->tape_records[tier - 1][i];
		if (record->bad && record->t0 > from && record->t1 <= t)
			steps += (double)(record->t0 - from);
	}
	return steps;
}

int neap__fallback_pays(const struct neap_sweep *s, int64_t t)
{
	const struct neap__arena *arena = &s->arena;
	int64_t from = s->live_t;
	double planned = 0;
	if (tapes_serve(s) || s->position < 0)
		return 0;
	for (int tier = 1; tier <= s->problem.ntiers; tier++) {
		int64_t n = neap__rewrite_pays(s, tier) ? 0 : s->places[tier - 1];
		for (int64_t i = 0; i < n; i++) {
			int64_t held = s->state_records[tier - 1][i], lost = neap__record_bad(held);
			if (neap__record_is_bad(held) && lost > from && lost <= t)
				planned += (double)(lost - from);
		}
		planned += to_lost_tapes(s, tier, from, t);
	}
	/* The plan may serve below `from`: two passes over those steps are counted for it. */
	uint64_t room = arena->bytes - arena->tapes + spare(s);
	double here = neap__recover_tapes_cost(s, s->position - from, room) + 2.0 * (double)from;
	return planned > 2 * here;
}

/* Ends every transfer; states that arrived serve as sources. */
static void end_transfers(struct neap_sweep *s)
{
	struct neap__arena *arena = &s->arena;
	for (int i = 0; i < NEAP_TICKETS; i++) {
		struct neap__ticket *ticket = &s->tickets[i];
		if (ticket->state == NEAP__TICKET_IN_FLIGHT)
			neap__transfer_end(s, ticket, NEAP_STALL_REPAIR);
		int settled = ticket->state == NEAP__TICKET_ANSWERED && !ticket->tapes;
		if (ticket->tapes && ticket->state != NEAP__TICKET_FREE) {
			neap__arena_release(arena, i);
			neap__arena_end_promise(arena, ticket->promised);
		}
		if (settled && ticket->answer < 0)
			neap__transfer_mark_bad(s, ticket->tier, ticket->place, ticket->t);
		else if (settled && !ticket->put && ticket->slot >= 0)
			arena->slots[ticket->slot].state = NEAP__SLOT_HELD;
		ticket->state = NEAP__TICKET_FREE;
	}
	for (int64_t i = 0; i < arena->nslots; i++) {
		arena->slots[i].in_flight = 0;
		if (arena->slots[i].state == NEAP__SLOT_AWAITED)
			neap__arena_drop(arena, i);
	}
	s->live_puts = s->waiting_gets = 0;
}

static void begin(struct neap_sweep *s)
{
	end_transfers(s);
	neap__arena_space_pack(s);
	s->extra_bytes = spare(s);
	neap__arena_grow(&s->arena, s->extra_bytes);
	s->spare_bytes -= s->extra_bytes;
	s->stats.arena_bytes = s->arena.bytes;
	s->nranges = 1;
	s->ranges[0] = (struct neap__range){0, s->position};
}

void neap__fallback_free_slots(struct neap_sweep *s, int64_t t)
{
	struct neap__arena *arena = &s->arena;
	for (int64_t i = 0; i < arena->nslots; i++)
		if (arena->slots[i].state == NEAP__SLOT_HELD && arena->slots[i].t >= t)
			neap__arena_drop(arena, i);
	neap__arena_space_pack(s);
}

int neap__fallback(struct neap_sweep *s)
{
	if (s->fallback == NEAP__FALLBACK_DUE)
		begin(s);
	s->fallback = NEAP__FALLBACK_BEGUN;
	const struct neap_action rest = {.kind = NEAP_BACKWARD, .t1 = s->position};
	NEAP_TRY(neap__action_perform(s, &rest));
	int64_t planned = s->plan.advance_steps + s->plan.record_steps;
	s->stats.recomputed = s->stats.advance_steps + s->stats.record_steps - planned;
	return 0;
}
