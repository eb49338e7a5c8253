/* SPDX-License-Identifier: Apache-2.0 */
/* revolve_stack.c: one split or one step of Revolve at a time. */
#include "plan/recompute/revolve_stack.h"

#include "base/fail.h"
#include "base/grow.h"

static int grow(struct neap__revolve_stack *x, int64_t room)
{
	int rc = neap__grow(&x->stack, &x->room, room, sizeof *x->stack);
	return rc < 0 ? neap__fail(rc, "schedule: out of memory") : 0;
}

int64_t neap__revolve_stack_tables(struct neap_schedule *s, int64_t room)
{
	struct neap__revolve_stack *x = s->self;
	NEAP_TRY(grow(x, room));
	return x->room;
}

static int push(struct neap__revolve_stack *x, int64_t t0, struct neap__binomial part)
{
	NEAP_TRY(grow(x, x->depth + 1));
	x->stack[x->depth].t0 = t0;
	x->stack[x->depth].part = part;
	x->depth++;
	return 0;
}

int neap__revolve_stack_push(struct neap__revolve_stack *x, int64_t t0, int64_t l, int64_t slots)
{
	return push(x, t0, l > 1 ? neap__binomial(l, slots) : (struct neap__binomial){.l = 1});
}

/*
 * Splits the topmost part and saves the first state of the right part, or reverses a part of
 * one step. The first state of the topmost part is live; for two steps or more its slot
 * holds that state too.
 */
static int descend(struct neap__revolve_stack *x, struct neap_schedule *s)
{
	int64_t t0 = x->stack[x->depth - 1].t0;
	struct neap__binomial part = x->stack[x->depth - 1].part;
	if (part.l == 1) {
		x->depth--;
		x->down = 0;
		neap__record(s, t0, t0 + 1);
		if (!x->turned)
			neap__emit_turn(s);
		x->turned = 1;
		neap__backward(s, t0, t0 + 1);
		return 0;
	}
	int64_t y = neap__binomial_split(&part);
	x->stack[x->depth - 1].part =
		y >= 2 ? neap__binomial_left(&part, y) : (struct neap__binomial){.l = 1};
	neap__advance(s, t0, t0 + y);
	if (part.l - y == 1)
		return push(x, t0 + y, (struct neap__binomial){.l = 1});
	neap__save(s, x->depth, t0 + y);
	return push(x, t0 + y, neap__binomial_right(&part, y));
}

int neap__revolve_stack_next(struct neap__revolve_stack *x, struct neap_schedule *s)
{
	if (x->depth == 0)
		return 0;
	int64_t slot = x->depth - 1, t0 = x->stack[slot].t0;
	if (!x->down) {
		neap__load(s, slot, t0);
		if (x->stack[slot].part.l == 1)
			neap__drop(s, slot, t0);
	}
	x->down = 1;
	return descend(x, s);
}
