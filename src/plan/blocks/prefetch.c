/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefetch.c: keeps a window of LOOK operations ahead of the current one. When an operation that
 * needs a record enters the window, its GET is placed at the earliest operation such that all
 * operations from there to the need still fit in memory together with it and all earlier GETs.
 * This needs no clock and cannot deadlock: a GET never uses memory that an operation before its
 * need requires, and PUTs always end.
 *
 * A clock with the planned speeds decides only two things: when to wait for a PUT because it has
 * ended anyway, and whether to delay a GET whose memory is still used by PUTs. If real speeds
 * differ from the planned ones, the schedule becomes slower but never needs more memory.
 *
 * A state is read into a slot. If there are only BACKWARD operations between GET and need, it is
 * read into the live buffer, which is free during BACKWARD.
 */
#include "plan/blocks/prefetch.h"

#include <math.h>
#include "base/fail.h"
#include "plan/blocks/prefetch_state.h"
#include "plan/core/steady_state.h"

#define LOOK 2048  /* operations ahead, derived: half the window, so that a batch still fits */
#define BATCH 1024 /* operations of a batch, derived: two for each of CHUNKS_MOST chunks */

static int32_t take_number(struct neap__prefetch *x, struct neap__prefetch_numbers *n)
{
	if (n->nfree > 0)
		return n->free[--n->nfree];
	int rc = neap__prefetch_reserve(&n->free, &n->room, n->made + 1);
	if (rc < 0) {
		x->error = rc;
		return 0;
	}
	return (int32_t)n->made++;
}

static void return_number(struct neap__prefetch_numbers *n, int32_t number)
{
	n->free[n->nfree++] = number;
}

/* Index of a tier in x->tiers. */
static int near_of(const struct neap__prefetch *x, int tier)
{
	return tier > 0 && tier == x->tiers[1];
}

/* Adds the bytes, slots and steps of an action to the totals, as verify/verify.c does. */
static void account(struct neap__prefetch *x, const struct neap_action *a)
{
	struct neap__prefetch_total *t = &x->total;
	int64_t n = a->t1 - a->t0, before = x->tapes_now;
	int tapes = a->payload == NEAP_TAPE;
	if (a->kind == NEAP_SAVE || (a->kind == NEAP_GET && !tapes && a->slot != NEAP_LIVE))
		x->slots_now++;
	else if (a->kind == NEAP_DROP)
		x->slots_now--;
	else if (a->kind == NEAP_RECORD || (a->kind == NEAP_GET && tapes))
		x->tapes_now += n;
	else if (a->kind == NEAP_BACKWARD)
		x->tapes_now -= n;
	if (x->tapes_now > before || a->kind == NEAP_SAVE || a->kind == NEAP_GET) {
		uint64_t bytes = (uint64_t)x->slots_now * (uint64_t)x->state +
				 (uint64_t)x->tapes_now * x->problem.chain.tape;
		if (bytes > t->peak)
			t->peak = bytes;
	}
	if (a->kind == NEAP_ADVANCE)
		t->advanced += n;
	if (a->kind == NEAP_RECORD)
		t->recorded += n;
	struct neap__prefetch_use *use = &t->use[near_of(x, a->tier)];
	int64_t *places = tapes ? &use->tape_places : &use->state_places;
	if (a->kind == NEAP_PUT && a->place >= *places)
		*places = a->place + 1;
	if (a->kind == NEAP_PUT && tapes && n > use->longest)
		use->longest = n;
	t->actions++;
}

/* Performs an action: adds it to the totals, advances the clock, emits it. */
static void act(struct neap__prefetch *x, struct neap_action a)
{
	account(x, &a);
	if (x->error >= 0 && neap__clock_step(&x->clock, &a) < 0)
		x->error = NEAP_EILLEGAL;
	if (x->emit)
		x->emit(x->user, &a);
}

static void simple_action(struct neap__prefetch *x, int kind, int64_t t0, int64_t t1, int32_t slot)
{
	act(x, (struct neap_action){.kind = (uint8_t)kind, .t0 = t0, .t1 = t1, .slot = slot});
}

static void wait_ticket(struct neap__prefetch *x, int near, int32_t ticket)
{
	act(x, (struct neap_action){
		       .kind = NEAP_WAIT, .tier = (uint16_t)x->tiers[near], .ticket = ticket});
	return_number(&x->tickets, ticket);
}

static void drop_slot(struct neap__prefetch *x, int32_t slot, int64_t t)
{
	simple_action(x, NEAP_DROP, t, t, slot);
	return_number(&x->slots, slot);
}

/* Waits for the oldest PUT of a tier. */
static void wait_for_put(struct neap__prefetch *x, int near)
{
	struct neap__prefetch_puts *puts = &x->puts[near];
	struct neap__prefetch_put *p = neap__prefetch_put(x, near, puts->head++);
	if (puts->not_ended > 0)
		neap__clock_note(&x->clock, puts->not_ended);
	puts->not_ended = 0;
	wait_ticket(x, near, p->ticket);
	x->leaving -= p->bytes;
	if (p->tapes)
		x->tapes_now -= p->t1 - p->t0;
	else if (p->slot >= 0)
		drop_slot(x, p->slot, p->t0);
}

static int64_t puts_in_flight(const struct neap__prefetch *x, int near)
{
	return x->puts[near].tail - x->puts[near].head;
}

/* Waits for the PUT that ends first. Returns 0 if there is none. */
static int wait_for_any_put(struct neap__prefetch *x)
{
	int near = puts_in_flight(x, 1) > 0;
	if (near && puts_in_flight(x, 0) > 0) {
		long double far_end =
			x->clock.tickets[neap__prefetch_put(x, 0, x->puts[0].head)->ticket].end;
		long double near_end =
			x->clock.tickets[neap__prefetch_put(x, 1, x->puts[1].head)->ticket].end;
		neap__clock_note(&x->clock, near_end - far_end);
		near = near_end <= far_end;
	} else if (!near && puts_in_flight(x, 0) == 0) {
		return 0;
	}
	wait_for_put(x, near);
	return 1;
}

/* Waits for the PUTs that have ended according to the clock, up to rounding. */
static void wait_for_ended(struct neap__prefetch *x)
{
	for (int near = 0; near < 2; near++)
		while (puts_in_flight(x, near) > 0) {
			const struct neap__prefetch_put *p =
				neap__prefetch_put(x, near, x->puts[near].head);
			long double left = x->clock.tickets[p->ticket].end - x->clock.now;
			if (left > neap__steady_tolerance(&x->clock)) {
				x->puts[near].not_ended = left;
				break;
			}
			neap__clock_note(&x->clock, left);
			wait_for_put(x, near);
		}
}

/* Free tickets, less two that are reserved: one for a PUT and one for a GET at its need. */
static int tickets_left(const struct neap__prefetch *x)
{
	return NEAP_TICKETS - 2 - (int)(puts_in_flight(x, 0) + puts_in_flight(x, 1)) -
	       (int)(x->get_issued - x->get_head);
}

/* Waits for PUTs until `bytes` fit in addition to `held`. Returns 0 or NEAP_EINFEASIBLE. */
static int make_room(struct neap__prefetch *x, int64_t held, int64_t bytes)
{
	while (held + x->arriving + x->leaving + bytes > x->pool || tickets_left(x) < 1) {
		if (!wait_for_any_put(x))
			return held + x->arriving + bytes > x->pool ? NEAP_EINFEASIBLE : 0;
	}
	return 0;
}

/* Returns whether a state can be read into the live buffer during the operation. */
static int leaves_live(const struct neap__block_op *op)
{
	return op->kind == NEAP__OP_BACKWARD || op->kind == NEAP__OP_NEED_TAPES ||
	       op->kind == NEAP__OP_PUT_TAPES || op->kind == NEAP__OP_DROP;
}

/*
 * Places the GET of operation j, which was just appended and needs a record. Looks back from j for
 * the earliest operation with memory, but not before the PUT of the record or an earlier GET.
 */
static void place_get(struct neap__prefetch *x, int64_t j)
{
	struct neap__block_op *op = neap__prefetch_op(x, j);
	int tapes = op->kind == NEAP__OP_NEED_TAPES;
	int64_t n = tapes ? (op->t1 - op->t0) * (int64_t)x->problem.chain.tape : x->state;
	int64_t low = op->after + 1, i = j, live = j;
	/* Even if the state is not kept, its slot is in use while it is copied to the live buffer.
	 */
	int slot_stays = !tapes && op->handle < 0;
	if (low < x->head)
		low = x->head;
	if (x->get_tail > x->get_head && low < neap__prefetch_get(x, x->get_tail - 1)->issue)
		low = neap__prefetch_get(x, x->get_tail - 1)->issue;
	if (x->get_tail - x->get_head >= x->ahead &&
		low < neap__prefetch_get(x, x->get_tail - x->ahead)->need)
		low = neap__prefetch_get(x, x->get_tail - x->ahead)->need;
	if (x->sync)
		low = j;
	int fits = !slot_stays || op->held + op->incoming + n <= x->pool;
	while (fits && i > low &&
		neap__prefetch_op(x, i - 1)->held + neap__prefetch_op(x, i - 1)->incoming + n <=
			x->pool)
		i--;
	while (!tapes && live > low && leaves_live(neap__prefetch_op(x, live - 1)))
		live--;
	struct neap__prefetch_get g = {.issue = i,
		.need = j,
		.t0 = op->t0,
		.t1 = op->t1,
		.place = op->place,
		.bytes = n,
		.tapes = (uint8_t)tapes,
		.near = op->near,
		.inside = op->inside};
	if (!tapes && (live <= i || i == j)) {
		g.issue = live;
		g.live = 1;
		g.bytes = 0;
	}
	for (int64_t k = g.issue; k < j + (slot_stays && !g.live); k++)
		neap__prefetch_op(x, k)->incoming += g.bytes;
	*neap__prefetch_get(x, x->get_tail++) = g;
}

static void append(void *user, const struct neap__block_op *op)
{
	struct neap__prefetch *x = user;
	int64_t j = x->tail++;
	*neap__prefetch_op(x, j) = *op;
	neap__prefetch_op(x, j)->incoming = 0;
	if (op->kind == NEAP__OP_NEED_STATE || op->kind == NEAP__OP_NEED_TAPES)
		place_get(x, j);
}

static int fill(struct neap__prefetch *x)
{
	while (!x->ended && x->tail - x->head < LOOK &&
		x->get_tail - x->get_head < NEAP__PREFETCH_GETS / 2) {
		int rc = neap__block_program_next(&x->program, append, x);
		if (rc < 0)
			return rc;
		if (x->tail - x->head > NEAP__PREFETCH_WINDOW - BATCH && rc > 0 &&
			x->tail - x->head >= NEAP__PREFETCH_WINDOW)
			return NEAP_EINFEASIBLE; /* a block does not fit in the window */
		x->ended = rc == 0;
	}
	return 0;
}

static void issue(struct neap__prefetch *x, struct neap__prefetch_get *g)
{
	g->slot = g->tapes ? 0 : g->live ? NEAP_LIVE : take_number(x, &x->slots);
	g->ticket = take_number(x, &x->tickets);
	act(x, (struct neap_action){.kind = NEAP_GET,
		       .payload = g->tapes ? NEAP_TAPE : NEAP_STATE,
		       .tier = (uint16_t)x->tiers[g->near],
		       .ticket = g->ticket,
		       .slot = g->slot,
		       .t0 = g->t0,
		       .t1 = g->t1,
		       .place = g->place});
	x->arriving += g->bytes;
	x->get_issued++;
}

/* Index of the PUT in flight that writes the tapes of a GET; -1: none. */
static int64_t still_leaving(struct neap__prefetch *x, const struct neap__prefetch_get *g)
{
	const struct neap__prefetch_puts *puts = &x->puts[g->near];
	for (int64_t i = puts->tail - 1; g->tapes && i >= puts->head; i--) {
		const struct neap__prefetch_put *p = neap__prefetch_put(x, g->near, i);
		if (p->tapes && p->place == g->place)
			return i;
	}
	return -1;
}

/* Issues in order the GETs that are placed at or before operation i; stops if one must wait. */
static int issue_due(struct neap__prefetch *x, int64_t i)
{
	int64_t held = neap__prefetch_op(x, i)->held;
	while (x->get_issued < x->get_tail && neap__prefetch_get(x, x->get_issued)->issue <= i) {
		struct neap__prefetch_get *g = neap__prefetch_get(x, x->get_issued);
		/* The bytes of the GET for operation i itself are already included in `held`. */
		int64_t bytes = g->need == i && (g->tapes || neap__prefetch_op(x, i)->handle >= 0)
					? 0
					: g->bytes;
		int64_t put = still_leaving(x, g);
		const struct neap__prefetch_puts *puts = &x->puts[g->near];
		while (g->need == i && puts->head <= put)
			wait_for_put(x, g->near);
		if (g->need == i)
			NEAP_TRY(make_room(x, held, bytes));
		else if (put >= puts->head && put >= 0)
			return 0;
		else if (held + x->arriving + x->leaving + bytes > x->pool || tickets_left(x) < 1)
			return 0; /* is issued later, at the latest at its need */
		issue(x, g);
	}
	return 0;
}

/* Copies the live state into a slot and writes the copy; without memory, writes it and waits. */
static int put_state(struct neap__prefetch *x, const struct neap__block_op *op)
{
	struct neap_action a = {.kind = NEAP_PUT,
		.tier = (uint16_t)x->tiers[op->near],
		.slot = NEAP_LIVE,
		.t0 = op->t0,
		.t1 = op->t0,
		.place = op->place};
	int staged = !x->sync && op->held + x->arriving + x->state <= x->pool;
	NEAP_TRY(make_room(x, op->held, staged ? x->state : 0));
	a.ticket = take_number(x, &x->tickets);
	if (!staged) {
		act(x, a);
		wait_ticket(x, op->near, a.ticket);
		return 0;
	}
	int32_t slot = take_number(x, &x->slots);
	simple_action(x, NEAP_SAVE, op->t0, op->t0, slot);
	a.slot = slot;
	act(x, a);
	*neap__prefetch_put(x, op->near, x->puts[op->near].tail++) =
		(struct neap__prefetch_put){.bytes = x->state,
			.t0 = op->t0,
			.place = op->place,
			.slot = slot,
			.ticket = a.ticket,
			.inside = op->inside};
	x->leaving += x->state;
	return 0;
}

static int put_tapes(struct neap__prefetch *x, const struct neap__block_op *op)
{
	int64_t bytes = (op->t1 - op->t0) * (int64_t)x->problem.chain.tape;
	while (tickets_left(x) < 1 && wait_for_any_put(x))
		;
	int32_t ticket = take_number(x, &x->tickets);
	act(x, (struct neap_action){.kind = NEAP_PUT,
		       .payload = NEAP_TAPE,
		       .tier = (uint16_t)x->tiers[op->near],
		       .ticket = ticket,
		       .t0 = op->t0,
		       .t1 = op->t1,
		       .place = op->place});
	*neap__prefetch_put(x, op->near, x->puts[op->near].tail++) =
		(struct neap__prefetch_put){.bytes = bytes,
			.t0 = op->t0,
			.t1 = op->t1,
			.place = op->place,
			.slot = -1,
			.ticket = ticket,
			.tapes = 1,
			.inside = op->inside};
	x->leaving += bytes;
	return 0;
}

static void forget(struct neap__prefetch *x, int payload, const struct neap__block_op *op)
{
	const struct neap__prefetch_puts *puts = &x->puts[op->near];
	/* The PUT of the record may still be in flight. */
	for (int64_t i = puts->tail - 1; i >= puts->head; i--) {
		const struct neap__prefetch_put *p = neap__prefetch_put(x, op->near, i);
		if (p->tapes == (payload == NEAP_TAPE) && p->place == op->place)
			while (puts->head <= i)
				wait_for_put(x, op->near);
	}
	act(x, (struct neap_action){.kind = NEAP_FORGET,
		       .payload = (uint8_t)payload,
		       .tier = (uint16_t)x->tiers[op->near],
		       .t0 = op->t0,
		       .t1 = op->t1,
		       .place = op->place});
}

/* Stores which slot a handle of the program refers to. */
static void bind(struct neap__prefetch *x, int32_t handle, int32_t slot)
{
	int rc = neap__prefetch_reserve(&x->slot_of, &x->handles, (int64_t)handle + 1);
	if (rc < 0) {
		x->error = rc;
		return;
	}
	x->slot_of[handle] = slot;
}

static void need_state(struct neap__prefetch *x, const struct neap__block_op *op)
{
	struct neap__prefetch_get *g = neap__prefetch_get(x, x->get_head++);
	wait_ticket(x, g->near, g->ticket);
	x->arriving -= g->bytes;
	int32_t slot = g->slot;
	if (!g->live)
		simple_action(x, NEAP_LOAD, op->t0, op->t0, slot);
	if (op->handle < 0) {
		if (!g->live)
			drop_slot(x, slot, op->t0);
		return;
	}
	if (g->live) {
		slot = take_number(x, &x->slots);
		simple_action(x, NEAP_SAVE, op->t0, op->t0, slot);
	}
	bind(x, op->handle, slot);
}

static void need_tapes(struct neap__prefetch *x, const struct neap__block_op *op)
{
	struct neap__prefetch_get *g = neap__prefetch_get(x, x->get_head++);
	wait_ticket(x, g->near, g->ticket);
	x->arriving -= g->bytes;
	forget(x, NEAP_TAPE, op);
}

static void slot_op(struct neap__prefetch *x, const struct neap__block_op *op)
{
	if (op->kind == NEAP__OP_SAVE) {
		int32_t slot = take_number(x, &x->slots);
		simple_action(x, NEAP_SAVE, op->t0, op->t0, slot);
		bind(x, op->handle, slot);
	} else if (op->kind == NEAP__OP_LOAD) {
		simple_action(x, NEAP_LOAD, op->t0, op->t0, x->slot_of[op->handle]);
	} else {
		drop_slot(x, x->slot_of[op->handle], op->t0);
	}
}

static int perform(struct neap__prefetch *x, const struct neap__block_op *op)
{
	static const uint8_t kinds[] = {[NEAP__OP_ADVANCE] = NEAP_ADVANCE,
		[NEAP__OP_RECORD] = NEAP_RECORD,
		[NEAP__OP_TURN] = NEAP_TURN,
		[NEAP__OP_BACKWARD] = NEAP_BACKWARD};
	if (op->kind == NEAP__OP_PUT_STATE)
		return put_state(x, op);
	if (op->kind == NEAP__OP_PUT_TAPES)
		return put_tapes(x, op);
	if (op->kind == NEAP__OP_NEED_STATE)
		need_state(x, op);
	else if (op->kind == NEAP__OP_NEED_TAPES)
		need_tapes(x, op);
	else if (op->kind == NEAP__OP_FORGET)
		forget(x, NEAP_STATE, op);
	else if (op->kind == NEAP__OP_SAVE || op->kind == NEAP__OP_LOAD ||
		 op->kind == NEAP__OP_DROP)
		slot_op(x, op);
	else
		simple_action(x, kinds[op->kind], op->t0, op->t1, 0);
	return 0;
}

/* Bytes of the GET of this operation that are also included in its `held`. */
static int64_t arrived_bytes(struct neap__prefetch *x, const struct neap__block_op *op)
{
	int keeps = op->kind == NEAP__OP_NEED_TAPES ||
		    (op->kind == NEAP__OP_NEED_STATE && op->handle >= 0);
	return keeps ? neap__prefetch_get(x, x->get_head)->bytes : 0;
}

int neap__prefetch_next(struct neap__prefetch *x,
	void (*emit)(void *user, const struct neap_action *action), void *user)
{
	x->emit = emit;
	x->user = user;
	NEAP_TRY(fill(x));
	if (x->head == x->tail) {
		while (wait_for_any_put(x))
			;
		return x->error;
	}
	int64_t i = x->head;
	const struct neap__block_op *op = neap__prefetch_op(x, i);
	if (x->watch && op->begins)
		neap__prefetch_block_begins(x, op->begins);
	wait_for_ended(x);
	NEAP_TRY(issue_due(x, i));
	/* PUT_TAPES needs no memory: its bytes move from `held` to `leaving`. */
	NEAP_TRY(make_room(x, op->held - arrived_bytes(x, op), 0));
	NEAP_TRY(perform(x, op));
	x->head++;
	return x->error < 0 ? x->error : 1;
}

int neap__prefetch_run(struct neap__prefetch *x, const struct neap_problem *problem, int tier,
	const struct neap_blocks *blocks, const struct neap_near *near, double below, int64_t most,
	int64_t *performed)
{
	NEAP_TRY(neap__prefetch_watch_begin(x));
	int rc = neap__prefetch_start(x, problem, tier, blocks, near);
	int64_t n = 0;
	rc = rc < 0 ? rc : 1;
	for (; rc > 0 && n < most && (below == INFINITY || neap__prefetch_least(x) < below); n++)
		rc = neap__prefetch_next(x, NULL, NULL);
	*performed += n;
	neap__prefetch_watch_end(x);
	return rc;
}
