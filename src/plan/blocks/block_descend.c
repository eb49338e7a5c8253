/* SPDX-License-Identifier: Apache-2.0 */
/* block_descend.c: emission of operations, and the recursions that reverse a block or a tail. */
#include "plan/blocks/block_descend.h"

#include <math.h>
#include "base/fail.h"
#include "base/grow.h"
#include "plan/blocks/kept_blocks.h"

/*
 * A leaf is recorded and reversed in this number of ranges, so that its tapes are freed one after
 * the other and the next GET can start early, without reserved memory. Chosen: more ranges free
 * memory earlier but need more calls of the model.
 */
#define LEAF_PARTS 8

/* Seconds of an operation without its transfers. */
static double seconds_of(const struct neap_chain *c, const struct neap__block_op *op)
{
	double steps = (double)(op->t1 - op->t0);
	switch (op->kind) {
	case NEAP__OP_ADVANCE:
		return c->call + steps * c->advance;
	case NEAP__OP_RECORD:
		return c->call + steps * c->record;
	case NEAP__OP_BACKWARD:
		return c->call + steps * c->backward;
	default:
		return 0;
	}
}

/* Emits an operation. grow: bytes allocated before it; shrink: bytes freed after it. */
void neap__block_push(
	struct neap__block_sink *k, struct neap__block_op op, int64_t grow, int64_t shrink)
{
	struct neap__block_program *x = k->x;
	x->held += grow;
	op.held = x->held;
	op.begins = x->begins;
	x->begins = NEAP__BEGINS_NOTHING;
	k->push(k->user, &op);
	x->number++;
	x->held -= shrink;
	x->now += seconds_of(x->chain, &op);
	if (op.kind == NEAP__OP_PUT_STATE)
		x->writes_end = fmax(x->writes_end, x->now) + x->state_out;
}

/* Emits an operation on steps [t0, t1). */
void neap__block_range(
	struct neap__block_sink *k, int kind, int64_t t0, int64_t t1, int64_t grow, int64_t shrink)
{
	neap__block_push(k,
		(struct neap__block_op){.kind = (uint8_t)kind, .t0 = t0, .t1 = t1, .handle = -1},
		grow, shrink);
}

/* Emits an operation on the state at step t and a slot. */
static void state(struct neap__block_sink *k, int kind, int64_t t, int32_t handle)
{
	int64_t bytes = (int64_t)k->x->chain->state;
	neap__block_push(k,
		(struct neap__block_op){.kind = (uint8_t)kind, .t0 = t, .t1 = t, .handle = handle},
		kind == NEAP__OP_SAVE ? bytes : 0, kind == NEAP__OP_DROP ? bytes : 0);
}

/* Emits an operation on the first state of a part and its place on a tier. */
void neap__block_record(struct neap__block_sink *k, int kind, const struct neap__block_frame *f)
{
	int needs = kind == NEAP__OP_NEED_STATE;
	neap__block_push(k,
		(struct neap__block_op){.kind = (uint8_t)kind,
			.near = f->near,
			.inside = f->inside,
			.t0 = f->t0,
			.t1 = f->t0,
			.handle = needs ? f->handle : -1,
			.place = f->place,
			.after = needs ? f->put : 0},
		needs && f->handle >= 0 ? (int64_t)k->x->chain->state : 0, 0);
}

/* Records and reverses steps [t0, t0 + l); at the end of the chain the turn is in between. */
static void leaf(struct neap__block_sink *k, int64_t t0, int64_t l)
{
	int64_t tape = (int64_t)k->x->chain->tape, t1 = t0 + l,
		n = (l + LEAF_PARTS - 1) / LEAF_PARTS;
	for (int64_t t = t0; t < t1; t += n) {
		int64_t end = t + n < t1 ? t + n : t1;
		neap__block_range(k, NEAP__OP_RECORD, t, end, (end - t) * tape, 0);
	}
	if (t1 == k->x->chain->steps && !k->x->turned) {
		neap__block_range(k, NEAP__OP_TURN, t1, t1, 0, 0);
		k->x->turned = 1;
	}
	for (int64_t t = t0 + (l - 1) / n * n; t >= t0; t -= n) {
		int64_t end = t + n < t1 ? t + n : t1;
		neap__block_range(k, NEAP__OP_BACKWARD, t, end, 0, (end - t) * tape);
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

int neap__block_frame_push(struct neap__block_program *x, struct neap__block_frame frame)
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

static void drop(struct neap__block_sink *k, struct neap__block_frame *f)
{
	struct neap__block_program *x = k->x;
	if (f->handle < 0)
		return;
	state(k, NEAP__OP_DROP, f->t0, f->handle);
	x->handles[x->handles_free++] = f->handle;
	f->handle = -1;
}

/* Makes the first state of a part live, from a slot or a tier; with `keep` also stores it in a
 * slot. */
static int make_start_live(struct neap__block_sink *k, struct neap__block_frame *f, int keep)
{
	if (f->live) {
		if (keep && f->handle < 0) {
			NEAP_TRY(take_handle(k->x, &f->handle));
			state(k, NEAP__OP_SAVE, f->t0, f->handle);
		}
	} else if (f->handle >= 0) {
		state(k, NEAP__OP_LOAD, f->t0, f->handle);
	} else {
		if (keep)
			NEAP_TRY(take_handle(k->x, &f->handle));
		neap__block_record(k, NEAP__OP_NEED_STATE, f);
	}
	f->live = 1;
	if (!keep)
		drop(k, f);
	return 0;
}

/* Reverses a part that is a leaf and ends it. */
static void finish_leaf(struct neap__block_sink *k, struct neap__block_frame *f)
{
	struct neap__block_program *x = k->x;
	leaf(k, f->t0, f->l);
	if (f->splits && f->place >= x->whole.blocks)
		x->spare--;
	x->depth--;
}

/* neap__recompute_split with a cache: all blocks ask for the same splits. */
static int64_t split_of(struct neap__block_program *x, const struct neap__block_frame *f, int64_t j)
{
	uint64_t hash = ((uint64_t)f->l * 0x9e3779b97f4a7c15u ^ (uint64_t)j) * 0x9e3779b97f4a7c15u;
	struct neap__block_split *row = &x->splits[hash >> 32 & (NEAP__BLOCK_SPLITS - 1)];
	if (row->costs != f->costs || row->l != f->l || row->j != j)
		*row = (struct neap__block_split){
			f->costs, f->l, j, neap__recompute_split(f->costs, f->l, j)};
	return row->y;
}

/*
 * Slots for which the leaves of a part leave room. In a plan that keeps states, these include the
 * states that are still to be written, up to `most` slots; after a replan they are not known.
 */
static int64_t slots_in_use(
	const struct neap__block_program *x, const struct neap__block_frame *f, int64_t most)
{
	double left = x->writes_end - x->now;
	if (x->whole.count > 1 || !neap__keeps(&x->whole.series->plan) || left <= 0 || f->j >= most)
		return f->j;
	double queued = ceil(left / x->state_out - 1e-9);
	return queued < (double)(most - f->j) ? f->j + (int64_t)queued : most;
}

int neap__block_keep(struct neap__block_sink *k, int64_t t, int64_t l, int64_t slots,
	const struct neap__recompute *costs)
{
	struct neap__block_frame f = {
		.t0 = t, .l = l, .j = slots, .place = -1, .handle = -1, .live = 1, .costs = costs};
	NEAP_TRY(make_start_live(k, &f, 1));
	neap__block_range(k, NEAP__OP_ADVANCE, t, t + l, 0, 0);
	f.live = 0;
	return neap__block_frame_push(k->x, f);
}

/*
 * One split or leaf of Revolve with leaves (recompute_cost.h). The first split of a block whose
 * reserve covers only `first` steps is fixed: these steps form the left part, reversed last.
 */
static int descend_leaf(struct neap__block_sink *k)
{
	struct neap__block_program *x = k->x;
	struct neap__block_frame *f = &x->stack[x->depth - 1];
	int64_t room = f->costs->slots;
	int64_t most = neap__recompute_leaf(f->costs, slots_in_use(x, f, room));
	int first = !f->live && f->handle < 0;
	int splits = f->l > most || f->first > 0;
	NEAP_TRY(make_start_live(k, f, splits));
	if (first)
		neap__block_record(k, NEAP__OP_FORGET, f);
	if (!splits) {
		finish_leaf(k, f);
		return 0;
	}
	/* The right part needs one more slot. */
	int64_t y = f->first > 0 ? f->first : split_of(x, f, slots_in_use(x, f, room - 1));
	int64_t t = f->t0 + y;
	if (y < 1)
		return NEAP_EINFEASIBLE;
	struct neap__block_frame right = {.t0 = t,
		.l = f->l - y,
		.j = f->j + 1,
		.place = -1,
		.handle = -1,
		.live = 1,
		.costs = f->costs};
	neap__block_range(k, NEAP__OP_ADVANCE, f->t0, t, 0, 0);
	if (f->first > 0)
		f->costs = f->rest;
	f->l = y;
	f->live = 0;
	f->first = 0;
	return neap__block_frame_push(x, right);
}

/*
 * One split, write or leaf of multiread (multiread.h); f->j slots are free. The first state of a
 * part is kept in a slot, written to the tier, or read from it once more, whichever the table
 * chose.
 */
static int descend_multiread(struct neap__block_sink *k)
{
	struct neap__block_program *x = k->x;
	struct neap__block_frame *f = &x->stack[x->depth - 1];
	const struct neap__multiread *m = f->splits;
	const struct neap__multiread_row *rows = f->place >= 0 ? m->stored : m->fresh;
	struct neap__multiread_row row = *neap__multiread_at(m, rows, f->l, f->j);
	NEAP_TRY(make_start_live(k, f, row.split > 0 && row.how == NEAP__MULTIREAD_KEEP));
	if (row.split == 0) {
		if (f->place >= 0)
			neap__block_record(k, NEAP__OP_FORGET, f);
		finish_leaf(k, f);
		return 0;
	}
	if (row.how == NEAP__MULTIREAD_WRITE) {
		f->place = x->whole.blocks + x->spare++;
		f->put = x->number;
		neap__block_record(k, NEAP__OP_PUT_STATE, f);
		return 0;
	}
	int64_t y = row.split, t = f->t0 + y;
	struct neap__block_frame right = {.t0 = t,
		.l = f->l - y,
		.j = f->j - (row.how == NEAP__MULTIREAD_KEEP),
		.place = -1,
		.handle = -1,
		.live = 1,
		.splits = m};
	neap__block_range(k, NEAP__OP_ADVANCE, f->t0, t, 0, 0);
	f->l = y;
	f->live = 0;
	return neap__block_frame_push(x, right);
}
/* One step down in the recursion. */
int neap__block_descend(struct neap__block_sink *k)
{
	return k->x->stack[k->x->depth - 1].splits ? descend_multiread(k) : descend_leaf(k);
}

int neap__block_descend_tables(struct neap__block_program *x, int64_t room)
{
	NEAP_TRY(grow_stack(x, room));
	NEAP_TRY(grow_handles(x, room));
	return 0;
}
