/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_flights.c: the transfers of a schedule of stages: which buffers each reads or fills, until
 * when they must stay, and the records on tiers. A buffer that a PUT reads stays to its WAIT; one
 * that a GET fills is there from the GET on and holds something after the WAIT.
 */
#include "sweep/stages/stage_walk.h"
#include "base/grow.h"
#include "plan/core/schedule.h"

#include <stdlib.h>

typedef long long ll;

void neap__walk_no_flights(struct program_walk *w)
{
	for (int i = 0; i < NEAP_TICKETS; i++)
		w->flight[i] = NEAP__NOTHING;
}

void neap__walk_free(struct program_walk *w)
{
	for (int i = 0; i < NEAP_TIERS_MAX; i++)
		for (int kind = 0; kind < 2; kind++)
			free(w->places[i][kind].record);
}

/* The row that says which record lies at the action's place. */
static int place_of(struct program_walk *w, const struct neap_action *a, int64_t **record)
{
	struct neap__walk_places *places;
	if (a->tier < 1 || a->tier > w->ntiers || a->place < 0)
		return NEAP__ILLEGAL("no place %lld on tier %d", (ll)a->place, a->tier);
	places = &w->places[a->tier - 1][a->payload == NEAP_TAPE];
	int64_t had = places->room;
	if (neap__grow(&places->record, &places->room, a->place + 1, sizeof *places->record) < 0)
		return neap__stage_tables_short();
	for (int64_t i = had; i < places->room; i++)
		places->record[i] = NEAP__NOTHING;
	*record = &places->record[a->place];
	return 0;
}

static int add_record(struct program_walk *w, const struct neap_action *a, int64_t *record)
{
	struct neap__stage_program *p = w->out;
	uint64_t bytes = neap__stages_bytes(w->stages, a);
	if (neap__grow(&p->records, &p->records_room, p->nrecords + 1, sizeof *p->records) < 0)
		return neap__stage_tables_short();
	*record = p->nrecords;
	p->records[p->nrecords++] = (struct neap__stage_record){.t0 = a->t0,
		.t1 = a->payload == NEAP_TAPE ? a->t1 : a->t0,
		.from = p->ncalls,
		.to = p->ncalls,
		.bytes = bytes,
		.tier = a->tier};
	return 0;
}

static int add_part(struct program_walk *w, int64_t buffer, uint64_t bytes)
{
	struct neap__stage_program *p = w->out;
	if (neap__grow(&p->parts, &p->parts_room, p->nparts + 1, sizeof *p->parts) < 0)
		return neap__stage_tables_short();
	p->parts[p->nparts++] = (struct neap__stage_part){.buffer = buffer, .bytes = bytes};
	return 0;
}

/* Begins the flight of a ticket; its parts are added next. */
static int begin_flight(struct program_walk *w, const struct neap_action *a, int64_t record)
{
	struct neap__stage_program *p = w->out;
	if (a->ticket < 0 || a->ticket >= NEAP_TICKETS || w->flight[a->ticket] != NEAP__NOTHING)
		return NEAP__ILLEGAL("ticket %d is in use", a->ticket);
	if (neap__grow(&p->flights, &p->flights_room, p->nflights + 1, sizeof *p->flights) < 0)
		return neap__stage_tables_short();
	w->flight[a->ticket] = p->nflights;
	w->slot_of[a->ticket] = a->slot;
	p->flights[p->nflights++] = (struct neap__stage_flight){.record = record,
		.from = p->ncalls,
		.to = p->ncalls,
		.first = p->nparts,
		.put = a->kind == NEAP_PUT};
	return 0;
}

/* The call that issues the flight, once all of its parts are there. */
static int issue(struct program_walk *w, const struct neap_action *a)
{
	struct neap__stage_flight *f = &w->out->flights[w->flight[a->ticket]];
	struct neap__stage_call call = {.kind = a->kind, .i = w->flight[a->ticket]};
	f->count = w->out->nparts - f->first;
	for (int role = 0; role < NEAP__ROLES; role++)
		call.at[role] = NEAP__NOTHING;
	return neap__stage_program_call(w->out, &call);
}

static int put(struct program_walk *w, const struct neap_action *a)
{
	int64_t *record = NULL, buffer;
	NEAP_TRY(place_of(w, a, &record));
	NEAP_TRY(add_record(w, a, record));
	NEAP_TRY(begin_flight(w, a, *record));
	if (a->payload == NEAP_STATE) {
		NEAP_TRY(neap__walk_find(w, a->t0, &buffer));
		NEAP_TRY(add_part(w, buffer, w->stages->state[a->t0]));
		return issue(w, a);
	}
	for (int64_t i = a->t0; i < a->t1; i++) {
		if (w->tape[i] == NEAP__NOTHING)
			return NEAP__ILLEGAL("the tape of %lld is not there", (ll)i);
		NEAP_TRY(add_part(w, w->tape[i], w->stages->tape[i]));
		neap__stage_memory_tape(&w->memory, i, NEAP__TAPE_LEAVING);
	}
	return issue(w, a);
}

static int get(struct program_walk *w, const struct neap_action *a)
{
	int64_t *record = NULL, buffer;
	NEAP_TRY(place_of(w, a, &record));
	if (*record == NEAP__NOTHING)
		return NEAP__ILLEGAL("nothing lies at place %lld", (ll)a->place);
	NEAP_TRY(begin_flight(w, a, *record));
	if (a->payload == NEAP_STATE) {
		uint64_t bytes = w->stages->state[a->t0];
		if (a->slot == NEAP_LIVE)
			neap__stage_memory_live(&w->memory, NEAP__NOTHING);
		else if (a->slot < 0 || a->slot > w->n + 1)
			return NEAP__ILLEGAL("no slot %lld", (ll)a->slot);
		NEAP_TRY(neap__walk_begin(w, &buffer, bytes, NEAP__BUFFER_STATE, a->t0));
		NEAP_TRY(add_part(w, buffer, bytes));
		return issue(w, a);
	}
	for (int64_t i = a->t0; i < a->t1; i++) {
		uint64_t bytes = w->stages->tape[i];
		if (w->tape[i] != NEAP__NOTHING)
			return NEAP__ILLEGAL("a tape of %lld is there already", (ll)i);
		NEAP_TRY(neap__walk_begin(w, &buffer, bytes, NEAP__BUFFER_TAPE, i));
		NEAP_TRY(add_part(w, buffer, bytes));
		neap__stage_memory_tape(&w->memory, i, NEAP__TAPE_ARRIVING);
	}
	return issue(w, a);
}

/* A state has come: another holder; where x_t lies already, what came is not needed. */
static void state_came(struct program_walk *w, int64_t t, int64_t slot, int64_t buffer)
{
	int there = neap__stage_memory_in_tape(&w->memory, t) || w->state[t] != NEAP__NOTHING;
	if (!there)
		w->state[t] = buffer;
	if (slot == NEAP_LIVE) {
		neap__stage_memory_live(&w->memory, t);
	} else {
		neap__stage_memory_hold(&w->memory, t);
		w->slots[slot] = t;
	}
}

static void came(struct program_walk *w, const struct neap__stage_flight *f, int64_t slot)
{
	const struct neap__stage_record *record = &w->out->records[f->record];
	for (int64_t k = 0; k < f->count; k++) {
		int64_t buffer = w->out->parts[f->first + k].buffer;
		w->out->buffers[buffer].ready = f->to;
		if (record->t0 == record->t1) {
			state_came(w, record->t0, slot, buffer);
		} else {
			w->tape[record->t0 + k] = buffer;
			neap__stage_memory_tape(&w->memory, record->t0 + k, NEAP__TAPE_HERE);
		}
	}
}

static void left(struct program_walk *w, const struct neap__stage_flight *f)
{
	const struct neap__stage_record *record = &w->out->records[f->record];
	for (int64_t i = record->t0; i < record->t1; i++) {
		neap__stage_memory_tape(&w->memory, i, NEAP__TAPE_ABSENT);
		neap__walk_tape_ends(w, i);
	}
}

static int wait(struct program_walk *w, const struct neap_action *a)
{
	struct neap__stage_program *p = w->out;
	if (a->ticket < 0 || a->ticket >= NEAP_TICKETS || w->flight[a->ticket] == NEAP__NOTHING)
		return NEAP__ILLEGAL("nothing has ticket %d", a->ticket);
	struct neap__stage_flight *f = &p->flights[w->flight[a->ticket]];
	struct neap__stage_call call = {.kind = NEAP_WAIT, .i = w->flight[a->ticket]};
	for (int role = 0; role < NEAP__ROLES; role++)
		call.at[role] = NEAP__NOTHING;
	f->to = p->ncalls;
	p->records[f->record].to =
		f->to > p->records[f->record].to ? f->to : p->records[f->record].to;
	for (int64_t k = 0; k < f->count; k++) {
		struct neap__stage_buffer *b = &p->buffers[p->parts[f->first + k].buffer];
		b->to = f->to > b->to ? f->to : b->to;
	}
	NEAP_TRY(neap__stage_program_call(p, &call));
	if (f->put)
		left(w, f);
	else
		came(w, f, w->slot_of[a->ticket]);
	w->flight[a->ticket] = NEAP__NOTHING;
	return 0;
}

static int forget(struct program_walk *w, const struct neap_action *a)
{
	int64_t *record = NULL;
	NEAP_TRY(place_of(w, a, &record));
	if (*record != NEAP__NOTHING) {
		struct neap__stage_record *r = &w->out->records[*record];
		int64_t last = w->out->ncalls - 1;
		r->to = last > r->to ? last : r->to;
	}
	*record = NEAP__NOTHING;
	return 0;
}

void neap__walk_end_records(struct program_walk *w)
{
	for (int i = 0; i < NEAP_TIERS_MAX; i++)
		for (int kind = 0; kind < 2; kind++)
			for (int64_t k = 0; k < w->places[i][kind].room; k++)
				if (w->places[i][kind].record[k] != NEAP__NOTHING)
					w->out->records[w->places[i][kind].record[k]].to =
						w->out->ncalls - 1;
}

int neap__walk_transfer(struct program_walk *w, const struct neap_action *a)
{
	switch (a->kind) {
	case NEAP_PUT:
		return put(w, a);
	case NEAP_GET:
		return get(w, a);
	case NEAP_WAIT:
		return wait(w, a);
	case NEAP_FORGET:
		return forget(w, a);
	default:
		return NEAP__ILLEGAL("not an action of stages");
	}
}
