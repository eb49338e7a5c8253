/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rewrite_records.c: writes records that a tier lost again where they were, whenever a recovery
 * passes their state. So a tier that lost everything and can be written costs about one more pass
 * over the chain, not one for each record. Whether a rewritten record can be read is not checked
 * until it is read. A tier that refuses such writes, or loses what was written, is left alone
 * after a few times.
 */
#include "sweep/repair/rewrite_records.h"
#include "sweep/steps/copies.h"
#include "sweep/steps/pieces.h"
#include "sweep/repair/repair_costs.h"
#include "sweep/transfers/transfer.h"
#include "base/fail.h"

/* The first step after the live state, t at most, whose record was lost; else -1. */
static int64_t next_lost(const struct neap_sweep *s, int64_t t)
{
	int64_t next = -1;
	for (int tier = 1; tier <= s->problem.ntiers; tier++) {
		const int64_t *records = s->state_records[tier - 1];
		int64_t n = neap__rewrite_pays(s, tier) ? s->places[tier - 1] : 0;
		for (int64_t i = 0; i < n; i++) {
			int64_t lost = neap__record_bad(records[i]);
			if (neap__record_is_bad(records[i]) && lost > s->live_t && lost <= t) {
				next = lost;
				t = lost - 1;
			}
		}
	}
	return next;
}

/* A transfer of this record has failed and waits for its WAIT: makes its effect now. */
static int redo_failed(struct neap_sweep *s, struct neap__ticket *ticket)
{
	if (!ticket->request.put && ticket->slot == NEAP_LIVE) {
		ticket->state = NEAP__TICKET_REISSUE;
		return 0;
	}
	ticket->request.answer = 0;
	return ticket->request.put ? 0
				   : neap__copy_save(s, neap__arena_slot(&s->arena, ticket->slot));
}

static int rewrite(struct neap_sweep *s, int tier, int64_t place)
{
	int64_t t = s->live_t;
	int answer;
	for (int i = 0; i < NEAP_TICKETS; i++) {
		struct neap__ticket *ticket = &s->tickets[i];
		if (ticket->state == NEAP__TICKET_IN_FLIGHT && !ticket->request.payload &&
			ticket->request.tier == tier && ticket->place == place)
			neap__transfer_end(s, ticket, NEAP_STALL_REPAIR);
	}
	NEAP_TRY(neap__transfer_store(s, tier, place, &answer));
	if (answer < 0) {
		s->rewrite_failures[tier - 1]++;
		return 0;
	}
	s->rewritten[tier - 1]++;
	s->state_records[tier - 1][place] = t;
	for (int i = 0; i < NEAP_TICKETS; i++) {
		struct neap__ticket *ticket = &s->tickets[i];
		if (ticket->state == NEAP__TICKET_ANSWERED && ticket->request.answer < 0 &&
			!ticket->request.payload && ticket->request.tier == tier &&
			ticket->place == place && ticket->request.t == t)
			NEAP_TRY(redo_failed(s, ticket));
	}
	return 0;
}

/* Rewrites all lost records of the live state, which may be on several tiers. */
static int rewrite_here(struct neap_sweep *s)
{
	for (int tier = 1; tier <= s->problem.ntiers; tier++)
		for (int64_t i = 0; i < s->places[tier - 1]; i++)
			if (s->state_records[tier - 1][i] == neap__record_bad(s->live_t) &&
				neap__rewrite_pays(s, tier))
				NEAP_TRY(rewrite(s, tier, i));
	return 0;
}

int neap__rewrite_to(struct neap_sweep *s, int64_t t)
{
	for (;;) {
		int64_t next = s->fallback ? -1 : next_lost(s, t);
		NEAP_TRY(neap__step_advance(s, next < 0 ? t : next));
		if (next < 0)
			return 0;
		NEAP_TRY(rewrite_here(s));
	}
}
