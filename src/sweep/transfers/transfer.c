/* SPDX-License-Identifier: Apache-2.0 */
/* transfer.c: issues transfers, waits for them, and acts on what a tier lost. */
#include "sweep/transfers/transfer.h"
#include "sweep/steps/copies.h"
#include "sweep/costs/cost_watch.h"
#include "sweep/steps/counts.h"
#include "base/fail.h"
#include "store/tier_state.h"
#include "sys/clock.h"

#include <errno.h>

uint64_t neap__record_tag(const struct neap_sweep *s, int payload, int64_t t)
{
	return (uint64_t)payload << 62 | (s->generation & 0x3fff) << 48 |
	       ((uint64_t)t & ((UINT64_C(1) << 48) - 1));
}

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
		.slot = tapes ? NEAP__NO_SLOT : a->slot,
		.t = a->t0,
		.t1 = a->t1,
		.place = a->place,
		.order = s->issued++,
		.tier = a->tier,
		.put = a->kind == NEAP_PUT,
		.tapes = a->payload,
	};
	return 0;
}

void neap__ticket_answered(struct neap__ticket *ticket, int rc)
{
	ticket->state = NEAP__TICKET_ANSWERED;
	ticket->answer = rc;
}

void neap__ticket_issued(
	struct neap_sweep *s, struct neap__ticket *ticket, double start, uint64_t bytes, int rc)
{
	ticket->issued = start;
	ticket->bytes = bytes;
	ticket->state = rc < 0 && !neap__agrees(&s->agreement) ? NEAP__TICKET_ANSWERED
							       : NEAP__TICKET_IN_FLIGHT;
	ticket->answer = ticket->refused = rc;
	s->stats.lost += neap_tier_lost(&s->problem.tiers[ticket->tier - 1], bytes);
	neap__count_stall(s, NEAP_STALL_ISSUE, start, ticket);
}

static int is_late(const struct neap__ticket *ticket)
{
	return ticket->answer == -ETIMEDOUT;
}

/* Adds a transfer to the trace, with the tier's times where they are credible. */
static void trace_transfer(struct neap_sweep *s, const struct neap__ticket *ticket)
{
	const struct neap_tier *tier = s->tiers[ticket->tier - 1];
	double now = neap__seconds(), start = 0, end = 0;
	if (!s->options.trace)
		return;
	if (tier->ops.times)
		tier->ops.times(tier->self, &start, &end);
	if (!(start >= ticket->issued && end >= start && end <= now))
		start = ticket->issued, end = now;
	neap__trace_add(
		s->options.trace, &(struct neap__event){.queued = ticket->issued,
					  .start = start,
					  .end = end,
					  .t0 = ticket->t,
					  .t1 = ticket->tapes ? ticket->t1 : ticket->t,
					  .bytes = ticket->bytes,
					  .kind = NEAP__EVENT_TRANSFER,
					  .flags = (ticket->put ? NEAP__EVENT_PUT : 0u) |
						   (ticket->tapes ? NEAP__EVENT_TAPES : 0u) |
						   (ticket->answer < 0 ? NEAP__EVENT_FAILED : 0u) |
						   (is_late(ticket) ? NEAP__EVENT_LATE : 0u),
					  .tier = ticket->tier});
}

void neap__transfer_before(struct neap_sweep *s, int tier)
{
	if (!s->tiers[tier - 1]->ops.in_order)
		neap__fence_wait(&s->arena.memory.fence);
}

int neap__transfer_put(struct neap_sweep *s, const struct neap_action *a)
{
	struct neap__ticket *ticket = NULL;
	const unsigned char *from = neap__transit(s);
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
	neap__transfer_before(s, a->tier);
	double start = neap__seconds();
	int rc = neap__tier_put(s->tiers[a->tier - 1], a->place,
		neap__record_tag(s, NEAP_STATE, a->t0), from, s->problem.chain.state,
		&ticket->engine);
	neap__ticket_issued(s, ticket, start, s->problem.chain.state, rc);
	s->stats.written[a->tier - 1] += s->problem.chain.state;
	return 0;
}

void neap__transfer_issue_get(struct neap_sweep *s, struct neap__ticket *ticket)
{
	unsigned char *into = ticket->slot == NEAP_LIVE ? neap__transit(s)
							: neap__arena_slot(&s->arena, ticket->slot);
	neap__transfer_before(s, ticket->tier);
	double start = neap__seconds();
	int rc = neap__tier_get(s->tiers[ticket->tier - 1], ticket->place,
		neap__record_tag(s, NEAP_STATE, ticket->t), into, s->problem.chain.state,
		&ticket->engine);
	neap__ticket_issued(s, ticket, start, s->problem.chain.state, rc);
	s->stats.read[ticket->tier - 1] += s->problem.chain.state;
}

void neap__transfer_end(struct neap_sweep *s, struct neap__ticket *ticket, enum neap_stall reason)
{
	double start = neap__seconds();
	int answer = ticket->refused;
	if (answer == 0)
		answer = neap__tier_wait(s->tiers[ticket->tier - 1], ticket->engine);
	ticket->state = NEAP__TICKET_ANSWERED;
	ticket->answer = answer;
	s->stats.late += is_late(ticket);
	/* Lost on one rank is lost on all; an agreement that fails ends the run before a call. */
	ticket->answer = neap__agree_answer(&s->agreement, answer);
	neap__count_stall(s, reason, start, ticket);
	trace_transfer(s, ticket);
	neap__replan_learn(s, ticket);
	if (ticket->tapes)
		neap__tape_transfer_answered(s, ticket);
}

int neap__transfer_cancel(struct neap_sweep *s, struct neap__ticket *ticket)
{
	int tier = ticket->tier - 1;
	/* Of ranks, each would find another answer. */
	if (neap__agrees(&s->agreement))
		return 0;
	if (ticket->put || !neap__tier_cancel(s->tiers[tier], ticket->engine))
		return 0;
	ticket->state = NEAP__TICKET_ANSWERED;
	ticket->answer = 0;
	s->stats.read[tier] -= ticket->bytes;
	s->stats.lost -= neap_tier_lost(&s->problem.tiers[tier], ticket->bytes);
	if (ticket->tapes)
		neap__tape_transfer_answered(s, ticket);
	return 1;
}

/* 1 for tapes and slots among them; slots at the top are in the way of each other only. */
static int in_the_way(const struct neap_sweep *s, const struct neap__ticket *ticket)
{
	return ticket->tapes || (ticket->slot >= 0 && s->arena.slots[ticket->slot].position < 0);
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
		if (ticket->state != NEAP__TICKET_ANSWERED || ticket->put ||
			ticket->slot != NEAP_LIVE || ticket->answer < 0)
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
	neap__count_lost(s, tier, t, t);
}

int neap__transfer_fetch(struct neap_sweep *s, int tier, int64_t place, int64_t t)
{
	struct neap__ticket ticket = {
		.slot = NEAP_LIVE, .t = t, .place = place, .tier = (uint16_t)tier};
	s->live_t = -1;
	neap__transfer_issue_get(s, &ticket);
	if (ticket.state == NEAP__TICKET_IN_FLIGHT)
		neap__transfer_end(s, &ticket, NEAP_STALL_REPAIR);
	if (ticket.answer < 0) {
		neap__transfer_mark_bad(s, tier, place, t);
		return ticket.answer;
	}
	s->rewrite_failures[tier - 1] = 0;
	return neap__copy_load(s, neap__transit(s), t);
}

int neap__transfer_store(struct neap_sweep *s, int tier, int64_t place, int *answer)
{
	struct neap__ticket own = {.t = s->live_t,
		.slot = NEAP_LIVE,
		.place = place,
		.tier = (uint16_t)tier,
		.put = 1};
	NEAP_TRY(neap__copy_save(s, neap__transit(s)));
	neap__transfer_before(s, tier);
	double start = neap__seconds();
	int rc = neap__tier_put(s->tiers[tier - 1], place,
		neap__record_tag(s, NEAP_STATE, s->live_t), neap__transit(s),
		s->problem.chain.state, &own.engine);
	neap__ticket_issued(s, &own, start, s->problem.chain.state, rc);
	if (own.state == NEAP__TICKET_IN_FLIGHT)
		neap__transfer_end(s, &own, NEAP_STALL_REPAIR);
	s->stats.written[tier - 1] += s->problem.chain.state;
	*answer = own.answer;
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
			neap__count_lost(s, i + 1, s->live_t, s->live_t);
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
	return ticket->tapes == NEAP_LOG ? s->fixed_log && s->fixed : s->fixed;
}

void neap__tape_transfer_answered(struct neap_sweep *s, struct neap__ticket *ticket)
{
	int flight = neap__tape_transfer_number_of(s, ticket);
	s->span_rows[s->free_span_rows++] = ticket->span_row;
	/* The plan counts what was put until its WAIT; room is short only where tapes vary. */
	if (ticket->put ? !neap__tape_transfer_is_fixed(s, ticket) : ticket->answer < 0) {
		neap__arena_release(&s->arena, flight);
		return;
	}
	for (int64_t i = 0; i < s->arena.nextents; i++)
		if (s->arena.extents[i].flight == flight)
			s->arena.extents[i].pinned = 0;
}
