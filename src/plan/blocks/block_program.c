/* SPDX-License-Identifier: Apache-2.0 */
/* block_program.c: the recursions inside blocks, and the walk over blocks. */
#include "plan/blocks/block_program.h"

#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "base/grow.h"

enum { PHASE_UP, PHASE_TAIL, PHASE_INNER, PHASE_CHUNKS, PHASE_END };

/*
 * A leaf is reversed in this many ranges, so that its tapes free memory one after the other and
 * the next GET begins early.
 */
#define LEAF_PARTS 8
#define CHUNKS_MOST 500 /* of a block: their operations must fit into the window of prefetch.c */

/* The series of block i. */
static struct neap__block_series *series_of(struct neap__block_program *x, int64_t i)
{
	int n = x->count - 1;
	while (n > 0 && i < x->series[n].from)
		n--;
	return &x->series[n];
}

static struct neap__block_series *last_of(struct neap__block_program *x)
{
	return &x->series[x->count - 1];
}

struct sink {
	struct neap__block_program *x;
	void (*push)(void *user, const struct neap__block_op *op);
	void *user;
};

/* Emits an operation. grow: bytes held from it on; shrink: bytes held no longer after it. */
static void push(struct sink *k, struct neap__block_op op, int64_t grow, int64_t shrink)
{
	struct neap__block_program *x = k->x;
	x->held += grow;
	op.held = x->held;
	op.begins = x->begins;
	x->begins = NEAP__BEGINS_NOTHING;
	k->push(k->user, &op);
	x->number++;
	x->held -= shrink;
}

/* An operation on steps [t0, t1). */
static void range(struct sink *k, int kind, int64_t t0, int64_t t1, int64_t grow, int64_t shrink)
{
	push(k, (struct neap__block_op){.kind = (uint8_t)kind, .t0 = t0, .t1 = t1, .handle = -1},
		grow, shrink);
}

/* An operation on the state at step t. */
static void state(struct sink *k, int kind, int64_t t, int32_t handle, int64_t place)
{
	int64_t bytes = (int64_t)k->x->chain->state;
	push(k,
		(struct neap__block_op){
			.kind = (uint8_t)kind, .t0 = t, .t1 = t, .handle = handle, .place = place},
		kind == NEAP__OP_SAVE ? bytes : 0, kind == NEAP__OP_DROP ? bytes : 0);
}

static void need(struct sink *k, struct neap__block_frame *f)
{
	push(k,
		(struct neap__block_op){.kind = NEAP__OP_NEED_STATE,
			.t0 = f->t0,
			.t1 = f->t0,
			.handle = f->handle,
			.place = f->place,
			.after = f->put},
		f->handle >= 0 ? (int64_t)k->x->chain->state : 0, 0);
}

/* Records and reverses steps [t0, t0 + l), with the turn between at the end of the chain. */
static void leaf(struct sink *k, int64_t t0, int64_t l)
{
	int64_t tape = (int64_t)k->x->chain->tape, t1 = t0 + l,
		n = (l + LEAF_PARTS - 1) / LEAF_PARTS;
	for (int64_t t = t0; t < t1; t += n) {
		int64_t end = t + n < t1 ? t + n : t1;
		range(k, NEAP__OP_RECORD, t, end, (end - t) * tape, 0);
	}
	if (t1 == k->x->chain->steps &&
		last_of(k->x)->plan.tail > 0) /* without a tail, the turn was before */
		range(k, NEAP__OP_TURN, t1, t1, 0, 0);
	for (int64_t t = t0 + (l - 1) / n * n; t >= t0; t -= n) {
		int64_t end = t + n < t1 ? t + n : t1;
		range(k, NEAP__OP_BACKWARD, t, end, 0, (end - t) * tape);
	}
}

static int grow_stack(struct neap__block_program *x, int64_t room)
{
	int rc = neap__grow(&x->stack, &x->stack_room, room, sizeof *x->stack);
	return rc < 0 ? neap__fail(rc, "schedule: out of memory") : 0;
}

static int grow_handles(struct neap__block_program *x, int64_t room)
{
	int rc = neap__grow(&x->handles, &x->handles_room, room, sizeof *x->handles);
	return rc < 0 ? neap__fail(rc, "schedule: out of memory") : 0;
}

static int push_frame(struct neap__block_program *x, struct neap__block_frame frame)
{
	NEAP_TRY(grow_stack(x, x->depth + 1));
	x->stack[x->depth++] = frame;
	return 0;
}

static int take_handle(struct neap__block_program *x, int32_t *handle)
{
	if (x->handles_free > 0) {
		*handle = x->handles[--x->handles_free];
		return 0;
	}
	NEAP_TRY(grow_handles(x, x->handles_made + 1));
	*handle = (int32_t)x->handles_made++;
	return 0;
}

static void drop(struct sink *k, struct neap__block_frame *f)
{
	struct neap__block_program *x = k->x;
	if (f->handle < 0)
		return;
	state(k, NEAP__OP_DROP, f->t0, f->handle, 0);
	x->handles[x->handles_free++] = f->handle;
	f->handle = -1;
}

/* Makes the first state of a part live; with `keep` it is in a slot from then on. */
static int make_start_live(struct sink *k, struct neap__block_frame *f, int keep)
{
	if (f->live) {
		if (keep && f->handle < 0) {
			NEAP_TRY(take_handle(k->x, &f->handle));
			state(k, NEAP__OP_SAVE, f->t0, f->handle, 0);
		}
	} else if (f->handle >= 0) {
		state(k, NEAP__OP_LOAD, f->t0, f->handle, 0);
	} else {
		if (keep)
			NEAP_TRY(take_handle(k->x, &f->handle));
		need(k, f);
	}
	f->live = 1;
	if (!keep)
		drop(k, f);
	return 0;
}

/* Does a part that is a leaf. */
static void finish_leaf(struct sink *k, struct neap__block_frame *f)
{
	struct neap__block_program *x = k->x;
	leaf(k, f->t0, f->l);
	if (f->place >= x->blocks)
		x->spare--;
	x->depth--;
}

/* One split or leaf of Revolve with leaves (recompute_cost.h). */
static int descend_leaf(struct sink *k)
{
	struct neap__block_program *x = k->x;
	struct neap__block_frame *f = &x->stack[x->depth - 1];
	const struct neap__recompute *costs = f->tail ? &x->tail : &series_of(x, x->at)->inner;
	int64_t most = neap__recompute_leaf(costs, f->j);
	int first = !f->live && f->handle < 0;
	NEAP_TRY(make_start_live(k, f, f->l > most));
	if (first)
		state(k, NEAP__OP_FORGET, f->t0, -1, f->place);
	if (f->l <= most) {
		finish_leaf(k, f);
		return 0;
	}
	int64_t y = neap__recompute_split(costs, f->l, f->j), t = f->t0 + y;
	if (y < 1)
		return NEAP_EINFEASIBLE;
	struct neap__block_frame right = {.t0 = t,
		.l = f->l - y,
		.j = f->j + 1,
		.place = -1,
		.handle = -1,
		.live = 1,
		.tail = f->tail};
	range(k, NEAP__OP_ADVANCE, f->t0, t, 0, 0);
	f->l = y;
	f->live = 0;
	return push_frame(x, right);
}

/* One split, write or leaf of multiread; f->j slots are free. */
static int descend_multiread(struct sink *k)
{
	struct neap__block_program *x = k->x;
	struct neap__block_frame *f = &x->stack[x->depth - 1];
	const struct neap__multiread *m = &series_of(x, x->at)->multiread;
	const struct neap__multiread_row *rows = f->place >= 0 ? m->stored : m->fresh;
	struct neap__multiread_row row = *neap__multiread_at(m, rows, f->l, f->j);
	NEAP_TRY(make_start_live(k, f, row.split > 0 && row.how == NEAP__MULTIREAD_KEEP));
	if (row.split == 0) {
		if (f->place >= 0)
			state(k, NEAP__OP_FORGET, f->t0, -1, f->place);
		finish_leaf(k, f);
		return 0;
	}
	if (row.how == NEAP__MULTIREAD_WRITE) {
		f->place = x->blocks + x->spare++;
		f->put = x->number;
		state(k, NEAP__OP_PUT_STATE, f->t0, -1, f->place);
		return 0;
	}
	int64_t y = row.split, t = f->t0 + y;
	struct neap__block_frame right = {.t0 = t,
		.l = f->l - y,
		.j = f->j - (row.how == NEAP__MULTIREAD_KEEP),
		.place = -1,
		.handle = -1,
		.live = 1,
		.multiread = 1};
	range(k, NEAP__OP_ADVANCE, f->t0, t, 0, 0);
	f->l = y;
	f->live = 0;
	return push_frame(x, right);
}

/* First step, steps recorded and steps advanced of block i. */
struct block {
	int64_t t0, record, advance;
};

static struct block block_of(struct neap__block_program *x, int64_t i)
{
	const struct neap__block_series *r = series_of(x, i);
	const struct neap_blocks *b = &r->plan;
	if (i > r->from)
		return (struct block){
			r->t0 + r->first + (i - r->from - 1) * (b->advance + b->record), b->record,
			b->advance};
	int64_t advance = b->advance < r->first ? b->advance : r->first;
	return (struct block){r->t0, r->first - advance, advance};
}

static int64_t chunks_of(const struct neap_blocks *b, int64_t record)
{
	return record ? (record + b->chunk - 1) / b->chunk : 0;
}

/* Chunk n of block i; the places of a block's chunks follow each other. */
static struct neap__block_op chunk_op(struct neap__block_program *x, int kind, int64_t i, int64_t n)
{
	const struct neap__block_series *r = series_of(x, i);
	struct block b = block_of(x, i);
	int64_t t0 = b.t0 + n * r->plan.chunk, end = b.t0 + b.record;
	int64_t t1 = t0 + r->plan.chunk < end ? t0 + r->plan.chunk : end;
	return (struct neap__block_op){.kind = (uint8_t)kind,
		.handle = -1,
		.t0 = t0,
		.t1 = t1,
		.place = r->tape_place + (i - r->from) * chunks_of(&r->plan, r->plan.record) + n,
		.after = x->puts[i % NEAP__BLOCK_PUTS]};
}

static void block_up(struct sink *k)
{
	struct neap__block_program *x = k->x;
	struct block b = block_of(x, x->at);
	const struct neap_blocks *plan = &series_of(x, x->at)->plan;
	int64_t n = chunks_of(plan, b.record), tape = (int64_t)x->chain->tape;
	x->begins = NEAP__BEGINS_UP;
	for (int64_t i = 0; i < n; i++) {
		struct neap__block_op put = chunk_op(x, NEAP__OP_PUT_TAPES, x->at, i);
		range(k, NEAP__OP_RECORD, put.t0, put.t1, (put.t1 - put.t0) * tape, 0);
		x->puts[x->at % NEAP__BLOCK_PUTS] = x->number;
		x->held -= (put.t1 - put.t0) * tape;
		push(k, put, 0, 0);
	}
	int64_t t = b.t0 + b.record;
	if (b.advance > 0) {
		x->puts[x->at % NEAP__BLOCK_PUTS] = x->number;
		state(k, NEAP__OP_PUT_STATE, t, -1, x->at);
		range(k, NEAP__OP_ADVANCE, t, t + b.advance, 0, 0);
	}
	if (++x->at == x->blocks)
		x->phase = PHASE_TAIL;
}

static int tail_begin(struct sink *k)
{
	struct neap__block_program *x = k->x;
	int64_t steps = x->chain->steps, tail = last_of(x)->plan.tail;
	x->phase = PHASE_INNER;
	if (tail == 0) {
		range(k, NEAP__OP_TURN, steps, steps, 0, 0);
		return 0;
	}
	return push_frame(x, (struct neap__block_frame){.t0 = steps - tail,
				     .l = tail,
				     .place = -1,
				     .handle = -1,
				     .live = 1,
				     .tail = 1});
}

/* The recursion of a part is done: goes down to the next chunk or block. */
static int block_down(struct sink *k)
{
	struct neap__block_program *x = k->x;
	if (x->phase == PHASE_CHUNKS && x->chunk > 0) {
		struct neap__block_op op = chunk_op(x, NEAP__OP_NEED_TAPES, x->at, --x->chunk);
		int64_t bytes = (op.t1 - op.t0) * (int64_t)x->chain->tape;
		push(k, op, bytes, 0);
		range(k, NEAP__OP_BACKWARD, op.t0, op.t1, 0, bytes);
		return 0;
	}
	if (--x->at < 0) {
		x->phase = PHASE_END;
		return 0;
	}
	struct block b = block_of(x, x->at);
	const struct neap__block_series *r = series_of(x, x->at);
	x->begins = NEAP__BEGINS_DOWN;
	x->phase = PHASE_CHUNKS;
	x->chunk = chunks_of(&r->plan, b.record);
	if (b.advance == 0)
		return 0;
	int multiread = r->plan.inner == NEAP_BLOCKS_MULTIREAD;
	return push_frame(x, (struct neap__block_frame){.t0 = b.t0 + b.record,
				     .l = b.advance,
				     .j = multiread ? r->multiread.slots : 0,
				     .place = x->at,
				     .put = x->puts[x->at % NEAP__BLOCK_PUTS],
				     .handle = -1,
				     .multiread = (uint8_t)multiread});
}

int neap__block_program_next(struct neap__block_program *x,
	void (*push_op)(void *user, const struct neap__block_op *op), void *user)
{
	struct sink k = {x, push_op, user};
	if (x->depth > 0)
		NEAP_TRY(x->stack[x->depth - 1].multiread ? descend_multiread(&k)
							  : descend_leaf(&k));
	else if (x->phase == PHASE_UP)
		block_up(&k);
	else if (x->phase == PHASE_TAIL)
		NEAP_TRY(tail_begin(&k));
	else if (x->phase != PHASE_END)
		NEAP_TRY(block_down(&k));
	return x->phase != PHASE_END;
}

static int make_tail(struct neap__block_program *x)
{
	const struct neap_chain *c = x->chain;
	const struct neap_blocks *b = &last_of(x)->plan;
	int64_t one = b->inner == NEAP_BLOCKS_REVOLVE || c->flags & NEAP_CHAIN_CLASSIC;
	if (b->tail_reserve > x->pool)
		return NEAP_EINFEASIBLE;
	if (b->tail == 0)
		return 0;
	NEAP_TRY(neap__recompute_make(&x->tail, b->tail, x->pool - b->tail_reserve,
		(int64_t)c->state, (int64_t)c->tape, one));
	return x->tail.reach < b->tail ? NEAP_EINFEASIBLE : 0;
}

static int make_inner(struct neap__block_program *x, struct neap__block_series *r)
{
	const struct neap_chain *c = x->chain;
	const struct neap_blocks *b = &r->plan;
	int64_t one = b->inner == NEAP_BLOCKS_REVOLVE || c->flags & NEAP_CHAIN_CLASSIC;
	int64_t pool = x->pool - b->reserve;
	if (pool < 0)
		return NEAP_EINFEASIBLE;
	if (r->blocks == 0 || b->advance == 0)
		return 0;
	if (b->inner == NEAP_BLOCKS_MULTIREAD)
		return neap__multiread_make(&r->multiread, c, b->advance, pool, b->price);
	NEAP_TRY(neap__recompute_make(
		&r->inner, b->advance, pool, (int64_t)c->state, (int64_t)c->tape, one));
	return r->inner.reach < b->advance ? NEAP_EINFEASIBLE : 0;
}

/* Steps of a series, and its first block, which is the shorter one. */
static void count_blocks(struct neap__block_series *r, int64_t steps)
{
	int64_t unit = r->plan.advance + r->plan.record;
	r->blocks = (steps + unit - 1) / unit;
	r->first = steps - (r->blocks - 1) * unit;
}

/* Makes the last series that of `plan`, from its first step to the end of the chain. */
static int begin_series(struct neap__block_program *x, const struct neap_blocks *plan)
{
	struct neap__block_series *r = last_of(x);
	int64_t steps = x->chain->steps - r->t0, tape = (int64_t)x->chain->tape;
	int64_t chunk = plan->chunk < plan->record ? plan->chunk : plan->record;
	if (plan->advance + plan->record < 1 || plan->tail < 0 ||
		(plan->record > 0 && plan->chunk < 1))
		return NEAP_EINFEASIBLE;
	r->plan = *plan;
	if (r->plan.tail > steps)
		r->plan.tail = steps;
	count_blocks(r, steps - r->plan.tail);
	x->blocks = r->from + r->blocks;
	if (plan->record > 0 &&
		((tape && chunk > x->pool / tape) || plan->record / plan->chunk > CHUNKS_MOST))
		return NEAP_EINFEASIBLE;
	NEAP_TRY(make_tail(x));
	return make_inner(x, r);
}

static void start_over(struct neap__block_program *x, int64_t at, int64_t number)
{
	x->depth = x->handles_free = x->handles_made = x->spare = x->held = 0;
	x->at = at;
	x->number = number;
	x->chunk = x->begins = 0;
	x->phase = at < x->blocks ? PHASE_UP : PHASE_TAIL;
}

int neap__block_program_start(struct neap__block_program *x, const struct neap_chain *chain,
	int64_t pool, const struct neap_blocks *plan)
{
	x->chain = chain;
	x->pool = pool;
	x->count = 1;
	x->series->t0 = x->series->from = x->series->tape_place = 0;
	NEAP_TRY(begin_series(x, plan));
	start_over(x, 0, 0);
	return 0;
}

int neap__block_program_replan(
	struct neap__block_program *x, int64_t step, const struct neap_blocks *plan)
{
	struct neap__block_series *old = last_of(x), *r = old + 1;
	int64_t unit = old->plan.advance + old->plan.record, steps = step - old->t0;
	if (x->count == NEAP__BLOCK_SERIES || steps < old->first ||
		steps > old->first + (old->blocks - 1) * unit || (steps - old->first) % unit != 0)
		return NEAP_EINFEASIBLE;
	count_blocks(old, steps);
	r->t0 = step;
	r->from = old->from + old->blocks;
	r->tape_place = old->tape_place + old->blocks * chunks_of(&old->plan, old->plan.record);
	x->count++;
	return begin_series(x, plan);
}

void neap__block_program_rewind(struct neap__block_program *x, int64_t number)
{
	start_over(x, last_of(x)->from, number);
	for (int64_t i = 0; i < NEAP__BLOCK_PUTS; i++)
		if (x->puts[i] >= number) /* of blocks that will not be */
			x->puts[i] = number - 1;
}

int64_t neap__block_program_alike(const struct neap__block_program *x, int begins)
{
	int64_t left = 0;
	if (x->count > 1)
		return 0;
	if (begins == NEAP__BEGINS_UP && x->phase == PHASE_UP)
		left = x->blocks - 1 - x->at;
	if (begins == NEAP__BEGINS_DOWN && x->at < x->blocks)
		left = x->at - 1;
	return left > 0 ? left : 0;
}

void neap__block_program_skip(struct neap__block_program *x, int begins, int64_t blocks)
{
	int64_t unit = x->series->plan.advance + x->series->plan.record;
	int64_t turned[NEAP__BLOCK_PUTS];
	if (begins == NEAP__BEGINS_UP) {
		for (int64_t i = 0; i < NEAP__BLOCK_PUTS; i++)
			turned[(i + blocks) % NEAP__BLOCK_PUTS] = x->puts[i];
		memcpy(x->puts, turned, sizeof turned);
		x->at += blocks;
		return;
	}
	for (int64_t i = 0; i < x->depth; i++) {
		struct neap__block_frame *f = &x->stack[i];
		f->t0 -= blocks * unit;
		if (f->place >= 0 && f->place < x->blocks)
			f->place -= blocks;
	}
	x->at -= blocks;
}

void neap__block_program_shift(
	const struct neap__block_program *x, struct neap__block_op *op, int64_t blocks)
{
	const struct neap_blocks *plan = &x->series->plan;
	int64_t unit = plan->advance + plan->record;
	op->t0 += blocks * unit;
	op->t1 += blocks * unit;
	if (op->kind == NEAP__OP_PUT_TAPES || op->kind == NEAP__OP_NEED_TAPES)
		op->place += blocks * chunks_of(plan, plan->record);
	else if (op->place < x->blocks)
		op->place += blocks;
}

int64_t neap__block_program_tables(struct neap__block_program *x, int64_t room)
{
	NEAP_TRY(grow_stack(x, room));
	NEAP_TRY(grow_handles(x, room));
	return x->stack_room > x->handles_room ? x->stack_room : x->handles_room;
}

void neap__block_program_free(struct neap__block_program *x)
{
	neap__recompute_free(&x->tail);
	for (int i = 0; i < NEAP__BLOCK_SERIES; i++) {
		neap__recompute_free(&x->series[i].inner);
		neap__multiread_free(&x->series[i].multiread);
	}
	free(x->stack);
	free(x->handles);
	memset(x, 0, sizeof *x);
}
