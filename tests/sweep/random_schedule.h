/* SPDX-License-Identifier: Apache-2.0 */
/*
 * random_schedule.h: legal schedules of no strategy, drawn from a seed: slots in any order,
 * tapes kept across whole reversals or sent and fetched meanwhile, states sent and fetched
 * at any moment, into slots and ahead into the live state.
 */
#ifndef NEAP_TESTS_SWEEP_RANDOM_SCHEDULE_H
#define NEAP_TESTS_SWEEP_RANDOM_SCHEDULE_H

#include "chainmodel.h"

#define ACTIONS 20000
#define SLOTS 24

struct source {
	int record; /* else a slot */
	int64_t id, t;
	int32_t ahead; /* ticket of a GET into the live state; -1: none */
};

struct pending {
	int32_t ticket;
	int64_t slot, t, place;
};

/* Tapes kept across a reversal. They are there (HOME), or on their way, or away. */
struct kept {
	int64_t t0, t1, place;
	int32_t ticket;
	enum { HOME, LEAVING, AWAY, COMING } where;
};

#define KEPT 400

struct maker {
	uint64_t seed, draws;
	int travel; /* tapes do */
	int64_t tape_places;
	struct kept kept[KEPT];
	int nkept;
	struct neap_action actions[ACTIONS];
	size_t count, at;
	int busy[SLOTS];
	int ticket_busy[NEAP_TICKETS];
	int64_t places;
	struct pending pending[SLOTS];
	int npending;
};

static inline uint64_t draw(struct maker *k, uint64_t n)
{
	return neap__random_below(k->seed, NEAP__STREAM_TEST, 77, k->draws++, n);
}

static inline void emit(struct maker *k, struct neap_action a)
{
	assert_true(k->count < ACTIONS);
	k->actions[k->count++] = a;
}

static inline int32_t ticket_of(struct maker *k)
{
	int32_t ticket = (int32_t)draw(k, NEAP_TICKETS);
	while (k->ticket_busy[ticket])
		ticket = (ticket + 1) % NEAP_TICKETS;
	k->ticket_busy[ticket] = 1;
	return ticket;
}

static inline void await(struct maker *k, int32_t ticket)
{
	emit(k, (struct neap_action){.kind = NEAP_WAIT, .tier = 1, .ticket = ticket});
	k->ticket_busy[ticket] = 0;
}

static inline int64_t slot_of(struct maker *k)
{
	int64_t slot = (int64_t)draw(k, SLOTS);
	for (int i = 0; i < SLOTS; i++, slot = (slot + 1) % SLOTS)
		if (!k->busy[slot]) {
			k->busy[slot] = 1;
			return slot;
		}
	return -1;
}

static inline void drop(struct maker *k, int64_t slot, int64_t t)
{
	emit(k, (struct neap_action){.kind = NEAP_DROP, .slot = slot, .t0 = t, .t1 = t});
	k->busy[slot] = 0;
}

static inline void settle_at(struct maker *k, int i)
{
	struct pending p = k->pending[i];
	k->pending[i] = k->pending[--k->npending];
	await(k, p.ticket);
	drop(k, p.slot, p.t);
}

static inline void settle_one(struct maker *k)
{
	settle_at(k, (int)draw(k, (uint64_t)k->npending));
}

static inline struct source store(struct maker *k, int64_t t)
{
	int64_t slot = slot_of(k);
	if (draw(k, 3) && k->npending)
		settle_one(k);
	if (slot >= 0)
		emit(k, (struct neap_action){.kind = NEAP_SAVE, .slot = slot, .t0 = t, .t1 = t});
	if (slot >= 0 && draw(k, 2))
		return (struct source){0, slot, t, -1};
	struct source s = {1, k->places++, t, -1};
	int32_t ticket = ticket_of(k);
	emit(k, (struct neap_action){.kind = NEAP_PUT,
			.tier = 1,
			.slot = slot >= 0 ? slot : NEAP_LIVE,
			.place = s.id,
			.t0 = t,
			.t1 = t,
			.ticket = ticket});
	if (slot >= 0)
		k->pending[k->npending++] = (struct pending){ticket, slot, t, s.id};
	else
		await(k, ticket);
	return s;
}

static inline int32_t get(struct maker *k, const struct source *s, int64_t slot)
{
	int32_t ticket = ticket_of(k);
	emit(k, (struct neap_action){.kind = NEAP_GET,
			.tier = 1,
			.slot = slot,
			.place = s->id,
			.t0 = s->t,
			.t1 = s->t,
			.ticket = ticket});
	return ticket;
}

static inline void fetch(struct maker *k, struct source *s)
{
	int64_t slot = s->id;
	if (s->record && s->ahead >= 0) {
		await(k, s->ahead);
		s->ahead = -1;
		return;
	}
	if (s->record && (draw(k, 2) || (slot = slot_of(k)) < 0)) {
		await(k, get(k, s, NEAP_LIVE));
		return;
	}
	if (s->record) {
		int32_t ticket = get(k, s, slot);
		if (k->npending && draw(k, 2))
			settle_one(k);
		await(k, ticket);
	}
	emit(k, (struct neap_action){.kind = NEAP_LOAD, .slot = slot, .t0 = s->t, .t1 = s->t});
	if (s->record)
		drop(k, slot, s->t);
}

static inline void release(struct maker *k, const struct source *s)
{
	for (int i = k->npending - 1; s->record && i >= 0; i--)
		if (k->pending[i].place == s->id)
			settle_at(k, i);
	if (s->record)
		emit(k, (struct neap_action){.kind = NEAP_FORGET,
				.tier = 1,
				.place = s->id,
				.t0 = s->t,
				.t1 = s->t});
	else
		drop(k, s->id, s->t);
}

static inline void range(struct maker *k, int kind, int64_t t0, int64_t t1)
{
	emit(k, (struct neap_action){.kind = (uint8_t)kind, .t0 = t0, .t1 = t1});
}

static inline void emit_tapes(struct maker *k, int kind, struct kept *x)
{
	emit(k, (struct neap_action){.kind = (uint8_t)kind,
			.payload = NEAP_TAPE,
			.tier = 1,
			.place = x->place,
			.t0 = x->t0,
			.t1 = x->t1,
			.ticket = x->ticket});
}

/* The next thing that can happen to kept tapes. */
static inline void move(struct maker *k, struct kept *x)
{
	if (x->where == HOME) {
		x->place = k->tape_places++;
		x->ticket = ticket_of(k);
		emit_tapes(k, NEAP_PUT, x);
		x->where = LEAVING;
	} else if (x->where == AWAY) {
		x->ticket = ticket_of(k);
		emit_tapes(k, NEAP_GET, x);
		x->where = COMING;
	} else {
		await(k, x->ticket);
		if (x->where == COMING && draw(k, 2))
			emit_tapes(k, NEAP_FORGET, x);
		x->where = x->where == LEAVING ? AWAY : HOME;
	}
}

/* Some of the kept tapes move, now and then. */
static inline void travel(struct maker *k)
{
	while (k->travel && k->nkept && draw(k, 3) == 0)
		move(k, &k->kept[draw(k, (uint64_t)k->nkept)]);
}

static inline void backward(struct maker *k, int64_t t0, int64_t t1, struct source *next)
{
	if (next && next->record && next->ahead < 0 && draw(k, 2))
		next->ahead = get(k, next, NEAP_LIVE);
	range(k, NEAP_BACKWARD, t0, t1);
	travel(k);
}

static inline void keep_tapes(struct maker *k, int64_t t0, int64_t t1)
{
	assert_true(k->nkept < KEPT);
	int64_t cut = t0 + (int64_t)draw(k, (uint64_t)(t1 - t0));
	if (cut > t0)
		range(k, NEAP_RECORD, t0, cut);
	range(k, NEAP_RECORD, cut, t1);
	k->kept[k->nkept++] = (struct kept){t0, t1, 0, 0, HOME};
	if (k->travel && draw(k, 2))
		move(k, &k->kept[k->nkept - 1]);
}

/* The tapes kept last come home, to be reversed. */
static inline void bring(struct maker *k)
{
	while (k->kept[k->nkept - 1].where != HOME)
		move(k, &k->kept[k->nkept - 1]);
	k->nkept--;
}

static inline void reverse(
	struct maker *k, struct source *s, int64_t t0, int64_t t1, int last, struct source *next)
{
	int64_t n = t1 - t0, mid = t0 + 1 + (int64_t)draw(k, (uint64_t)(n > 1 ? n - 1 : 1));
	fetch(k, s);
	if (n <= 3 || draw(k, (uint64_t)n) < 3) {
		int cut = n > 1 && draw(k, 2);
		if (cut)
			range(k, NEAP_RECORD, t0, mid);
		range(k, NEAP_RECORD, cut ? mid : t0, t1);
		if (last)
			range(k, NEAP_TURN, t1, t1);
		if (cut && draw(k, 2)) {
			backward(k, mid, t1, next);
			t1 = mid;
		}
		backward(k, t0, t1, next);
		return;
	}
	int keep = draw(k, 10) < 3;
	if (keep)
		keep_tapes(k, t0, mid);
	else
		range(k, NEAP_ADVANCE, t0, mid);
	struct source upper = store(k, mid);
	reverse(k, &upper, mid, t1, last, keep ? NULL : s);
	release(k, &upper);
	if (keep)
		bring(k);
	if (keep)
		backward(k, t0, mid, next);
	else
		reverse(k, s, t0, mid, 0, next);
}

static inline void make(struct maker *k, int64_t steps, uint64_t seed)
{
	*k = (struct maker){.seed = seed};
	k->travel = seed % 3 != 0;
	struct source start = store(k, 0);
	reverse(k, &start, 0, steps, 1, NULL);
	release(k, &start);
	while (k->npending)
		settle_one(k);
}

static inline int maker_next(void *user, struct neap_action *action)
{
	struct maker *k = user;
	if (k->at == k->count)
		return 0;
	*action = k->actions[k->at++];
	return 1;
}

static inline int maker_open(void *user, struct neap_schedule **schedule)
{
	struct maker *k = user;
	k->at = 0;
	return neap_schedule_wrap(schedule, maker_next, NULL, k);
}

/* Bytes that count at most, however slots are numbered; verify counts gaps between them. */
static inline uint64_t exact_peak(const struct maker *k, const struct neap_problem *p)
{
	uint64_t used = p->chain.adjoint + p->chain.live, peak = used;
	uint64_t leaving[NEAP_TICKETS] = {0};
	for (size_t i = 0; i < k->count; i++) {
		const struct neap_action *a = &k->actions[i];
		uint64_t tapes = (uint64_t)(a->t1 - a->t0) * p->chain.tape;
		if (a->payload == NEAP_TAPE && a->kind == NEAP_PUT) {
			leaving[a->ticket] = tapes;
		} else if (a->payload == NEAP_TAPE) {
			used += a->kind == NEAP_GET ? tapes : 0;
		} else if (a->kind == NEAP_WAIT) {
			used -= leaving[a->ticket];
			leaving[a->ticket] = 0;
		} else if (a->kind == NEAP_SAVE || (a->kind == NEAP_GET && a->slot >= 0))
			used += p->chain.state;
		else if (a->kind == NEAP_DROP)
			used -= p->chain.state;
		else if (a->kind == NEAP_RECORD)
			used += tapes;
		else if (a->kind == NEAP_BACKWARD)
			used -= tapes;
		peak = used > peak ? used : peak;
	}
	return peak;
}

#endif
