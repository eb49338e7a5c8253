/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tape_transfer.c: tapes and logs that leave for a tier and come back, in the pieces that record
 * calls made of them. A record of tapes is its pieces one after the other; the bytes of each
 * piece are kept here, since a GET must find room for them.
 *
 * Holes are steps that were recorded and whose tapes are missing: tapes that were not there when
 * their range was put (they did not fit), that a tier lost, or that found no room when they were
 * waited for. BACKWARD recovers them (repair/recover_tapes.c). A log that is missing costs its
 * steps a record instead of a replay.
 */
#include "sweep/transfers/tape_transfer.h"
#include "sweep/arena/arena_space.h"
#include "sweep/steps/counts.h"
#include "sweep/arena/recorded_ranges.h"
#include "sweep/transfers/transfer.h"
#include "base/fail.h"

#include <errno.h>

static struct neap__tape_record *record_of(const struct neap_sweep *s, int tier, int64_t place)
{
	return &s->tape_records[tier - 1][place];
}

void neap__tape_transfer_reset(struct neap_sweep *s)
{
	s->issued = s->waiting_gets = 0;
	s->free_piece = -1;
	s->unused_piece = 0;
	s->free_span_rows = s->sizes.span_rows;
	for (int64_t i = 0; i < s->sizes.span_rows; i++)
		s->span_rows[i] = (int32_t)i;
	for (int i = 0; i < s->problem.ntiers; i++)
		for (int64_t j = 0; j < s->sizes.tape_places[i]; j++)
			s->tape_records[i][j] = (struct neap__tape_record){.first = -1};
}

static void give_pieces(struct neap_sweep *s, struct neap__tape_record *record)
{
	int64_t next;
	for (int64_t i = record->first; i >= 0; i = next) {
		next = s->pieces[i].next;
		s->pieces[i].next = s->free_piece;
		s->free_piece = i;
	}
	*record = (struct neap__tape_record){.first = -1};
}

/* The extent of a piece of a ticket; pieces mostly follow each other, so *from comes first. */
static struct neap__arena_extent *find_piece(
	const struct neap_sweep *s, int flight, const struct neap__tape_piece *piece, int64_t *from)
{
	const struct neap__arena *arena = &s->arena;
	for (int64_t i = 0; i < arena->nextents; i++) {
		int64_t at = (*from + i) % arena->nextents;
		struct neap__arena_extent *extent = &arena->extents[at];
		if (extent->flight == flight && extent->t0 == piece->t0) {
			*from = at + 1;
			return extent;
		}
	}
	return NULL;
}

static int is_kind(const struct neap__arena_extent *extent, int payload)
{
	return (extent->slot == NEAP__LOG_EXTENT) == (payload == NEAP_LOG);
}

/* Hands a record to its tier; all of its extents have their places. */
static void issue(
	struct neap_sweep *s, struct neap__ticket *ticket, const struct neap__tape_record *record)
{
	int64_t from = 0;
	int n = 0;
	if (s->free_span_rows == 0) {
		neap__ticket_answered(ticket, -EAGAIN);
		return;
	}
	ticket->span_row = s->span_rows[--s->free_span_rows];
	struct neap_span *spans = &s->spans[ticket->span_row * s->sizes.spans];
	for (int64_t i = record->first; i >= 0; i = s->pieces[i].next) {
		struct neap__arena_extent *extent = find_piece(
			s, neap__tape_transfer_number_of(s, ticket), &s->pieces[i], &from);
		unsigned char *at = s->arena.base + extent->offset;
		extent->pinned = 1;
		if (n > 0 && (unsigned char *)spans[n - 1].at + spans[n - 1].bytes == at)
			spans[n - 1].bytes += extent->bytes;
		else
			spans[n++] = (struct neap_span){at, extent->bytes};
	}
	/* Puts of one range before and after a commit may cut it differently: the period tells. */
	uint64_t tag =
		neap__request_tag(s->generation, ticket->request.payload, ticket->request.t) ^
		(record->period & 0x3fff) << 48;
	ticket->request.bytes = record->bytes;
	neap__ticket_issue(s, ticket, tag, spans, n);
	if (ticket->state == NEAP__TICKET_ANSWERED)
		neap__tape_transfer_answered(s, ticket);
}

/* Adds a piece to the record. 1, or 0: the place has no room for it. */
static int add_piece(struct neap_sweep *s, struct neap__tape_record *record, int64_t **tail,
	const struct neap__arena_extent *extent, uint64_t most)
{
	int64_t i = s->free_piece >= 0 ? s->free_piece : s->unused_piece;
	if (i >= s->sizes.pieces || record->bytes + extent->bytes > most)
		return 0;
	struct neap__tape_piece *piece = &s->pieces[i];
	if (i == s->free_piece)
		s->free_piece = piece->next;
	else
		s->unused_piece++;
	*piece = (struct neap__tape_piece){extent->t0, extent->t1, extent->bytes, -1};
	record->bytes += extent->bytes;
	**tail = i;
	*tail = &piece->next;
	return 1;
}

/* Collects the tapes of the range, as far as they are there and the place has room for them. */
static void gather(
	struct neap_sweep *s, struct neap__ticket *ticket, struct neap__tape_record *record)
{
	struct neap__arena *arena = &s->arena;
	int64_t *tail = &record->first, n = 0;
	for (int64_t i = 0; i < arena->nextents; i++) {
		struct neap__arena_extent *extent = &arena->extents[i];
		if (extent->t0 == extent->t1 || extent->flight >= 0 || extent->t1 <= record->t0 ||
			extent->t0 >= record->t1 || !is_kind(extent, ticket->request.payload))
			continue;
		if (extent->t0 >= record->t0 && extent->t1 <= record->t1 && n < s->sizes.spans &&
			add_piece(s, record, &tail, extent,
				s->tape_place_bytes[ticket->request.tier - 1])) {
			extent->flight = (int16_t)neap__tape_transfer_number_of(s, ticket);
			n++;
			continue;
		}
		neap__count_overflow(s, extent->t0, extent->t1);
		neap__arena_pop(arena, extent);
		i--;
	}
}

int neap__tape_transfer_put(struct neap_sweep *s, const struct neap_action *a)
{
	struct neap__ticket *ticket = NULL;
	NEAP_TRY(neap__ticket_begin(s, a, &ticket));
	if (a->payload == NEAP_TAPE)
		NEAP_TRY(neap__ranges_cut(s, a->t0, a->t1));
	struct neap__tape_record *record = record_of(s, a->tier, a->place);
	give_pieces(s, record);
	record->t0 = a->t0;
	record->t1 = a->t1;
	record->period = s->journal.period;
	gather(s, ticket, record);
	if (record->bytes == 0)
		ticket->state = NEAP__TICKET_ANSWERED;
	else
		issue(s, ticket, record);
	return 0;
}

/* Finds places for all pieces of a record that comes. 1, or 0: there is no room, none is taken. */
static int make_places(struct neap_sweep *s, struct neap__ticket *ticket,
	const struct neap__tape_record *record, int wait)
{
	int flight = neap__tape_transfer_number_of(s, ticket);
	for (int64_t i = record->first; i >= 0; i = s->pieces[i].next) {
		const struct neap__tape_piece *piece = &s->pieces[i];
		struct neap__place place;
		if (!neap__arena_space_hole(s, piece->bytes, wait, &place)) {
			neap__arena_release(&s->arena, flight);
			return 0;
		}
		struct neap__arena_extent *extent =
			neap__arena_insert(&s->arena, &place, piece->t0, piece->t1, piece->bytes);
		extent->flight = (int16_t)flight;
		if (ticket->request.payload == NEAP_LOG)
			extent->slot = NEAP__LOG_EXTENT;
	}
	return 1;
}

/* Issues a GET if there is room for it. 1 if so. */
static int try_get(struct neap_sweep *s, struct neap__ticket *ticket, int wait)
{
	const struct neap__tape_record *record = record_of(s, ticket->request.tier, ticket->place);
	neap__arena_end_promise(&s->arena, ticket->promised);
	if (!make_places(s, ticket, record, wait)) {
		neap__arena_promise(&s->arena, ticket->promised);
		return 0;
	}
	ticket->promised = 0;
	if (record->bytes == 0)
		ticket->state = NEAP__TICKET_ANSWERED;
	else
		issue(s, ticket, record);
	return 1;
}

int neap__tape_transfer_get(struct neap_sweep *s, const struct neap_action *a)
{
	struct neap__ticket *ticket = NULL;
	NEAP_TRY(neap__ticket_begin(s, a, &ticket));
	const struct neap__tape_record *record = record_of(s, a->tier, a->place);
	if (record->t0 != a->t0 || record->t1 != a->t1 || record->t0 == record->t1)
		return neap__fail(NEAP_EILLEGAL,
			"get: place %lld does not hold the tapes of [%lld, %lld)",
			(long long)a->place, (long long)a->t0, (long long)a->t1);
	if (record->bad) {
		neap__ticket_answered(ticket, NEAP_ELOST);
		return 0;
	}
	/* Oldest first: a GET that is waited for earlier must not lose its room to this one. */
	if (s->waiting_gets == 0 && try_get(s, ticket, 0))
		return 0;
	/* Tapes of one size will fit once what is in the way has arrived: their room counts. */
	if (neap__tape_transfer_is_fixed(s, ticket))
		ticket->promised = record->bytes;
	neap__arena_promise(&s->arena, ticket->promised);
	ticket->state = NEAP__TICKET_NO_ROOM;
	s->waiting_gets++;
	return 0;
}

void neap__tape_transfer_resume(struct neap_sweep *s)
{
	while (s->waiting_gets > 0) {
		struct neap__ticket *first = NULL;
		for (int i = 0; i < NEAP_TICKETS; i++)
			if (s->tickets[i].state == NEAP__TICKET_NO_ROOM &&
				(!first || s->tickets[i].order < first->order))
				first = &s->tickets[i];
		if (!first || !try_get(s, first, 0))
			return;
		s->waiting_gets--;
	}
}

/* Issues a GET whose WAIT has come: with all room there is, or not at all. */
static void last_call(struct neap_sweep *s, struct neap__ticket *ticket)
{
	s->waiting_gets--;
	if (!try_get(s, ticket, 1)) {
		neap__arena_end_promise(&s->arena, ticket->promised);
		neap__count_overflow(s, ticket->request.t, ticket->request.t1);
		ticket->request.answer = 0;
	} else if (ticket->state == NEAP__TICKET_IN_FLIGHT) {
		neap__transfer_end(s, ticket, NEAP_STALL_ROOM);
	}
}

void neap__tape_transfer_postpone(struct neap_sweep *s)
{
	for (int i = 0; i < NEAP_TICKETS; i++) {
		struct neap__ticket *ticket = &s->tickets[i];
		if (!ticket->request.payload || ticket->request.put)
			continue;
		if (ticket->state == NEAP__TICKET_IN_FLIGHT && !neap__transfer_cancel(s, ticket))
			neap__transfer_end(s, ticket, NEAP_STALL_REPAIR);
		if (ticket->state != NEAP__TICKET_ANSWERED || ticket->request.answer < 0)
			continue;
		neap__arena_release(&s->arena, i);
		ticket->state = NEAP__TICKET_NO_ROOM;
		s->waiting_gets++;
	}
}

static void arrived(struct neap_sweep *s, int flight)
{
	for (int64_t i = 0; i < s->arena.nextents; i++)
		if (s->arena.extents[i].flight == flight)
			s->arena.extents[i].flight = -1;
}

int neap__tape_transfer_wait(struct neap_sweep *s, struct neap__ticket *ticket)
{
	struct neap__tape_record *record = record_of(s, ticket->request.tier, ticket->place);
	if (ticket->state == NEAP__TICKET_NO_ROOM)
		last_call(s, ticket);
	ticket->state = NEAP__TICKET_FREE;
	if (ticket->request.answer < 0 && record->t0 == ticket->request.t &&
		record->t1 == ticket->request.t1 && !record->bad) {
		record->bad = 1;
		neap__transfer_lost(s, ticket->request.tier, ticket->request.t, ticket->request.t1);
	}
	if (!ticket->request.put) {
		arrived(s, neap__tape_transfer_number_of(s, ticket));
		return ticket->request.payload == NEAP_LOG
			       ? 0
			       : neap__ranges_add(s, ticket->request.t, ticket->request.t1);
	}
	neap__arena_release(&s->arena, neap__tape_transfer_number_of(s, ticket));
	return 0;
}

int neap__tape_transfer_forget(struct neap_sweep *s, const struct neap_action *a)
{
	if (a->place >= s->sizes.tape_places[a->tier - 1])
		return neap__fail(NEAP_EILLEGAL, "forget: no place %lld for tapes on tier %d",
			(long long)a->place, a->tier);
	give_pieces(s, record_of(s, a->tier, a->place));
	return 0;
}
