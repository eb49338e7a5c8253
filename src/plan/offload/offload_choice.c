/* SPDX-License-Identifier: Apache-2.0 */
/* offload_choice.c: writes a choice as actions, and changes it until it fits. */
#include "plan/offload/offload_choice.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"

int neap__offload_choice_init(struct neap__offload_choice *x, int64_t n)
{
	x->n = n;
	x->tape = calloc(3 * (size_t)n + 1, 1);
	x->state = x->tape + n;
	x->ahead = x->state + n;
	if (!x->tape)
		return neap__fail(-ENOMEM, "plan: out of memory");
	x->state[0] = NEAP__STAYS;
	return 0;
}

void neap__offload_choice_free(struct neap__offload_choice *x)
{
	free(x->tape);
	memset(x, 0, sizeof *x);
}

void neap__offload_choice_copy(
	struct neap__offload_choice *to, const struct neap__offload_choice *from)
{
	memcpy(to->tape, from->tape, 3 * (size_t)from->n);
}

void neap__offload_choice_spine(
	struct neap__offload_choice *x, const struct neap__chain_table *tables, int64_t bytes)
{
	const struct neap_stages *s = tables->chain->stages;
	memset(x->tape, 0, 3 * (size_t)x->n);
	x->state[0] = NEAP__STAYS;
	bytes -= (int64_t)s->state[0];
	for (int64_t i = 0; i < x->n;) {
		struct neap__chain_table_choice k =
			neap__chain_table_choose(tables, 0, i, x->n, bytes);
		if (k.record)
			x->tape[k.j - 1] = NEAP__STAYS;
		if (k.j < x->n && !(k.record && neap__tape_holds_output(s)))
			x->state[k.j] = NEAP__STAYS;
		i = k.j;
		bytes = k.right;
	}
}

/* State of the backward pass while a choice is written. */
struct choice_writing {
	struct neap__action_list *out;
	const struct neap__offload_choice *o;
	const struct neap__chain_table *tables;
	const struct neap_chain *c;
	const struct neap_stages *s;
	int64_t live;
	int holds, needs;
};

static int64_t tape_bytes(const struct choice_writing *w, int64_t i)
{
	return (int64_t)w->s->tape[i];
}

static int64_t state_bytes(const struct choice_writing *w, int64_t t)
{
	return (int64_t)w->s->state[t];
}

static void bring(struct choice_writing *w, int64_t t, int in_tape)
{
	if (w->live == t)
		return;
	w->live = t;
	if (in_tape)
		neap__action_list_load_tape(w->out, t);
	else
		neap__action_list_slot(w->out, NEAP_LOAD, t, t);
}

static void forward(struct choice_writing *w, int kind, int64_t t0, int64_t t1)
{
	neap__action_list_forward(w->out, kind, t0, t1);
	w->live = t1;
}

static void reverse(struct choice_writing *w, int64_t i)
{
	neap__action_list_forward(w->out, NEAP_BACKWARD, i, i + 1);
	w->live = -1;
}

/*
 * Reverses stages i..t in `bytes`, as in chain_table.h: x_i is in a slot or in a tape and stays
 * there; taped: the tape of t exists. x_j is stored in slot j.
 */
static void part(
	struct choice_writing *w, int64_t i, int64_t t, int taped, int64_t bytes, int in_tape)
{
	while (taped && !w->needs && i <= t) {
		reverse(w, t);
		bytes += tape_bytes(w, t);
		taped = 0;
		if (--t < i)
			return;
	}
	if (i == t) {
		if (!taped) {
			bring(w, i, in_tape);
			forward(w, NEAP_RECORD, i, i + 1);
		}
		reverse(w, i);
		return;
	}
	struct neap__chain_table_choice k = neap__chain_table_choose(w->tables, taped, i, t, bytes);
	int holds = k.record && w->holds;
	bring(w, i, in_tape);
	forward(w, NEAP_ADVANCE, i, k.record ? k.j - 1 : k.j);
	if (k.record)
		forward(w, NEAP_RECORD, k.j - 1, k.j);
	if (!holds)
		neap__action_list_slot(w->out, NEAP_SAVE, k.j, k.j);
	part(w, k.j, t, taped, k.right, holds);
	if (!holds)
		neap__action_list_slot(w->out, NEAP_DROP, k.j, k.j);
	part(w, i, k.j - 1, k.record, k.left, in_tape);
}

static int in_first_tape(const struct choice_writing *w, int64_t t)
{
	return t > 0 && w->holds && w->o->tape[t - 1];
}

/* The entry of x_t; a state that is contained in a tape needs no slot. */
static int kept(const struct choice_writing *w, int64_t t)
{
	return in_first_tape(w, t) ? NEAP__NOT_KEPT : w->o->state[t];
}

static void first_sweep(struct choice_writing *w)
{
	for (int64_t i = 0; i < w->o->n; i++) {
		if (kept(w, i))
			neap__action_list_slot(w->out, NEAP_SAVE, i, i);
		forward(w, w->o->tape[i] ? NEAP_RECORD : NEAP_ADVANCE, i, i + 1);
	}
	neap__action_list_add(
		w->out, &(struct neap_action){.kind = NEAP_TURN, .t0 = w->o->n, .t1 = w->o->n});
	w->live = -1;
}

/* Bytes of the items below stage s, including x_s, while its group is reversed. */
static int64_t bytes_below(const struct choice_writing *w, int64_t s, int ahead)
{
	const struct neap__offload_choice *o = w->o;
	int64_t bytes = kept(w, s) ? state_bytes(w, s) : 0;
	if (!kept(w, s) && o->tape[s - 1] != NEAP__STAYS)
		bytes += tape_bytes(w, s - 1);
	for (int64_t i = s - 1; i >= 0; i--) {
		int is_source = i == s - 1 && !kept(w, s);
		if (o->tape[i] == NEAP__STAYS)
			bytes += tape_bytes(w, i);
		else if (o->tape[i] && !is_source && ahead > 0)
			bytes += tape_bytes(w, i), ahead--;
		if (kept(w, i) == NEAP__STAYS)
			bytes += state_bytes(w, i);
		else if (kept(w, i) && ahead > 0)
			bytes += state_bytes(w, i), ahead--;
	}
	return bytes;
}

/* Reverses the group that ends at e and starts from x_s; returns the stage before it. */
static int64_t group(struct choice_writing *w, int64_t s, int64_t e, int64_t memory)
{
	const struct neap__offload_choice *o = w->o;
	int in_tape = !kept(w, s), taped = o->tape[e] != 0;
	int64_t from = s,
		bytes = memory - bytes_below(w, s, o->ahead[e]) - (taped ? tape_bytes(w, e) : 0);
	int64_t k = e - 1;
	while (k >= s && !o->tape[k])
		k--;
	if (k >= s) { /* recorded below: go over it */
		from = k + 1;
		bring(w, s, in_tape);
		forward(w, NEAP_ADVANCE, s, from);
		neap__action_list_slot(w->out, NEAP_SAVE, from, from);
		bytes -= state_bytes(w, from) + (o->tape[k] == NEAP__STAYS ? tape_bytes(w, k) : 0);
		in_tape = 0;
	}
	part(w, from, e, taped, bytes, in_tape);
	if (from > s)
		neap__action_list_slot(w->out, NEAP_DROP, from, from);
	return from - 1;
}

/*
 * Writes the schedule without transfers. The tables belong to the problem's budget. Returns 1, or 0
 * if a backward step would have no state to start from.
 */
static int write_choice(struct neap__action_list *list, const struct neap__offload_choice *o,
	const struct neap__chain_table *tables, const struct neap_problem *p)
{
	const struct neap_stages *s = p->chain.stages;
	struct choice_writing w = {list, o, tables, &p->chain, s, 0, neap__tape_holds_output(s),
		neap__backward_needs_input(s)};
	list->n = 0;
	first_sweep(&w);
	for (int64_t e = o->n - 1, dropped = o->n; e >= 0;) {
		int64_t from = e;
		if (o->tape[e] && (!w.needs || kept(&w, e) || in_first_tape(&w, e))) {
			reverse(&w, e--);
		} else {
			while (from > 0 && !kept(&w, from) && !in_first_tape(&w, from))
				from--;
			if (!kept(&w, from) && !in_first_tape(&w, from))
				return 0;
			if (!tables && from < e)
				return 0;
			e = group(&w, from, e, (int64_t)p->memory);
		}
		for (; dropped > e + 1; dropped--)
			if (dropped - 1 < o->n && kept(&w, dropped - 1))
				neap__action_list_slot(list, NEAP_DROP, dropped - 1, dropped - 1);
	}
	return list->error ? list->error : 1;
}

int neap__offload_choice_load(struct neap__offload *x, struct neap__action_list *plain,
	const struct neap__offload_choice *o, const struct neap__chain_table *tables)
{
	int rc = write_choice(plain, o, tables, x->problem);
	if (rc <= 0)
		return rc;
	NEAP_TRY(neap__offload_survey(x, plain));
	for (int64_t k = 0; k < x->n; k++) {
		struct neap__offload_item *c = &x->items[k];
		int at = c->payload == NEAP_TAPE ? o->tape[c->t]
			 : c->t < o->n		 ? o->state[c->t]
						 : NEAP__NOT_KEPT;
		c->tier = c->first && at > NEAP__STAYS ? at - NEAP__STAYS : 0;
	}
	return 1;
}

/* The first tier with capacity for c in addition to its other items. 0: none. */
static int tier_for(const struct neap__offload *x, const struct neap__offload_item *c)
{
	const struct neap_problem *p = x->problem;
	if (c->payload == NEAP_TAPE && p->chain.flags & NEAP_CHAIN_TAPES_STAY)
		return 0;
	for (int tier = 1; tier <= p->ntiers; tier++) {
		uint64_t bytes = (uint64_t)c->bytes;
		for (int64_t k = 0; k < x->n; k++)
			bytes += x->items[k].tier == tier ? (uint64_t)x->items[k].bytes : 0;
		if (bytes <= p->tiers[tier - 1].capacity)
			return tier;
	}
	return 0;
}

/* Returns whether the item is unused at an action and the choice keeps it in memory. */
static int idles(
	const struct neap__offload_item *c, const struct neap__offload_choice *o, int64_t at)
{
	if (!c->first || c->tier || c->gap1 < 0 || c->gap0 >= at || c->gap1 <= at || c->bytes == 0)
		return 0;
	return (c->payload == NEAP_TAPE ? o->tape[c->t] : o->state[c->t]) == NEAP__STAYS;
}

/* The unused item at `at` that is needed last: one to offload, or one to drop; -1: none. */
static int64_t needed_last(const struct neap__offload *x, const struct neap__offload_choice *o,
	int64_t at, int travels)
{
	int64_t best = -1;
	for (int64_t k = 0; k < x->n; k++) {
		const struct neap__offload_item *c = &x->items[k];
		if (!idles(c, o, at) || (best >= 0 && c->gap1 <= x->items[best].gap1))
			continue;
		if (travels ? tier_for(x, c) : c->t > 0 || c->payload == NEAP_TAPE)
			best = k;
	}
	return best;
}

/* Offloads items, or drops one, until the missing bytes are free. 0: no item is left. */
static int make_way(struct neap__offload *x, struct neap__offload_choice *o)
{
	int marked = 0;
	for (int64_t missing = x->short_by; missing > 0;) {
		int64_t k = needed_last(x, o, x->fails_at, 1);
		if (k < 0)
			break;
		struct neap__offload_item *c = &x->items[k];
		c->tier = tier_for(x, c);
		(c->payload == NEAP_TAPE ? o->tape : o->state)[c->t] =
			(uint8_t)(NEAP__STAYS + c->tier);
		missing -= c->bytes;
		marked = 1;
	}
	if (marked)
		return 1;
	int64_t k = needed_last(x, o, x->fails_at, 0);
	if (k < 0)
		return 0;
	(x->items[k].payload == NEAP_TAPE ? o->tape : o->state)[x->items[k].t] = NEAP__NOT_KEPT;
	return 1;
}

int neap__offload_choice_relieve(struct neap__offload *x, struct neap__action_list *plain,
	struct neap__offload_choice *o, const struct neap__chain_table *tables)
{
	for (;;) {
		int rc = neap__offload_choice_load(x, plain, o, tables);
		if (rc <= 0)
			return rc;
		rc = neap__offload_fit(x, NULL);
		if (rc || x->full || x->fails_at < 0 || !make_way(x, o))
			return rc;
	}
}
