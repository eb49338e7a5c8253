/* SPDX-License-Identifier: Apache-2.0 */
/* block_program.c: the walk over the blocks of the chain and of its parts. */
#include "plan/blocks/block_program.h"

#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "plan/blocks/block_descend.h"
#include "plan/blocks/kept_blocks.h"

enum { PHASE_UP, PHASE_TAIL, PHASE_INNER, PHASE_CHUNKS, PHASE_END };

#define CHUNKS_MOST 500 /* per block; chosen, so that a block fits in the window of prefetch.c */

/* The series of block i. */
static struct neap__block_series *series_of(struct neap__block_walk *w, int64_t i)
{
	int n = w->count - 1;
	while (n > 0 && i < w->series[n].from)
		n--;
	return &w->series[n];
}

static struct neap__block_series *last_of(struct neap__block_walk *w)
{
	return &w->series[w->count - 1];
}

/* First step, steps recorded and steps advanced of block i. */
struct block {
	int64_t t0, record, advance;
};

/* Returns whether block i of a series keeps its state. */
static int keeps_state(const struct neap__block_series *r, int64_t i)
{
	return i >= r->from + r->written;
}

/* Steps that block i of a series advances, i > 0. */
static int64_t advance_of(const struct neap_blocks *b, int64_t i)
{
	return b->every > 0 && i % b->every == 0 ? b->reserve_steps : b->advance;
}

static struct block block_of(struct neap__block_walk *w, int64_t i)
{
	const struct neap__block_series *r = series_of(w, i);
	const struct neap_blocks *b = &r->plan;
	if (keeps_state(r, i)) {
		int64_t n = r->from + r->blocks - i, end = w->end - b->tail;
		int64_t before = neap__kept_steps(b, n);
		return (struct block){end - before, 0, before - neap__kept_steps(b, n - 1)};
	}
	if (i > r->from)
		return (struct block){r->t0 + r->first + neap__block_steps(b, i - r->from - 1),
			b->record, advance_of(b, i - r->from)};
	/*
	 * If the first block is shorter than J + k, the chain gives up recorded steps and a part
	 * gives up advanced steps.
	 */
	int64_t longest = neap__block_longest(b);
	int64_t advance = longest < r->first ? longest : r->first;
	if (w->inside)
		advance = b->record < r->first ? r->first - b->record : 0;
	return (struct block){r->t0, r->first - advance, advance};
}

/* Returns whether the reserve is kept only beside a part of each block. */
static int beside_reserve(const struct neap_blocks *b)
{
	return b->inner == NEAP_BLOCKS_LEAF && b->reserve_steps > 0 &&
	       b->reserve_steps < b->advance;
}

static int64_t chunks_of(const struct neap_blocks *b, int64_t record)
{
	return record ? (record + b->chunk - 1) / b->chunk : 0;
}

/* Number of the first n items that go to the near tier, if items are distributed over both. */
static int64_t spread(const struct neap__block_program *x, int64_t n)
{
	int64_t share = x->near.share, each = NEAP_NEAR_SHARES;
	return n / each * share + n % each * share / each;
}

/* Sets the tier and the place of item n, a state or a chunk. */
static void place_item(const struct neap__block_program *x, const struct neap__block_walk *w,
	int64_t n, uint8_t *near, int64_t *place)
{
	int64_t before = spread(x, n);
	*near = (uint8_t)(w->inside || spread(x, n + 1) > before);
	*place = w->inside || x->near.share == 0 ? n : *near ? before : n - before;
}

/* The first state of block i, which begins at step t. */
static struct neap__block_frame first_state(
	const struct neap__block_program *x, const struct neap__block_walk *w, int64_t i, int64_t t)
{
	struct neap__block_frame f = {.t0 = t,
		.put = w->puts[i % NEAP__BLOCK_PUTS],
		.handle = -1,
		.inside = (uint8_t)w->inside};
	place_item(x, w, i, &f.near, &f.place);
	return f;
}

/* The operation for chunk n of block i; the chunks of a block have consecutive places. */
static struct neap__block_op chunk_op(const struct neap__block_program *x,
	struct neap__block_walk *w, int kind, int64_t i, int64_t n)
{
	const struct neap__block_series *r = series_of(w, i);
	struct block b = block_of(w, i);
	int64_t t0 = b.t0 + n * r->plan.chunk, end = b.t0 + b.record;
	int64_t t1 = t0 + r->plan.chunk < end ? t0 + r->plan.chunk : end;
	struct neap__block_op op = {.kind = (uint8_t)kind,
		.inside = (uint8_t)w->inside,
		.handle = -1,
		.t0 = t0,
		.t1 = t1,
		.after = w->puts[i % NEAP__BLOCK_PUTS]};
	int64_t item = r->tape_place + (i - r->from) * chunks_of(&r->plan, r->plan.record) + n;
	place_item(x, w, item, &op.near, &op.place);
	return op;
}

static int64_t longer(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int block_up(struct neap__block_sink *k, struct neap__block_walk *w)
{
	struct neap__block_program *x = k->x;
	struct block b = block_of(w, w->at);
	const struct neap__block_series *r = series_of(w, w->at);
	const struct neap_blocks *plan = &r->plan;
	int64_t n = chunks_of(plan, b.record), tape = (int64_t)x->chain->tape;
	int64_t *last = &w->puts[w->at % NEAP__BLOCK_PUTS];
	if (!w->inside && !keeps_state(r, w->at))
		x->begins = NEAP__BEGINS_UP;
	for (int64_t i = 0; i < n; i++) {
		struct neap__block_op put = chunk_op(x, w, NEAP__OP_PUT_TAPES, w->at, i);
		neap__block_range(k, NEAP__OP_RECORD, put.t0, put.t1, (put.t1 - put.t0) * tape, 0);
		*last = x->number;
		x->held -= (put.t1 - put.t0) * tape;
		neap__block_push(k, put, 0, 0);
	}
	int64_t t = b.t0 + b.record;
	if (keeps_state(r, w->at)) {
		/* The first of these blocks are reversed last, and states are read meanwhile. */
		int64_t slots = longer(x->depth, neap__kept_reserved(x->chain, plan));
		NEAP_TRY(neap__block_keep(k, t, b.advance, slots, &r->inner));
	} else if (b.advance > 0) {
		struct neap__block_frame first = first_state(x, w, w->at, t);
		*last = x->number;
		neap__block_record(k, NEAP__OP_PUT_STATE, &first);
		neap__block_range(k, NEAP__OP_ADVANCE, t, t + b.advance, 0, 0);
	}
	if (++w->at == w->blocks)
		w->phase = PHASE_TAIL;
	return 0;
}

/* Sets the number of blocks of a series and the length of its first block, which may be short. */
static void count_blocks(struct neap__block_series *r, int64_t steps)
{
	steps -= neap__kept_steps(&r->plan, r->plan.kept_states);
	r->written = neap__block_count(&r->plan, steps);
	r->first = steps - neap__block_steps(&r->plan, r->written - 1);
	r->blocks = r->written + r->plan.kept_states;
}

/*
 * Starts to reverse steps [t0, t1), whose first state is live, by blocks through the near tier, or
 * in fast memory if the plan has no such blocks. last: the steps are the tail of the chain.
 */
static int begin_part(struct neap__block_sink *k, int64_t t0, int64_t t1, int last)
{
	struct neap__block_program *x = k->x;
	struct neap__block_walk *w = &x->part;
	struct neap__block_series *r = w->series;
	const struct neap_near *n = &x->near;
	int64_t advance = last ? n->last_advance : n->advance;
	int64_t recorded = last ? n->last_record : n->record;
	int64_t tail = last ? n->last_tail : n->tail;
	if (advance + recorded < 1 || tail >= t1 - t0)
		return neap__block_frame_push(x, (struct neap__block_frame){.t0 = t0,
							 .l = t1 - t0,
							 .place = -1,
							 .handle = -1,
							 .live = 1,
							 .costs = last ? &x->tail : &r->inner});
	r->plan.advance = advance;
	r->plan.record = recorded;
	r->plan.chunk = n->chunk < recorded ? n->chunk : recorded;
	r->plan.tail = tail;
	r->t0 = t0;
	count_blocks(r, t1 - t0 - tail);
	w->blocks = r->blocks;
	w->end = t1;
	w->at = w->chunk = 0;
	w->phase = PHASE_UP;
	return 0;
}

static int tail_begin(struct neap__block_sink *k, struct neap__block_walk *w)
{
	struct neap__block_program *x = k->x;
	const struct neap__block_series *r = last_of(w);
	int64_t tail = r->plan.tail;
	w->phase = PHASE_INNER;
	w->at -= r->plan.kept_states; /* these blocks are on the stack */
	if (tail == 0 && w->end == x->chain->steps && !x->turned) {
		neap__block_range(k, NEAP__OP_TURN, w->end, w->end, 0, 0);
		x->turned = 1;
	}
	if (tail == 0)
		return 0;
	if (!w->inside && x->near.tier > 0 && x->near.share == 0)
		return begin_part(k, w->end - tail, w->end, 1);
	return neap__block_frame_push(
		x, (struct neap__block_frame){.t0 = w->end - tail,
			   .l = tail,
			   .place = -1,
			   .handle = -1,
			   .live = 1,
			   .j = r->plan.kept_states,
			   .costs = neap__keeps(&r->plan) ? &r->inner : &x->tail});
}

/* After the recursion of a part has ended: continues with the next chunk or block downwards. */
static int block_down(struct neap__block_sink *k, struct neap__block_walk *w)
{
	struct neap__block_program *x = k->x;
	if (w->phase == PHASE_CHUNKS && w->chunk > 0) {
		struct neap__block_op op = chunk_op(x, w, NEAP__OP_NEED_TAPES, w->at, --w->chunk);
		int64_t bytes = (op.t1 - op.t0) * (int64_t)x->chain->tape;
		neap__block_push(k, op, bytes, 0);
		neap__block_range(k, NEAP__OP_BACKWARD, op.t0, op.t1, 0, bytes);
		return 0;
	}
	if (--w->at < 0) {
		w->phase = PHASE_END;
		return 0;
	}
	struct block b = block_of(w, w->at);
	const struct neap__block_series *r = series_of(w, w->at);
	if (!w->inside)
		x->begins = NEAP__BEGINS_DOWN;
	w->phase = PHASE_CHUNKS;
	w->chunk = chunks_of(&r->plan, b.record);
	if (b.advance == 0)
		return 0;
	struct neap__block_frame f = first_state(x, w, w->at, b.t0 + b.record);
	if (!w->inside && x->near.tier > 0 && x->near.share == 0) {
		neap__block_record(k, NEAP__OP_NEED_STATE, &f);
		neap__block_record(k, NEAP__OP_FORGET, &f);
		return begin_part(k, f.t0, f.t0 + b.advance, 0);
	}
	f.l = b.advance;
	f.costs = &r->inner;
	if (neap__keeps(&r->plan))
		f.j = neap__kept_reserved(x->chain, &r->plan);
	if (beside_reserve(&r->plan)) {
		f.first = f.l > r->plan.reserve_steps ? r->plan.reserve_steps : 0;
		f.rest = &r->beside;
		f.costs = f.first ? f.costs : f.rest;
	}
	if (r->plan.inner == NEAP_BLOCKS_MULTIREAD) {
		f.splits = &r->multiread;
		f.j = r->multiread.slots;
	}
	return neap__block_frame_push(x, f);
}

int neap__block_program_next(struct neap__block_program *x,
	void (*push_op)(void *user, const struct neap__block_op *op), void *user)
{
	struct neap__block_sink k = {x, push_op, user};
	struct neap__block_walk *w = x->part.phase != PHASE_END ? &x->part : &x->whole;
	if (w->phase == PHASE_UP)
		NEAP_TRY(block_up(&k, w));
	else if (w->phase == PHASE_TAIL)
		NEAP_TRY(tail_begin(&k, w));
	else if (x->depth > 0)
		NEAP_TRY(neap__block_descend(&k));
	else if (w->phase != PHASE_END)
		NEAP_TRY(block_down(&k, w));
	return x->whole.phase != PHASE_END;
}

/* Makes tables for parts of up to `steps` steps, with a reserve; `one`: leaves of one tape. */
static int make_costs(struct neap__block_program *x, struct neap__recompute *costs, int64_t steps,
	int64_t reserve, int one)
{
	const struct neap_chain *c = x->chain;
	if (reserve > x->pool)
		return NEAP_EINFEASIBLE;
	if (steps < 1)
		return 0;
	NEAP_TRY(neap__recompute_make(costs, steps, x->pool - reserve, (int64_t)c->state,
		(int64_t)c->tape, one || c->flags & NEAP_CHAIN_CLASSIC));
	return costs->reach < steps ? NEAP_EINFEASIBLE : 0;
}

static int make_inner(struct neap__block_program *x, struct neap__block_series *r)
{
	const struct neap_blocks *b = &r->plan;
	int64_t steps = r->blocks > 0 ? neap__block_longest(b) : 0;
	if (beside_reserve(b)) {
		NEAP_TRY(
			make_costs(x, &r->beside, steps > 0 ? b->reserve_steps : 0, b->reserve, 0));
		return make_costs(x, &r->inner, steps, 0, 0);
	}
	if (neap__keeps(b))
		return make_costs(x, &r->inner, NEAP__KEPT_TABLE, 0, 0);
	if (b->inner == NEAP_BLOCKS_MULTIREAD && steps > 0)
		return x->pool < b->reserve ? NEAP_EINFEASIBLE
					    : neap__multiread_make(&r->multiread, x->chain, steps,
						      x->pool - b->reserve, b->price);
	return make_costs(x, &r->inner, steps, b->reserve, b->inner == NEAP_BLOCKS_REVOLVE);
}

static int too_many_chunks(const struct neap__block_program *x, int64_t recorded, int64_t chunk)
{
	int64_t tape = (int64_t)x->chain->tape, longest = chunk < recorded ? chunk : recorded;
	return recorded > 0 &&
	       (chunk < 1 || (tape && longest > x->pool / tape) || recorded / chunk > CHUNKS_MOST);
}

/* The longest run of steps that a part of `steps` steps reverses in fast memory. */
static int64_t within(int64_t advance, int64_t recorded, int64_t tail, int64_t steps)
{
	return advance + recorded < 1 || tail >= steps ? steps : advance;
}

/* Makes the tables for the parts of a plan with a near tier. */
static int make_parts(struct neap__block_program *x, const struct neap_blocks *plan, int64_t tail)
{
	const struct neap_near *n = &x->near;
	struct neap__block_series *r = x->part.series;
	if (n->advance < 0 || n->record < 0 || n->tail < 0 || n->last_advance < 0 ||
		n->last_record < 0 || n->last_tail < 0 || plan->inner != NEAP_BLOCKS_LEAF ||
		too_many_chunks(x, n->record, n->chunk) ||
		too_many_chunks(x, n->last_record, n->chunk))
		return NEAP_EINFEASIBLE;
	*r = (struct neap__block_series){
		.plan = *plan, .inner = r->inner, .multiread = r->multiread};
	int64_t up = within(n->last_advance, n->last_record, n->last_tail, tail);
	int whole = up == tail; /* the tail is reversed in fast memory only */
	/* The first block of the chain may be shorter than the tails inside blocks. */
	int64_t inner = longer(within(n->advance, n->record, n->tail, plan->advance),
		n->tail < plan->advance ? n->tail : plan->advance);
	NEAP_TRY(make_costs(x, &x->tail,
		whole ? longer(tail, n->tail) : longer(n->last_tail, n->tail), plan->tail_reserve,
		0));
	return make_costs(x, &r->inner, longer(inner, whole ? 0 : up), plan->reserve, 0);
}

/* Returns whether the blocks of a plan can have two lengths, whose sums do not overflow. */
static int lengths_possible(const struct neap__block_program *x, const struct neap_blocks *b)
{
	return b->every == 0 ||
	       (b->every > 0 && b->every <= NEAP__BLOCK_EVERY_MOST && x->near.tier == 0 &&
		       b->inner == NEAP_BLOCKS_MULTIREAD && b->advance > 0 && b->reserve_steps > 0);
}

/* Sets the last series to `plan`, from its first step to the end of the chain. */
static int begin_series(struct neap__block_program *x, const struct neap_blocks *plan)
{
	struct neap__block_walk *w = &x->whole;
	struct neap__block_series *r = last_of(w);
	int64_t steps = w->end - r->t0;
	if (plan->advance + plan->record < 1 || plan->tail < 0 ||
		too_many_chunks(x, plan->record, plan->chunk) || !lengths_possible(x, plan))
		return NEAP_EINFEASIBLE;
	r->plan = *plan;
	memset(x->splits, 0, sizeof x->splits); /* the cached splits belong to the old tables */
	if (r->plan.tail > steps)
		r->plan.tail = steps;
	if (!neap__keeps(plan))
		r->plan.kept_states = 0;
	else if (x->near.tier > 0 || !neap__kept_possible(x->chain, &r->plan, steps))
		return NEAP_EINFEASIBLE;
	count_blocks(r, steps - r->plan.tail);
	w->blocks = r->from + r->blocks;
	if (x->near.tier > 0 && x->near.share == 0)
		return make_parts(x, &r->plan, r->plan.tail);
	NEAP_TRY(make_costs(
		x, &x->tail, r->plan.tail, plan->tail_reserve, plan->inner == NEAP_BLOCKS_REVOLVE));
	return make_inner(x, r);
}

static void start_over(struct neap__block_program *x, int64_t at, int64_t number)
{
	struct neap__block_walk *w = &x->whole;
	x->depth = x->handles_free = x->handles_made = x->spare = x->held = 0;
	w->at = at;
	x->number = number;
	w->chunk = x->begins = x->turned = 0;
	x->now = x->writes_end = 0;
	w->phase = at < w->blocks ? PHASE_UP : PHASE_TAIL;
	x->part.phase = PHASE_END;
}

int neap__block_program_start(struct neap__block_program *x, const struct neap_chain *chain,
	int64_t pool, const struct neap_blocks *plan, const struct neap_near *near)
{
	struct neap__block_walk *w = &x->whole;
	x->chain = chain;
	x->pool = pool;
	x->near = near ? *near : (struct neap_near){0};
	x->part.inside = x->part.count = w->count = 1;
	w->end = chain->steps;
	w->series->t0 = w->series->from = w->series->tape_place = 0;
	NEAP_TRY(begin_series(x, plan));
	start_over(x, 0, 0);
	return 0;
}

int neap__block_program_replan(
	struct neap__block_program *x, int64_t step, const struct neap_blocks *plan)
{
	struct neap__block_walk *w = &x->whole;
	struct neap__block_series *old = last_of(w), *r = old + 1;
	int64_t steps = step - old->t0 - old->first;
	if (w->count == NEAP__BLOCK_SERIES || x->near.tier > 0 || neap__keeps(plan) || steps < 0)
		return NEAP_EINFEASIBLE;
	int64_t blocks = neap__block_count(&old->plan, steps + 1);
	if (blocks > old->written || neap__block_steps(&old->plan, blocks - 1) != steps)
		return NEAP_EINFEASIBLE;
	old->plan.kept_states = 0; /* these blocks are replaced */
	old->blocks = old->written = blocks;
	r->t0 = step;
	r->from = old->from + old->blocks;
	r->tape_place = old->tape_place + old->blocks * chunks_of(&old->plan, old->plan.record);
	w->count++;
	return begin_series(x, plan);
}

void neap__block_program_rewind(struct neap__block_program *x, int64_t number)
{
	struct neap__block_walk *w = &x->whole;
	start_over(x, last_of(w)->from, number);
	for (int64_t i = 0; i < NEAP__BLOCK_PUTS; i++)
		if (w->puts[i] >= number) /* of blocks that were replaced */
			w->puts[i] = number - 1;
}

int64_t neap__block_program_alike(const struct neap__block_program *x, int begins)
{
	const struct neap__block_walk *w = &x->whole;
	int64_t left = 0;
	/* Blocks of a plan that keeps states are alike once the queue of writes is empty. */
	if (w->count > 1 || (neap__keeps(&w->series->plan) &&
				    (begins == NEAP__BEGINS_UP || x->writes_end > x->now)))
		return 0;
	if (begins == NEAP__BEGINS_UP && w->phase == PHASE_UP)
		left = w->blocks - 1 - w->at;
	if (begins == NEAP__BEGINS_DOWN && w->at < w->blocks)
		left = w->at - 1;
	return left > 0 ? left : 0;
}

int64_t neap__block_near_period(const struct neap_near *near)
{
	int64_t a = NEAP_NEAR_SHARES, b = near->share;
	while (b > 0) {
		int64_t rest = a % b;
		a = b;
		b = rest;
	}
	return NEAP_NEAR_SHARES / a;
}

int64_t neap__block_period(const struct neap__block_program *x)
{
	int64_t every = x->whole.series->plan.every;
	return every > 0 ? every : neap__block_near_period(&x->near);
}

/* By how much the place of an item on a tier changes if `items` items are skipped. */
static int64_t places_of(const struct neap__block_program *x, int near, int64_t items)
{
	int64_t share = near ? x->near.share : NEAP_NEAR_SHARES - x->near.share;
	int64_t period = neap__block_near_period(&x->near);
	return items / period * (share * period / NEAP_NEAR_SHARES);
}

void neap__block_program_skip(struct neap__block_program *x, int begins, int64_t blocks)
{
	struct neap__block_walk *w = &x->whole;
	int64_t steps = neap__block_steps(&w->series->plan, blocks);
	int64_t turned[NEAP__BLOCK_PUTS];
	if (begins == NEAP__BEGINS_UP) {
		for (int64_t i = 0; i < NEAP__BLOCK_PUTS; i++)
			turned[(i + blocks) % NEAP__BLOCK_PUTS] = w->puts[i];
		memcpy(w->puts, turned, sizeof turned);
		w->at += blocks;
		return;
	}
	for (int64_t i = 0; i < x->depth; i++) {
		struct neap__block_frame *f = &x->stack[i];
		f->t0 -= steps;
		if (f->place >= 0 && !f->inside && f->place < w->blocks)
			f->place -= places_of(x, f->near, blocks);
	}
	x->part.series->t0 -= steps;
	x->part.end -= steps;
	w->at -= blocks;
}

void neap__block_program_shift(
	const struct neap__block_program *x, struct neap__block_op *op, int64_t blocks)
{
	const struct neap_blocks *plan = &x->whole.series->plan;
	int64_t steps = neap__block_steps(plan, blocks);
	op->t0 += steps;
	op->t1 += steps;
	if (op->inside)
		return;
	if (op->kind == NEAP__OP_PUT_TAPES || op->kind == NEAP__OP_NEED_TAPES)
		op->place += places_of(x, op->near, blocks * chunks_of(plan, plan->record));
	else if (op->place < x->whole.blocks)
		op->place += places_of(x, op->near, blocks);
}

int64_t neap__block_program_tables(struct neap__block_program *x, int64_t room)
{
	NEAP_TRY(neap__block_descend_tables(x, room));
	return x->stack_room > x->handles_room ? x->stack_room : x->handles_room;
}

void neap__block_program_free(struct neap__block_program *x)
{
	neap__recompute_free(&x->tail);
	for (int i = 0; i < NEAP__BLOCK_SERIES; i++) {
		neap__recompute_free(&x->whole.series[i].inner);
		neap__recompute_free(&x->whole.series[i].beside);
		neap__multiread_free(&x->whole.series[i].multiread);
	}
	neap__recompute_free(&x->part.series->inner);
	free(x->stack);
	free(x->handles);
	memset(x, 0, sizeof *x);
}
