/* SPDX-License-Identifier: Apache-2.0 */
/*
 * online_schedule.c: forward, each ADVANCE goes up to the step at which the next state is to be
 * kept. Once the length is known and reached, the list of kept states is the stack of the
 * reversal: entry i has i states before it, and entries above `count` hold the numbers of
 * the slots that fell free.
 */
#include "plan/online/online_schedule.h"

#include "base/fail.h"
#include "plan/core/sizing.h"

/*
 * The sizes in the unit that leaf_revolve.h is to compute with: bytes, or slots in a classic
 * problem. There one tape costs nothing: C slots and a tape of C + 1 units in a pool of 2 C + 1
 * units give leaves of one step. In a mixed problem a tape takes a slot: a tape of 1 unit in a
 * pool of C + 1.
 */
static void units(const struct neap_problem *p, int64_t *pool, int64_t *state, int64_t *tape)
{
	const struct neap_chain *c = &p->chain;
	*pool = neap__pool_bytes(p, 0);
	*state = (int64_t)c->state;
	*tape = (int64_t)c->tape;
	if (c->flags & NEAP_CHAIN_CLASSIC) {
		int64_t slots = *pool < INT32_MAX ? *pool : INT32_MAX;
		int mixed = (c->flags & NEAP_CHAIN_MIXED) != 0;
		*tape = mixed ? 1 : slots + 1;
		*pool = slots + *tape;
	} else if (*tape == 0) { /* any number of tapes fits */
		*tape = 1;
		*pool = *pool < 0 ? -1 : *pool + INT64_MAX / 4;
	}
}

int64_t neap__online_slots(const struct neap_problem *p)
{
	int64_t pool = neap__pool_bytes(p, 0), tape = (int64_t)p->chain.tape;
	if (pool < tape)
		return 0;
	int64_t slots = (pool - tape) / (int64_t)p->chain.state;
	return slots < NEAP__ONLINE_SLOTS ? slots : NEAP__ONLINE_SLOTS;
}

int neap__online_init(struct neap__online *x, const struct neap_problem *p, int64_t slots)
{
	int64_t pool, state, tape;
	units(p, &pool, &state, &tape);
	*x = (struct neap__online){.steps = INT64_MAX, .position = -1};
	NEAP_TRY(neap__leaf_revolve_open(&x->costs, pool, state, tape, slots, 3));
	return neap__placement_open(&x->placement, &x->costs);
}

void neap__online_fini(struct neap__online *x)
{
	neap__leaf_revolve_free(&x->costs);
	neap__placement_free(&x->placement);
}

static int keep(struct neap__online *x, struct neap_schedule *s)
{
	struct neap__kept_state evicted;
	NEAP_TRY(neap__placement_keep(&x->placement, x->at, &evicted));
	x->from = x->at;
	if (evicted.slot >= 0)
		neap__drop(s, evicted.slot, evicted.t);
	neap__save(s, evicted.slot >= 0 ? evicted.slot : x->placement.slots - 1, x->at);
	return 0;
}

/* Begins the reversal: finds the split of each part between kept states. */
static void begin_reversal(struct neap__online *x)
{
	struct neap__placement *list = &x->placement;
	int64_t end = x->at < 0 ? x->steps : x->at;
	x->position = x->steps;
	neap__placement_settle(list);
	for (int64_t i = list->count - 1; i >= 0; i--) {
		struct neap__kept_state *k = &list->kept[i];
		k->level = neap__leaf_revolve_part(&x->costs, end - k->t, i).level;
		end = k->t;
	}
	x->level = 0; /* a single step */
}

static int forward(struct neap__online *x, struct neap_schedule *s)
{
	if (x->at == x->steps) {
		neap__emit_turn(s);
		x->turned = 1;
		x->at = -1;
		begin_reversal(x);
		return 0;
	}
	if (!x->begun) {
		x->begun = 1;
		neap__save(s, 0, 0);
		return 0;
	}
	/* The state before the last step is never kept: that step is recorded at once. */
	if (x->at < x->steps - 1 && neap__placement_due(&x->placement, x->at))
		return keep(x, s);
	if (x->at < x->steps - 1) {
		int64_t to = neap__placement_until(&x->placement, x->at);
		x->from = x->at;
		x->at = to < x->steps - 1 ? to : x->steps - 1;
		neap__advance(s, x->from, x->at);
		return 0;
	}
	begin_reversal(x);
	return 0;
}

/* One split or one leaf. The first state of the topmost part is live or in its slot. */
static int backward(struct neap__online *x, struct neap_schedule *s)
{
	struct neap__placement *list = &x->placement;
	struct neap__kept_state *top = &list->kept[list->count - 1];
	if (x->at < 0 && top->t == x->position) { /* the chain ends at a state that was kept */
		neap__drop(s, top->slot, top->t);
		list->count--;
		return 0;
	}
	if (x->at < 0) {
		x->at = top->t;
		x->level = top->level;
		neap__load(s, top->slot, top->t);
	}
	int kept = x->at == top->t;
	struct neap__leaf_part left, right,
		part = {.l = x->position - x->at, .j = list->count - kept, .level = x->level};
	if (part.l <= neap__leaf_revolve_fit(&x->costs, part.j)) {
		if (kept) {
			neap__drop(s, top->slot, top->t);
			list->count--;
		}
		neap__record(s, x->at, x->position);
		if (!x->turned)
			neap__emit_turn(s);
		x->turned = 1;
		neap__backward(s, x->at, x->position);
		x->position = x->at;
		x->at = -1;
		return 0;
	}
	if (!kept) {
		int64_t slot = neap__placement_push(list, x->at);
		NEAP_TRY((int)(slot < 0 ? slot : 0));
		neap__save(s, slot, x->at);
	}
	int64_t y = neap__leaf_revolve_split(&x->costs, &part, &left, &right);
	neap__advance(s, x->at, x->at + y);
	list->kept[list->count - 1].level = left.level;
	x->at += y;
	x->level = right.level;
	return 0;
}

int neap__online_refill(struct neap__online *x, struct neap_schedule *s)
{
	size_t before = s->length;
	while (s->length == before && x->position != 0) {
		if (x->position < 0)
			NEAP_TRY(forward(x, s));
		else
			NEAP_TRY(backward(x, s));
	}
	return 0;
}
