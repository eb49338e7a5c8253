/* SPDX-License-Identifier: Apache-2.0 */
/* offload_fit.c: lists the items of a schedule, and simulates it to add their transfers. */
#include "plan/offload/offload_fit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "base/grow.h"

enum { STAYS, LEAVING, AWAY, ARRIVING, BACK }; /* neap__offload_item.stage */

int neap__offload_init(struct neap__offload *x, const struct neap_problem *p)
{
	memset(x, 0, sizeof *x);
	x->problem = p;
	NEAP_TRY(neap__stage_memory_init(&x->memory, &p->chain));
	x->slots = malloc((size_t)(p->chain.steps + 2) * sizeof *x->slots);
	x->tapes = malloc((size_t)(p->chain.steps + 2) * sizeof *x->tapes);
	return x->slots && x->tapes ? 0 : neap__fail(-ENOMEM, "plan: out of memory");
}

void neap__offload_fini(struct neap__offload *x)
{
	neap__stage_memory_fini(&x->memory);
	free(x->items);
	free(x->profile);
	free(x->out_at);
	free(x->in_at);
	free(x->slots);
	free(x->tapes);
	memset(x, 0, sizeof *x);
}

static int grow(struct neap__offload *x, int64_t positions)
{
	if (positions <= x->positions)
		return 0;
	int64_t **lists[] = {&x->profile, &x->out_at, &x->in_at};
	x->positions = 0;
	for (int i = 0; i < 3; i++) {
		free(*lists[i]);
		*lists[i] = malloc(2 * (size_t)positions * sizeof(int64_t));
		if (!*lists[i])
			return neap__fail(-ENOMEM, "plan: out of memory");
	}
	x->positions = 2 * positions;
	return 0;
}

static int64_t add(struct neap__offload *x, int payload, int64_t t, int64_t slot, int64_t at)
{
	const struct neap_stages *s = x->problem->chain.stages;
	if (neap__grow(&x->items, &x->room, x->n + 1, sizeof *x->items) < 0)
		return neap__fail(-ENOMEM, "plan: out of memory");
	x->items[x->n] = (struct neap__offload_item){.payload = payload,
		.first = 1,
		.t = t,
		.slot = slot,
		.bytes = (int64_t)(payload == NEAP_TAPE ? s->tape[t] : s->state[t]),
		.born = at,
		.gap0 = -1,
		.gap1 = -1,
		.part = -1,
		.last = at};
	return x->n++;
}

static void use(struct neap__offload *x, int64_t k, int64_t at)
{
	struct neap__offload_item *c;
	if (k < 0)
		return;
	c = &x->items[k];
	if (c->held == 0 && (c->gap1 < 0 || at - c->last > c->gap1 - c->gap0)) {
		c->gap0 = c->last;
		c->gap1 = at;
	}
	c->last = at;
}

/* A use of the live state, which is in tape k. The tape is still in memory. */
static void use_live(struct neap__offload *x, int64_t k, int64_t at)
{
	if (k >= 0)
		x->items[k].last = at;
}

/* Notes that a state in a slot is in this tape (-1: none), which stays until the slot is free. */
static void hold_part(struct neap__offload *x, int64_t state, int64_t tape, int64_t at)
{
	x->items[state].part = tape;
	if (tape < 0)
		return;
	use_live(x, tape, at);
	x->items[tape].held++;
}

static void let_part_go(struct neap__offload *x, int64_t state, int64_t at)
{
	int64_t tape = state < 0 ? -1 : x->items[state].part;
	if (tape < 0)
		return;
	use(x, tape, at);
	x->items[tape].held--;
}

/* Use of x_i by a backward: live (in item `live`; -2: not live), in a slot, or in a tape. */
static void use_input(struct neap__offload *x, int64_t i, int64_t at, int64_t live)
{
	if (live >= -1) {
		use_live(x, live, at);
		return;
	}
	for (int64_t k = x->n - 1; k >= 0; k--) {
		const struct neap__offload_item *c = &x->items[k];
		if (c->payload == NEAP_STATE && c->t == i && x->slots[c->slot] == k) {
			use(x, k, at);
			return;
		}
	}
	if (i > 0)
		use(x, x->tapes[i - 1], at);
}

struct live {
	int64_t t, tape; /* step; item of the tape that contains it, or -1 */
};

static int survey_action(
	struct neap__offload *x, const struct neap_action *a, int64_t at, struct live *live)
{
	int holds = neap__tape_holds_output(x->problem->chain.stages);
	struct live before = *live;
	int64_t k = 0;
	if (a->kind == NEAP_ADVANCE || a->kind == NEAP_RECORD || a->kind == NEAP_TURN)
		use_live(x, before.tape, at);
	if (a->kind == NEAP_TURN || a->kind == NEAP_BACKWARD)
		*live = (struct live){-1, -1};
	else if (a->kind == NEAP_ADVANCE || a->kind == NEAP_RECORD || a->kind == NEAP_LOAD)
		*live = (struct live){a->t1, -1};
	switch (a->kind) {
	case NEAP_SAVE:
		k = x->slots[a->slot] = add(x, NEAP_STATE, a->t0, a->slot, at);
		if (k >= 0)
			hold_part(x, k, before.tape, at);
		break;
	case NEAP_DROP:
		let_part_go(x, x->slots[a->slot], at);
		x->slots[a->slot] = -1;
		break;
	case NEAP_LOAD:
		k = a->payload == NEAP_TAPE ? x->tapes[a->t0 - 1] : x->slots[a->slot];
		use(x, k, at);
		live->tape = a->payload == NEAP_TAPE || k < 0 ? k : x->items[k].part;
		k = 0;
		break;
	case NEAP_RECORD:
		k = x->tapes[a->t0] = add(x, NEAP_TAPE, a->t0, 0, at);
		live->tape = holds ? k : -1;
		break;
	case NEAP_BACKWARD:
		use(x, x->tapes[a->t0], at);
		if (neap__backward_needs_input(x->problem->chain.stages))
			use_input(x, a->t0, at, before.t == a->t0 ? before.tape : -2);
		x->tapes[a->t0] = -1;
		break;
	default:
		break;
	}
	return k < 0 ? (int)k : 0;
}

int neap__offload_survey(struct neap__offload *x, const struct neap__action_list *plain)
{
	int64_t n = x->problem->chain.steps;
	struct live live = {0, -1};
	x->plain = plain;
	x->n = 0;
	NEAP_TRY(plain->error);
	NEAP_TRY(grow(x, plain->n));
	for (int64_t i = 0; i < n + 2; i++)
		x->slots[i] = x->tapes[i] = -1;
	for (int64_t at = 0; at < plain->n; at++)
		NEAP_TRY(survey_action(x, &plain->a[at], at, &live));
	/* Sets `first`; `tapes` and `slots` are reused as counters. */
	for (int64_t i = 0; i < n + 2; i++)
		x->slots[i] = x->tapes[i] = 0;
	for (int64_t k = 0; k < x->n; k++) {
		struct neap__offload_item *c = &x->items[k];
		c->first = (c->payload == NEAP_TAPE ? x->tapes : x->slots)[c->t]++ == 0;
	}
	return 0;
}

/* put_away frees the bytes of an item in fast memory, bring_back allocates them. */
static void put_away(struct neap__offload *x, const struct neap__offload_item *c)
{
	if (c->payload == NEAP_TAPE)
		neap__stage_memory_tape(&x->memory, c->t, NEAP__TAPE_ABSENT);
	else
		neap__stage_memory_let_go(&x->memory, c->t);
}

static void bring_back(struct neap__offload *x, const struct neap__offload_item *c)
{
	if (c->payload == NEAP_TAPE)
		neap__stage_memory_tape(&x->memory, c->t, NEAP__TAPE_HERE);
	else
		neap__stage_memory_hold(&x->memory, c->t);
}

/* Bytes during every action if transfers took no time and no memory. */
static void make_profile(struct neap__offload *x)
{
	const struct neap__action_list *s = x->plain;
	for (int64_t at = 0; at < s->n; at++)
		x->out_at[at] = x->in_at[at] = -1;
	for (int64_t k = 0; k < x->n; k++) {
		struct neap__offload_item *c = &x->items[k];
		c->stage = STAYS;
		if (!c->tier || c->gap1 < 0)
			continue;
		c->next_out = x->out_at[c->gap0];
		x->out_at[c->gap0] = k;
		c->next_in = x->in_at[c->gap1];
		x->in_at[c->gap1] = k;
	}
	neap__stage_memory_begin(&x->memory);
	for (int64_t at = 0; at < s->n; at++) {
		for (int64_t k = x->in_at[at]; k >= 0; k = x->items[k].next_in)
			bring_back(x, &x->items[k]);
		x->profile[at] = neap__stage_memory_need(&x->memory, &s->a[at]);
		neap__stage_memory_apply(&x->memory, &s->a[at]);
		for (int64_t k = x->out_at[at]; k >= 0; k = x->items[k].next_out)
			put_away(x, &x->items[k]);
	}
}

static void emit(struct neap__offload *x, const struct neap_action *a)
{
	neap__clock_step(&x->clock, a);
	if (x->out)
		neap__action_list_add(x->out, a);
}

static void transfer(struct neap__offload *x, const struct neap__offload_item *c, int kind)
{
	emit(x, &(struct neap_action){.kind = (uint8_t)kind,
			.payload = (uint8_t)c->payload,
			.tier = (uint16_t)c->tier,
			.ticket = c->ticket,
			.slot = c->payload == NEAP_TAPE ? 0 : c->slot,
			.t0 = c->t,
			.t1 = c->payload == NEAP_TAPE ? c->t + 1 : c->t,
			.place = c->place});
}

static long double end_of(const struct neap__offload *x, int f)
{
	return x->clock.tickets[x->items[x->flight[f]].ticket].end;
}

/* Waits for a transfer and updates its item. */
static void settle(struct neap__offload *x, int f)
{
	struct neap__offload_item *c = &x->items[x->flight[f]];
	transfer(x, c, NEAP_WAIT);
	if (c->stage == LEAVING) {
		if (c->payload == NEAP_STATE)
			transfer(x, c, NEAP_DROP);
		put_away(x, c);
		c->stage = AWAY;
		x->away++;
	} else {
		transfer(x, c, NEAP_FORGET);
		x->stored[c->tier - 1] -= (uint64_t)c->bytes;
		x->memory.bytes -= c->bytes;
		bring_back(x, c);
		c->stage = BACK;
	}
	x->flight[f] = x->flight[--x->flights];
}

/* Returns whether waiting is useful: for a read, or for a write after the last use of its item. */
static int may_settle(const struct neap__offload *x, int f)
{
	const struct neap__offload_item *c = &x->items[x->flight[f]];
	return c->stage == ARRIVING || c->gap0 < x->at;
}

/* The transfer that ends first, among writes or among all; -1: none. */
static int soonest(const struct neap__offload *x, int leaving)
{
	int best = -1;
	for (int f = 0; f < x->flights; f++)
		if ((!leaving || x->items[x->flight[f]].stage == LEAVING) && may_settle(x, f) &&
			(best < 0 || end_of(x, f) < end_of(x, best)))
			best = f;
	return best;
}

static void settle_done(struct neap__offload *x)
{
	for (int f = x->flights - 1; f >= 0; f--)
		if (f < x->flights && may_settle(x, f) && end_of(x, f) <= x->clock.now)
			settle(x, f);
}

/* Starts a transfer. Returns 0 if too many are in flight and none can be waited for. */
static int take_off(struct neap__offload *x, int64_t k, int kind)
{
	struct neap__offload_item *c = &x->items[k];
	int used[NEAP__FLIGHTS + 1] = {0}, f = x->flights == NEAP__FLIGHTS ? soonest(x, 0) : 0;
	if (f < 0)
		return 0;
	if (x->flights == NEAP__FLIGHTS)
		settle(x, f);
	for (f = 0; f < x->flights; f++)
		used[x->items[x->flight[f]].ticket] = 1;
	for (c->ticket = 0; used[c->ticket]; c->ticket++)
		;
	transfer(x, c, kind);
	x->flight[x->flights++] = k;
	return 1;
}

/* Waits for writes until `bytes` in total fit in the budget. Returns 0 if they never do. */
static int make_room(struct neap__offload *x, int64_t at, int64_t bytes)
{
	int64_t before = x->memory.bytes;
	while (bytes - (before - x->memory.bytes) > x->budget) {
		int f = soonest(x, 1);
		if (f < 0) {
			x->fails_at = at;
			x->short_by = bytes - (before - x->memory.bytes) - x->budget;
			return 0;
		}
		settle(x, f);
	}
	return 1;
}

static int fetch(struct neap__offload *x, int64_t k, int64_t at)
{
	struct neap__offload_item *c = &x->items[k];
	if (!make_room(x, at, x->memory.bytes + c->bytes))
		return 0;
	if (!take_off(x, k, NEAP_GET))
		return 0;
	x->away--;
	c->stage = ARRIVING;
	x->memory.bytes += c->bytes;
	return 1;
}

/* Reads the items that this action needs and waits for them. */
static int fetch_now(struct neap__offload *x, int64_t at)
{
	for (int64_t k = x->in_at[at]; k >= 0; k = x->items[k].next_in) {
		struct neap__offload_item *c = &x->items[k];
		for (int f = x->flights - 1; f >= 0 && c->stage == LEAVING; f--)
			if (x->flight[f] == k)
				settle(x, f);
		if (c->stage == AWAY && !fetch(x, k, at))
			return 0;
	}
	for (int64_t k = x->in_at[at]; k >= 0; k = x->items[k].next_in)
		for (int f = x->flights - 1; f >= 0 && x->items[k].stage == ARRIVING; f--)
			if (x->flight[f] == k)
				settle(x, f);
	return 1;
}

/* Prefetches items of later actions, in order of use, while they fit in memory up to their use. */
static void fetch_ahead(struct neap__offload *x, int64_t at)
{
	for (int64_t q = at + 1; x->away && q < x->plain->n; q++)
		for (int64_t k = x->in_at[q]; k >= 0; k = x->items[k].next_in) {
			struct neap__offload_item *c = &x->items[k];
			if (c->stage != AWAY)
				continue;
			int64_t now = neap__stage_memory_need(&x->memory, &x->plain->a[at]);
			if (now + c->bytes > x->budget)
				return;
			for (int64_t i = at; i < q; i++)
				if (x->profile[i] + c->bytes > x->budget)
					return;
			for (int64_t i = at; i < q; i++)
				x->profile[i] += c->bytes;
			if (!fetch(x, k, at))
				return;
		}
}

static int send(struct neap__offload *x, int64_t k)
{
	struct neap__offload_item *c = &x->items[k];
	const struct neap_tier_spec *tier = &x->problem->tiers[c->tier - 1];
	uint64_t *stored = &x->stored[c->tier - 1];
	*stored += (uint64_t)c->bytes;
	if (*stored > tier->capacity) {
		x->full = 1;
		return 0;
	}
	c->place = x->places++;
	if (!take_off(x, k, NEAP_PUT))
		return 0;
	c->stage = LEAVING;
	return 1;
}

int neap__offload_fit(struct neap__offload *x, struct neap__action_list *out)
{
	const struct neap__action_list *s = x->plain;
	int used[NEAP_TIERS_MAX + 1] = {0};
	x->fits++;
	make_profile(x);
	x->out = out;
	x->budget = (int64_t)x->problem->memory;
	for (int64_t k = 0; k < x->n; k++)
		used[x->items[k].tier] |= x->items[k].gap1 >= 0;
	for (int i = 0; i < x->problem->ntiers; i++)
		x->budget -= used[i + 1] ? (int64_t)x->problem->tiers[i].staging : 0;
	x->fails_at = -1;
	x->short_by = x->away = x->places = 0;
	x->full = x->flights = 0;
	memset(x->stored, 0, sizeof x->stored);
	for (int64_t at = 0; at < s->n; at++)
		if (x->profile[at] > x->budget) {
			x->fails_at = at;
			x->short_by = x->profile[at] - x->budget;
			return 0;
		}
	neap__stage_memory_begin(&x->memory);
	neap__clock_init(&x->clock, x->problem);
	for (int64_t at = 0, next = 0; at < s->n; at++) {
		const struct neap_action *a = &s->a[at];
		x->at = at;
		if (x->flights || x->away) {
			if (!fetch_now(x, at) ||
				!make_room(x, at, neap__stage_memory_need(&x->memory, a)))
				return 0;
			fetch_ahead(x, at);
		}
		emit(x, a);
		neap__stage_memory_apply(&x->memory, a);
		x->at = at + 1;
		settle_done(x);
		for (; next < x->n && x->items[next].born <= at; next++)
			if (x->items[next].tier && x->items[next].gap1 >= 0 && !send(x, next))
				return 0;
		if (x->flights)
			settle_done(x);
	}
	x->makespan = (double)x->clock.now;
	return out && out->error ? out->error : 1;
}
