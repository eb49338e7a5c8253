/* SPDX-License-Identifier: Apache-2.0 */
/* transfer.c: issues transfers, waits for them, and acts on what a tier lost. */
#include "sweep/transfers/transfer.h"
#include "sweep/steps/copies.h"
#include "sweep/costs/cost_watch.h"
#include "sweep/steps/counts.h"
#include "base/fail.h"

int64_t *neap__transfer_record_at(struct neap_sweep *s, int tier, int64_t place)
{
	return &s->state_records[tier - 1][place];
}

int neap__ticket_begin(struct neap_sweep *s, const struct neap_action *a, struct neap__ticket **out)
{
	const char *name = neap_action_name(a->kind);
	int tapes = a->payload != NEAP_STATE;
	if (a->ticket < 0 || a->ticket >= NEAP_TICKETS ||
		s->tickets[a->ticket].state != NEAP__TICKET_FREE)
		return neap__fail(NEAP_EILLEGAL, "%s: ticket %d is in use", name, a->ticket);
	if (!tapes && a->slot != NEAP_LIVE && (a->slot < 0 || a->slot >= s->arena.nslots))
		return neap__fail(NEAP_EILLEGAL, "%s: no slot %lld", name, (long long)a->slot);
	if (a->tier < 1 || a->tier > s->problem.ntiers || a->place < 0 ||
		a->place >= (tapes ? s->sizes.tape_places : s->sizes.places)[a->tier - 1])
		return neap__fail(NEAP_EILLEGAL, "%s: no place %lld on tier %d", name,
			(long long)a->place, a->tier);
	*out = &s->tickets[a->ticket];
	**out = (struct neap__ticket){
		.request = {.t = a->t0,
			.t1 = tapes ? a->t1 : a->t0,
			.tier = a->tier,
			.put = a->kind == NEAP_PUT,
			.payload = a->payload},
		.slot = tapes ? NEAP__NO_SLOT : a->slot,
		.place = a->place,
		.order = s->issued++,
	};
	return 0;
}

void neap__ticket_answered(struct neap__ticket *ticket, int rc)
{
	ticket->state = NEAP__TICKET_ANSWERED;
	ticket->request.answer = rc;
}

/* What requests need of the sweep. */
static struct neap__request_owner owner_of(struct neap_sweep *s)
{
	return (struct neap__request_owner){s->tiers, &s->problem, s->options.trace, &s->stats,
		&s->agreement, &s->arena.memory.fence};
}

void neap__ticket_issue(struct neap_sweep *s, struct neap__ticket *ticket, uint64_t tag,
	const struct neap_span *spans, int count)
{
	const struct neap__request_owner own = owner_of(s);
	int one = ticket->request.payload == NEAP_STATE;
	ticket->state =
		neap__request_issue(&own, &ticket->request, ticket->place, tag, spans, count, one)
			? NEAP__TICKET_IN_FLIGHT
			: NEAP__TICKET_ANSWERED;
}

void neap__transfer_lost(struct neap_sweep *s, int tier, int64_t t, int64_t t1)
{
	const struct neap__request_owner own = owner_of(s);
	neap__request_lost(&own, tier, t, t1, "steps");
}

/* Hands a state to its tier, or asks for it. */
static void issue_state(struct neap_sweep *s, struct neap__ticket *ticket, void *at)
{
	uint64_t bytes = s->problem.chain.state;
	uint64_t tag = neap__request_tag(s->generation, NEAP_STATE, ticket->request.t);
	ticket->request.bytes = bytes;
	neap__ticket_issue(s, ticket, tag, &(struct neap_span){at, bytes}, 1);
}

int neap__transfer_put(struct neap_sweep *s, const struct neap_action *a)
{
	struct neap__ticket *ticket = NULL;
	unsigned char *from = neap__transit(s);
	NEAP_TRY(neap__ticket_begin(s, a, &ticket));
	if (a->slot == NEAP_LIVE) {
		if (s->live_t != a->t0)
			return neap__fail(NEAP_EILLEGAL, "put: the live state is not at %lld",
				(long long)a->t0);
		NEAP_TRY(neap__copy_save(s, neap__transit(s)));
		s->live_puts++;
	} else {
		struct neap__slot *slot = &s->arena.slots[a->slot];
		if (slot->state != NEAP__SLOT_HELD || slot->t != a->t0)
			return neap__fail(NEAP_EILLEGAL, "put: slot %lld does not hold state %lld",
				(long long)a->slot, (long long)a->t0);
		from = neap__arena_slot(&s->arena, a->slot);
		slot->in_flight++;
	}
	*neap__transfer_record_at(s, a->tier, a->place) = a->t0;
	issue_state(s, ticket, from);
	return 0;
}

void neap__transfer_issue_get(struct neap_sweep *s, struct neap__ticket *ticket)
{
	unsigned char *into = ticket->slot == NEAP_LIVE ? neap__transit(s)
							: neap__arena_slot(&s->arena, ticket->slot);
	issue_state(s, ticket, into);
}

void neap__transfer_end(struct neap_sweep *s, struct neap__ticket *ticket, enum neap_stall reason)
{
	const struct neap__request_owner own = owner_of(s);
	neap__request_wait(&own, &ticket->request, reason);
	ticket->state = NEAP__TICKET_ANSWERED;
	neap__replan_learn(s, ticket);
	if (ticket->request.payload)
		neap__tape_transfer_answered(s, ticket);
}

int neap__transfer_cancel(struct neap_sweep *s, struct neap__ticket *ticket)
{
	const struct neap__request_owner own = owner_of(s);
	if (!neap__request_cancel(&own, &ticket->request))
		return 0;
	ticket->state = NEAP__TICKET_ANSWERED;
	if (ticket->request.payload)
		neap__tape_transfer_answered(s, ticket);
	return 1;
}

/* 1 for tapes and slots among them; slots at the top are in the way of each other only. */
static int in_the_way(const struct neap_sweep *s, const struct neap__ticket *ticket)
{
	return ticket->request.payload ||
	       (ticket->slot >= 0 && s->arena.slots[ticket->slot].position < 0);
}

int neap__transfer_end_oldest(struct neap_sweep *s)
{
	struct neap__ticket *oldest = NULL;
	for (int i = 0; i < NEAP_TICKETS; i++) {
		struct neap__ticket *ticket = &s->tickets[i];
		if (ticket->state == NEAP__TICKET_IN_FLIGHT && in_the_way(s, ticket) &&
			(!oldest || ticket->order < oldest->order))
			oldest = ticket;
	}
	if (!oldest)
		return 0;
	neap__transfer_end(s, oldest, NEAP_STALL_ROOM);
	return 1;
}

int neap__transfer_in_flight(const struct neap_sweep *s, int64_t slot)
{
	if (s->arena.slots[slot].in_flight == 0)
		return 0;
	for (int i = 0; i < NEAP_TICKETS; i++)
		if (s->tickets[i].state == NEAP__TICKET_IN_FLIGHT && s->tickets[i].slot == slot)
			return 1;
	return 0;
}

void neap__transfer_end_slot(struct neap_sweep *s, int64_t slot)
{
	for (int i = 0; i < NEAP_TICKETS; i++)
		if (s->tickets[i].state == NEAP__TICKET_IN_FLIGHT && s->tickets[i].slot == slot)
			neap__transfer_end(s, &s->tickets[i],
				s->recovering ? NEAP_STALL_REPAIR : NEAP_STALL_ROOM);
}

void neap__transfer_postpone(struct neap_sweep *s)
{
	for (int i = 0; i < NEAP_TICKETS; i++) {
		struct neap__ticket *ticket = &s->tickets[i];
		if (ticket->state == NEAP__TICKET_IN_FLIGHT && ticket->slot == NEAP_LIVE &&
			!neap__transfer_cancel(s, ticket))
			neap__transfer_end(s, ticket, NEAP_STALL_REPAIR);
		if (ticket->state != NEAP__TICKET_ANSWERED || ticket->request.put ||
			ticket->slot != NEAP_LIVE || ticket->request.answer < 0)
			continue;
		ticket->state = NEAP__TICKET_REISSUE;
	}
}

int neap__transfer_resume(struct neap_sweep *s)
{
	int resumed = 0;
	for (int i = 0; i < NEAP_TICKETS; i++) {
		if (s->tickets[i].state != NEAP__TICKET_REISSUE)
			continue;
		s->live_t = -1;
		neap__transfer_issue_get(s, &s->tickets[i]);
		resumed = 1;
	}
	return resumed;
}

void neap__transfer_mark_bad(struct neap_sweep *s, int tier, int64_t place, int64_t t)
{
	int64_t *held = neap__transfer_record_at(s, tier, place);
	if (*held != t)
		return; /* the loss is known, or the place was forgotten or overwritten */
	*held = neap__record_bad(t);
	s->rewrite_failures[tier - 1] += s->rewritten[tier - 1] > 0;
	neap__transfer_lost(s, tier, t, t);
}

int neap__transfer_fetch(struct neap_sweep *s, int tier, int64_t place, int64_t t)
{
	struct neap__ticket ticket = {.request = {.t = t, .t1 = t, .tier = (uint16_t)tier},
		.slot = NEAP_LIVE,
		.place = place};
	s->live_t = -1;
	neap__transfer_issue_get(s, &ticket);
	if (ticket.state == NEAP__TICKET_IN_FLIGHT)
		neap__transfer_end(s, &ticket, NEAP_STALL_REPAIR);
	if (ticket.request.answer < 0) {
		neap__transfer_mark_bad(s, tier, place, t);
		return ticket.request.answer;
	}
	s->rewrite_failures[tier - 1] = 0;
	return neap__copy_load(s, neap__transit(s), t);
}

int neap__transfer_store(struct neap_sweep *s, int tier, int64_t place, int *answer)
{
	struct neap__ticket own = {
		.request = {.t = s->live_t, .t1 = s->live_t, .tier = (uint16_t)tier, .put = 1},
		.slot = NEAP_LIVE,
		.place = place};
	NEAP_TRY(neap__copy_save(s, neap__transit(s)));
	issue_state(s, &own, neap__transit(s));
	if (own.state == NEAP__TICKET_IN_FLIGHT)
		neap__transfer_end(s, &own, NEAP_STALL_REPAIR);
	*answer = own.request.answer;
	return 0;
}

int neap__transfer_keep_state(struct neap_sweep *s)
{
	int answer;
	for (int i = 0; i < s->problem.ntiers; i++) {
		int64_t place = s->sizes.places[i] + s->recovery_records[i];
		if (place >= s->places[i])
			continue;
		s->recovery_records[i]++;
		NEAP_TRY(neap__transfer_store(s, i + 1, place, &answer));
		if (answer < 0)
			neap__transfer_lost(s, i + 1, s->live_t, s->live_t);
		s->state_records[i][place] = answer < 0 ? neap__record_bad(s->live_t) : s->live_t;
		return 0;
	}
	return 0;
}

void neap__transfer_drain(struct neap_sweep *s)
{
	for (int i = 0; i < NEAP_TICKETS; i++) {
		if (s->tickets[i].state == NEAP__TICKET_IN_FLIGHT)
			neap__transfer_end(s, &s->tickets[i], NEAP_STALL_PUT);
		s->tickets[i].state = NEAP__TICKET_FREE;
	}
}

int neap__tape_transfer_number_of(const struct neap_sweep *s, const struct neap__ticket *ticket)
{
	return (int)(ticket - s->tickets);
}

/* 1 if all tapes, or logs, of the ticket's kind have one size. */
int neap__tape_transfer_is_fixed(const struct neap_sweep *s, const struct neap__ticket *ticket)
{
	return ticket->request.payload == NEAP_LOG ? s->fixed_log && s->fixed : s->fixed;
}

void neap__tape_transfer_answered(struct neap_sweep *s, struct neap__ticket *ticket)
{
	int flight = neap__tape_transfer_number_of(s, ticket);
	s->span_rows[s->free_span_rows++] = ticket->span_row;
	/* The plan counts what was put until its WAIT; room is short only where tapes vary. */
	if (ticket->request.put ? !neap__tape_transfer_is_fixed(s, ticket)
				: ticket->request.answer < 0) {
		neap__arena_release(&s->arena, flight);
		return;
	}
	for (int64_t i = 0; i < s->arena.nextents; i++)
		if (s->arena.extents[i].flight == flight)
			s->arena.extents[i].pinned = 0;
}
