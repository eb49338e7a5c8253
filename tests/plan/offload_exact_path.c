/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offload_exact_path.c: the schedule that leads to a node. x_t lies in slot t, and every
 * transfer that ended during a move is waited for after that move.
 */
#include <errno.h>
#include <stdlib.h>
#include "base/fail.h"
#include "plan/offload_exact_node.h"

/* Along the path. */
struct writer {
	const struct neap__offload_exact_search *x;
	struct neap__action_list *out;
	int64_t live; /* -1: none */
	int useless;  /* the live state is of no more use, and no other state is there */
	uint32_t slots, in_live;
	int32_t ticket[32];
	uint32_t in_flight; /* tickets */
};

static void slot(struct writer *w, int kind, int64_t t)
{
	neap__action_list_slot(w->out, kind, t, t);
	w->slots = kind == NEAP_SAVE ? w->slots | STATE(t) : w->slots & ~STATE(t);
}

static void bring(struct writer *w, const struct neap__offload_exact_spot *a, int64_t t)
{
	w->useless = 0;
	if (w->live == t)
		return;
	w->live = t;
	if (w->slots & STATE(t))
		neap__action_list_slot(w->out, NEAP_LOAD, t, t);
	else if (neap__offload_exact_in_tape(w->x, a, t))
		neap__action_list_load_tape(w->out, t);
}

static void drop(struct writer *w, const struct neap__offload_exact_spot *left, int64_t t)
{
	if (w->slots & STATE(t))
		slot(w, NEAP_DROP, t);
	if (w->live != t || neap__offload_exact_present(w->x, left, t))
		return;
	for (int64_t u = 0; u <= w->x->n; u++)
		if (neap__offload_exact_present(w->x, left, u) &&
			(w->slots & STATE(u) || neap__offload_exact_in_tape(w->x, left, u))) {
			bring(w, left, u);
			return;
		}
	w->useless = 1;
}

static void move_bytes(struct writer *w, int kind, uint32_t bit)
{
	int k = __builtin_ctz(bit), tape = k >= 16;
	int64_t t = tape ? k - 16 : k;
	int32_t ticket = w->ticket[k];
	if (kind == NEAP_PUT || kind == NEAP_GET) {
		for (ticket = 0; w->in_flight >> ticket & 1; ticket++)
			;
		w->ticket[k] = ticket;
		w->in_flight |= (uint32_t)1 << ticket;
	} else if (kind == NEAP_WAIT) {
		w->in_flight &= ~((uint32_t)1 << ticket);
	}
	int64_t place = t, at = tape ? 0 : t;
	if (kind == NEAP_GET && !tape && w->useless) {
		at = NEAP_LIVE;
		w->live = t;
		w->useless = 0;
		w->in_live |= bit;
	}
	neap__action_list_add(w->out, &(struct neap_action){.kind = (uint8_t)kind,
					      .payload = tape ? NEAP_TAPE : NEAP_STATE,
					      .tier = 1,
					      .ticket = ticket,
					      .slot = at,
					      .t0 = t,
					      .t1 = tape ? t + 1 : t,
					      .place = place});
}

static void end_flight(struct writer *w, uint32_t bit, int put)
{
	int k = __builtin_ctz(bit), tape = k >= 16;
	if (put && tape && w->live == k - 15)
		w->live = -1; /* it left with the tape */
	move_bytes(w, NEAP_WAIT, bit);
	if (!put && tape)
		move_bytes(w, NEAP_FORGET, bit);
	if (!put && !tape && w->in_live & bit)
		slot(w, NEAP_SAVE, k);
	else if (!put && !tape)
		w->slots |= STATE(k);
	w->in_live &= ~bit;
}

static void write_move(struct writer *w, const struct neap__offload_exact_node *to,
	const struct neap__offload_exact_spot *a)
{
	const struct neap__offload_exact_spot *b = &to->spot;
	int64_t i = to->bit;
	switch (to->move) {
	case MOVE_ADVANCE:
	case MOVE_RECORD:
		bring(w, a, i);
		neap__action_list_forward(
			w->out, to->move == MOVE_RECORD ? NEAP_RECORD : NEAP_ADVANCE, i, i + 1);
		w->live = i + 1;
		if ((to->move == MOVE_ADVANCE || !w->x->holds) && !(w->slots & STATE(i + 1)))
			slot(w, NEAP_SAVE, i + 1);
		break;
	case MOVE_TURN:
		bring(w, a, i);
		neap__action_list_add(
			w->out, &(struct neap_action){.kind = NEAP_TURN, .t0 = i, .t1 = i});
		w->live = -1;
		break;
	case MOVE_BACKWARD:
		neap__action_list_forward(w->out, NEAP_BACKWARD, i, i + 1);
		w->live = -1;
		w->useless = 0;
		break;
	case MOVE_PUT:
		move_bytes(w, NEAP_PUT, to->bit);
		break;
	case MOVE_GET:
		move_bytes(w, NEAP_GET, to->bit);
		break;
	case MOVE_DROP:
		drop(w, b, __builtin_ctz(to->bit));
		break;
	default:
		break;
	}
	/* What ended meanwhile. */
	uint32_t flying = to->move == MOVE_PUT || to->move == MOVE_GET ? to->bit : 0;
	for (uint32_t r = (a->leaving | (to->move == MOVE_PUT ? flying : 0)) & ~b->leaving; r;
		r &= r - 1)
		end_flight(w, r & -r, 1);
	for (uint32_t r = (a->arriving | (to->move == MOVE_GET ? flying : 0)) & ~b->arriving; r;
		r &= r - 1)
		end_flight(w, r & -r, 0);
	for (int64_t t = 0; t <= w->x->n; t++)
		if (w->slots & STATE(t) && !(b->fast & STATE(t)))
			slot(w, NEAP_DROP, t);
}

int neap__offload_exact_path(
	const struct neap__offload_exact_search *x, int64_t k, struct neap__action_list *out)
{
	struct writer w = {.x = x, .out = out};
	int64_t length = 0;
	for (int64_t at = k; at >= 0; at = x->node[at].parent)
		length++;
	int64_t *path = malloc((size_t)length * sizeof *path);
	if (!path)
		return neap__fail(-ENOMEM, "plan: out of memory");
	for (int64_t at = k, i = length; at >= 0; at = x->node[at].parent)
		path[--i] = at;
	slot(&w, NEAP_SAVE, 0);
	for (int64_t i = 1; i < length; i++)
		write_move(&w, &x->node[path[i]], &x->node[path[i - 1]].spot);
	free(path);
	return out->error ? out->error : 1;
}
