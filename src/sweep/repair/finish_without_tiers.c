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
#include "sweep/arena/arena_space.h"
#include "sweep/repair/repair_costs.h"
#include "sweep/transfers/transfer.h"
#include "base/fail.h"
#include "base/debug_log.h"

/* Ends every transfer; states that arrived serve as sources. */
static void end_transfers(struct neap_sweep *s)
{
	struct neap__arena *arena = &s->arena;
	for (int i = 0; i < NEAP_TICKETS; i++) {
		struct neap__ticket *ticket = &s->tickets[i];
		if (ticket->state == NEAP__TICKET_IN_FLIGHT)
			neap__transfer_end(s, ticket, NEAP_STALL_REPAIR);
		int settled = ticket->state == NEAP__TICKET_ANSWERED && !ticket->request.payload;
		if (ticket->request.payload && ticket->state != NEAP__TICKET_FREE) {
			neap__arena_release(arena, i);
			neap__arena_end_promise(arena, ticket->promised);
		}
		if (settled && ticket->request.answer < 0)
			neap__transfer_mark_bad(
				s, ticket->request.tier, ticket->place, ticket->request.t);
		else if (settled && !ticket->request.put && ticket->slot >= 0)
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
	neap__debug("slow memory lost too much: steps 0 to %lld are reversed without it",
		(long long)s->position);
	end_transfers(s);
	neap__arena_space_pack(s);
	s->extra_bytes = neap__fallback_room(s);
	neap__arena_grow(&s->arena, s->extra_bytes);
	s->spare_bytes -= s->extra_bytes;
	s->stats.arena_bytes = s->arena.bytes;
	s->nranges = 1;
	s->ranges[0] = (struct neap__range){0, s->position};
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
