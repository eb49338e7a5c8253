/* SPDX-License-Identifier: Apache-2.0 */
/* stage_memory.c: holders, tapes and bytes, and what an action makes of them. */
#include "plan/stages/stage_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"

int neap__stage_memory_init(struct neap__stage_memory *x, const struct neap_chain *chain)
{
	memset(x, 0, sizeof *x);
	x->chain = chain;
	x->held = calloc((size_t)chain->steps + 1, sizeof *x->held);
	x->taped = calloc((size_t)chain->steps + 1, sizeof *x->taped);
	if (!x->held || !x->taped)
		return neap__fail(-ENOMEM, "plan: out of memory");
	return 0;
}

void neap__stage_memory_fini(struct neap__stage_memory *x)
{
	free(x->held);
	free(x->taped);
	memset(x, 0, sizeof *x);
}

static int64_t state(const struct neap__stage_memory *x, int64_t t)
{
	return (int64_t)x->chain->stages->state[t];
}

int neap__stage_memory_in_tape(const struct neap__stage_memory *x, int64_t t)
{
	return t > 0 && neap__tape_holds_output(x->chain->stages) &&
	       (x->taped[t - 1] == NEAP__TAPE_HERE || x->taped[t - 1] == NEAP__TAPE_LEAVING);
}

/* Bytes of x_t outside of a tape. */
static int64_t own_bytes(const struct neap__stage_memory *x, int64_t t)
{
	return x->held[t] && !neap__stage_memory_in_tape(x, t) ? state(x, t) : 0;
}

static void state_ends(struct neap__stage_memory *x, int64_t t)
{
	if (x->state_ends)
		x->state_ends(x->user, t);
}

void neap__stage_memory_hold(struct neap__stage_memory *x, int64_t t)
{
	if (x->held[t]++ == 0)
		x->bytes += own_bytes(x, t);
}

void neap__stage_memory_let_go(struct neap__stage_memory *x, int64_t t)
{
	if (x->held[t] == 1) {
		x->bytes -= own_bytes(x, t);
		state_ends(x, t);
	}
	x->held[t]--;
}

void neap__stage_memory_live(struct neap__stage_memory *x, int64_t t)
{
	int64_t before = x->live;
	x->live = t;
	x->part = 0;
	if (t >= 0)
		neap__stage_memory_hold(x, t); /* first: t may be `before` */
	if (before >= 0)
		neap__stage_memory_let_go(x, before);
}

void neap__stage_memory_tape(struct neap__stage_memory *x, int64_t i, enum neap__tape_place place)
{
	int64_t tape = (int64_t)x->chain->stages->tape[i];
	if (place == NEAP__TAPE_ABSENT && x->part && x->live == i + 1)
		neap__stage_memory_live(x, -1);
	x->bytes -= own_bytes(x, i + 1) + (x->taped[i] ? tape : 0);
	x->taped[i] = (uint8_t)place;
	x->bytes += own_bytes(x, i + 1) + (x->taped[i] ? tape : 0);
	if (neap__stage_memory_in_tape(x, i + 1))
		state_ends(x, i + 1);
}

void neap__stage_memory_begin(struct neap__stage_memory *x)
{
	memset(x->held, 0, (size_t)(x->chain->steps + 1) * sizeof *x->held);
	memset(x->taped, 0, (size_t)x->chain->steps * sizeof *x->taped);
	x->live = -1;
	x->bytes = 0;
	neap__stage_memory_live(x, 0);
}

/* Bytes that the live state frees when a backward begins that does not read it. */
static int64_t released(const struct neap__stage_memory *x, int64_t i)
{
	int64_t t = x->live;
	if (t < 0 || (t == i && neap__backward_needs_input(x->chain->stages)))
		return 0;
	return x->held[t] == 1 && !neap__stage_memory_in_tape(x, t) ? state(x, t) : 0;
}

int64_t neap__stage_memory_need(const struct neap__stage_memory *x, const struct neap_action *a)
{
	const struct neap_stages *s = x->chain->stages;
	int64_t i = a->t0, last = x->chain->steps;
	switch (a->kind) {
	case NEAP_ADVANCE:
		return x->bytes + state(x, i + 1) + neap__stage_advance_tmp(s, i);
	case NEAP_RECORD:
		return x->bytes + (int64_t)s->tape[i] + neap__stage_record_tmp(s, i) +
		       (neap__tape_holds_output(s) ? 0 : state(x, i + 1));
	case NEAP_TURN:
		return x->bytes + neap__stage_gradient(x->chain, last) +
		       neap__stage_backward_tmp(s, last);
	case NEAP_BACKWARD:
		return x->bytes - released(x, i) + neap__stage_gradient(x->chain, i) +
		       neap__stage_backward_tmp(s, i);
	case NEAP_GET:
		return x->bytes + (int64_t)neap__stages_bytes(s, a);
	default:
		return x->bytes;
	}
}

void neap__stage_memory_apply(struct neap__stage_memory *x, const struct neap_action *a)
{
	const struct neap_chain *c = x->chain;
	int64_t i = a->t0;
	switch (a->kind) {
	case NEAP_RECORD:
		neap__stage_memory_tape(x, i, NEAP__TAPE_HERE);
		neap__stage_memory_live(x, i + 1);
		x->part = neap__tape_holds_output(c->stages);
		break;
	case NEAP_ADVANCE:
		neap__stage_memory_live(x, i + 1);
		break;
	case NEAP_TURN:
		x->bytes += neap__stage_gradient(c, c->steps);
		neap__stage_memory_live(x, -1);
		break;
	case NEAP_BACKWARD:
		x->bytes += neap__stage_gradient(c, i) - neap__stage_gradient(c, i + 1);
		neap__stage_memory_tape(x, i, NEAP__TAPE_ABSENT);
		neap__stage_memory_live(x, -1);
		break;
	case NEAP_SAVE:
		neap__stage_memory_hold(x, i);
		break;
	case NEAP_LOAD:
		neap__stage_memory_live(x, i);
		x->part = a->payload == NEAP_TAPE;
		break;
	case NEAP_DROP:
		neap__stage_memory_let_go(x, i);
		break;
	default:
		break;
	}
}
