/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prefetch_skip.c: runs a plan of blocks to its end without performing every block. Between two
 * blocks, all that follows depends on the operations in the window, on the transfers in flight
 * and on the clock. Where the first two are equal a period of blocks apart and the clock is in
 * its steady state (core/steady_state.h), periods are left out: numbers of steps and places
 * move on, and the clock with them. A period is one block, or more where one block shows no
 * steady state. Ours.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include "base/fail.h"
#include "plan/blocks/prefetch_state.h"
#include "plan/core/steady_state.h"

/* All values are chosen: comparing periods must cost less than performing them. */
#define TRIES_MOST 12	    /* periods without a steady state before longer ones are tried */
#define OPERATIONS_LEAST 32 /* of a period: comparing two takes as long as some operations */
#define PERIODS_LEAST 6	    /* fewer periods are performed, not left out */
#define LONGER 3	    /* the next length of a period over the one before */

/* The totals, and the ends of the transfers in flight, between two blocks. */
struct skip_mark {
	struct neap__prefetch_total total;
	long double put_end[2][NEAP_TICKETS], get_end[NEAP_TICKETS]; /* in order */
};

/* What is watched while a plan runs. */
struct neap__prefetch_watch {
	struct neap__steady steady;
	int begins;	       /* enum neap__block_op_begins: going up or down */
	int64_t every, blocks; /* blocks of a period; of them performed so far */
	int64_t tries, from;   /* periods without a steady state; first operation of the period */
	struct skip_mark before, now;
};

/* Starts to watch anew. */
static void forget(struct neap__prefetch *x)
{
	neap__steady_forget(&x->watch->steady, &x->clock);
	x->watch->tries = 0;
}

static uint64_t mix(uint64_t hash, int64_t value)
{
	hash = (hash ^ (uint64_t)value) * 0x9e3779b97f4a7c15u;
	return hash ^ hash >> 32;
}

/* A hash of all that decides what follows, but for times and absolute numbers. */
static uint64_t signature(struct neap__prefetch *x)
{
	const struct neap__block_program *p = &x->program;
	uint64_t h = mix(0, x->tail - x->head);
	h = mix(mix(mix(h, p->whole.phase), p->depth), p->whole.chunk);
	h = mix(mix(mix(h, p->part.phase), p->part.at), p->part.chunk);
	h = mix(mix(mix(h, p->held), p->spare), x->arriving);
	h = mix(mix(mix(h, x->leaving), x->slots_now), x->tapes_now);
	h = mix(mix(h, x->total.actions - x->watch->now.total.actions),
		x->get_issued - x->get_head);
	for (int64_t i = x->head; i < x->tail; i++) {
		const struct neap__block_op *op = neap__prefetch_op(x, i);
		h = mix(mix(mix(h, op->kind), op->held), op->incoming);
		h = mix(mix(h, op->t1 - op->t0), op->near);
	}
	for (int64_t i = x->get_head; i < x->get_tail; i++) {
		const struct neap__prefetch_get *g = neap__prefetch_get(x, i);
		h = mix(mix(h, g->issue < x->head ? -1 : g->issue - x->head), g->need - x->head);
		h = mix(mix(mix(h, g->bytes), g->live), g->near);
	}
	for (int near = 0; near < 2; near++)
		for (int64_t i = x->puts[near].head; i < x->puts[near].tail; i++) {
			const struct neap__prefetch_put *q = neap__prefetch_put(x, near, i);
			h = mix(mix(mix(mix(h, q->bytes), q->tapes), q->slot < 0), near);
		}
	return h;
}

/* Notes the times that the clock will compare: ends of transfers, channels. */
static void note_times(struct neap__prefetch *x)
{
	struct neap__clock *k = &x->clock;
	for (int near = 0; near < 2; near++) {
		const struct neap__prefetch_puts *puts = &x->puts[near];
		if (puts->not_ended > 0)
			neap__clock_note(k, puts->not_ended);
		for (int64_t i = puts->head; i < puts->tail; i++)
			neap__clock_note(
				k, k->tickets[neap__prefetch_put(x, near, i)->ticket].end - k->now);
	}
	for (int64_t i = x->get_head; i < x->get_issued; i++)
		neap__clock_note(k, k->tickets[neap__prefetch_get(x, i)->ticket].end - k->now);
	for (int near = 0; near < 2; near++)
		if (x->tiers[near] > 0) {
			neap__clock_note(k, k->out[x->tiers[near] - 1] - k->now);
			neap__clock_note(k, k->in[x->tiers[near] - 1] - k->now);
		}
}

/* Remembers totals and ends of transfers. */
static void mark(struct neap__prefetch *x)
{
	struct skip_mark *m = &x->watch->now;
	x->watch->before = *m;
	m->total = x->total;
	for (int near = 0; near < 2; near++)
		for (int64_t i = x->puts[near].head; i < x->puts[near].tail; i++)
			m->put_end[near][i - x->puts[near].head] =
				x->clock.tickets[neap__prefetch_put(x, near, i)->ticket].end;
	for (int64_t i = x->get_head; i < x->get_issued; i++)
		m->get_end[i - x->get_head] =
			x->clock.tickets[neap__prefetch_get(x, i)->ticket].end;
}

/* Moves a transfer in flight: its end by `periods` periods, its place by `places`. */
static void move_ticket(struct neap__prefetch *x, int32_t ticket, long double before,
	int64_t periods, int64_t places)
{
	long double *end = &x->clock.tickets[ticket].end;
	*end = neap__steady_move(*end, before, periods);
	x->clock.tickets[ticket].place += places;
}

/* Moves the numbers of `op`, a transfer, by `blocks` blocks; returns by how much its place moved.
 */
static int64_t shift(const struct neap__block_program *p, struct neap__block_op op, int64_t blocks,
	int64_t *t0, int64_t *t1, int64_t *place)
{
	op.t0 = *t0;
	op.t1 = *t1;
	op.place = *place;
	neap__block_program_shift(p, &op, blocks);
	int64_t places = op.place - *place;
	*t0 = op.t0;
	*t1 = op.t1;
	*place = op.place;
	return places;
}

static void move_transfers(struct neap__prefetch *x, int64_t periods, int64_t blocks)
{
	const struct skip_mark *m = &x->watch->before;
	for (int near = 0; near < 2; near++)
		for (int64_t i = x->puts[near].head; i < x->puts[near].tail; i++) {
			struct neap__prefetch_put *q = neap__prefetch_put(x, near, i);
			struct neap__block_op op = {
				.kind = q->tapes ? NEAP__OP_PUT_TAPES : NEAP__OP_PUT_STATE,
				.near = (uint8_t)near,
				.inside = q->inside};
			int64_t places = shift(&x->program, op, blocks, &q->t0, &q->t1, &q->place);
			move_ticket(x, q->ticket, m->put_end[near][i - x->puts[near].head], periods,
				places);
		}
	for (int64_t i = x->get_head; i < x->get_tail; i++) {
		struct neap__prefetch_get *g = neap__prefetch_get(x, i);
		struct neap__block_op op = {
			.kind = g->tapes ? NEAP__OP_NEED_TAPES : NEAP__OP_NEED_STATE,
			.near = g->near,
			.inside = g->inside};
		int64_t places = shift(&x->program, op, blocks, &g->t0, &g->t1, &g->place);
		if (i < x->get_issued)
			move_ticket(x, g->ticket, m->get_end[i - x->get_head], periods, places);
	}
}

static void skip_periods(struct neap__prefetch *x, int64_t periods)
{
	struct neap__prefetch_watch *w = x->watch;
	const struct neap__prefetch_total *b = &w->before.total;
	int64_t blocks = periods * w->every;
	if (w->begins == NEAP__BEGINS_DOWN)
		blocks = -blocks;
	neap__steady_skip(&w->steady, &x->clock, periods);
	move_transfers(x, periods, blocks);
	for (int64_t i = x->head; i < x->tail; i++)
		neap__block_program_shift(&x->program, neap__prefetch_op(x, i), blocks);
	neap__block_program_skip(&x->program, w->begins, periods * w->every);
	x->total.advanced += periods * (x->total.advanced - b->advanced);
	x->total.recorded += periods * (x->total.recorded - b->recorded);
	x->total.actions += periods * (x->total.actions - b->actions);
	forget(x);
}

/* Returns 1 where transfers in flight can be moved: going down, no PUT of the way up is left. */
static int may_renumber(struct neap__prefetch *x, int begins)
{
	for (int near = 0; begins == NEAP__BEGINS_DOWN && near < 2; near++)
		for (int64_t i = x->puts[near].head; i < x->puts[near].tail; i++) {
			const struct neap__prefetch_put *q = neap__prefetch_put(x, near, i);
			if (!q->inside && (q->tapes || q->place < x->program.whole.blocks))
				return 0;
		}
	return 1;
}

void neap__prefetch_block_begins(struct neap__prefetch *x, int begins)
{
	struct neap__prefetch_watch *w = x->watch;
	int64_t alike = neap__block_program_alike(&x->program, begins);
	int64_t period = neap__block_period(&x->program);
	if (begins != w->begins) {
		w->every = period;
		forget(x);
	}
	w->begins = begins;
	if (x->tiers[0] < 1 || alike < 4 * w->every || !may_renumber(x, begins)) {
		forget(x);
		return;
	}
	if (w->steady.begun && ++w->blocks < w->every)
		return;
	if (w->steady.begun && x->head - w->from < OPERATIONS_LEAST) {
		w->every += period;
		return;
	}
	if (w->steady.begun) {
		int64_t most = alike / w->every;
		note_times(x);
		uint64_t now = signature(x);
		mark(x);
		int64_t periods = neap__steady_end(&w->steady, &x->clock, now, most);
		if (periods > PERIODS_LEAST)
			skip_periods(x, periods);
		else if (neap__steady_watched(&w->steady) && ++w->tries > TRIES_MOST) {
			w->every *= LONGER;
			forget(x);
		}
	}
	w->blocks = 0;
	w->from = x->head;
	if (!w->steady.known)
		mark(x);
	neap__steady_begin(&w->steady, &x->clock);
}

int neap__prefetch_watch_begin(struct neap__prefetch *x)
{
	free(x->watch);
	x->watch = calloc(1, sizeof *x->watch);
	return x->watch ? 0 : neap__fail(-ENOMEM, "plan: out of memory");
}

void neap__prefetch_watch_end(struct neap__prefetch *x)
{
	free(x->watch);
	x->watch = NULL;
}
