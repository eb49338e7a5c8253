/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffer_placement.c: fixed places for buffers whose lifetimes are all known (dynamic storage
 * allocation, which is NP-hard). Buffers go one by one to the lowest place that is free for
 * all of their life; the order decides. Several orders are tried: long lives first (what stays
 * lies at the bottom and never splits the room above), large ones first, by area, by time.
 * Where none fits, orders are repaired: buffers that end above the budget come first the next
 * time (squeaky wheel: Joslin and Clements, 1999).
 */
#include "sweep/stages/stage_program.h"
#include "base/checked.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WORK 100000000 /* pairs of buffers compared at most, in all orders together */
#define REPAIRS 20     /* times that an order is repaired at most */

struct place {
	struct neap__stage_program *program;
	int64_t *order;	   /* [buffers] numbers, as they are placed */
	int64_t *placed;   /* of them, by offset */
	int64_t *spare;	   /* [buffers] */
	uint64_t *offsets; /* of the best order */
	uint64_t best;
	int64_t work;
};

static uint64_t life(const struct neap__stage_buffer *b)
{
	return (uint64_t)(b->to - b->from) + 1;
}

/* Larger keys first. Where keys are equal, an order uses the next one; numbers decide last. */
static int by_key(uint64_t a, uint64_t b)
{
	return a > b ? -1 : a < b;
}

static const struct neap__stage_buffer *buffers_of(void *place)
{
	return ((const struct place *)place)->program->buffers;
}

static int by_number(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

static int by_life(const void *x, const void *y, void *place)
{
	int64_t i = *(const int64_t *)x, j = *(const int64_t *)y;
	const struct neap__stage_buffer *a = buffers_of(place) + i, *b = buffers_of(place) + j;
	int rc = by_key(life(a), life(b));
	rc = rc ? rc : by_key(a->bytes, b->bytes);
	return rc ? rc : by_number(i, j);
}

static int by_size(const void *x, const void *y, void *place)
{
	int64_t i = *(const int64_t *)x, j = *(const int64_t *)y;
	const struct neap__stage_buffer *a = buffers_of(place) + i, *b = buffers_of(place) + j;
	int rc = by_key(a->bytes, b->bytes);
	return rc ? rc : by_life(x, y, place);
}

static int by_area(const void *x, const void *y, void *place)
{
	int64_t i = *(const int64_t *)x, j = *(const int64_t *)y;
	const struct neap__stage_buffer *a = buffers_of(place) + i, *b = buffers_of(place) + j;
	int rc = by_key(neap__sat_mul(life(a), a->bytes), neap__sat_mul(life(b), b->bytes));
	return rc ? rc : by_life(x, y, place);
}

/* By the call at which they begin; of one call, the longest life first. */
static int by_time(const void *x, const void *y, void *place)
{
	int64_t i = *(const int64_t *)x, j = *(const int64_t *)y;
	const struct neap__stage_buffer *a = buffers_of(place) + i, *b = buffers_of(place) + j;
	int rc = by_number(a->from, b->from);
	return rc ? rc : by_life(x, y, place);
}

static int (*const orders[])(const void *, const void *, void *) = {
	by_life, by_size, by_area, by_time};
#define ORDERS (int)(sizeof orders / sizeof *orders)

/* Sets the lowest free place of b; returns its index among those placed, by offset. */
static int64_t fit(struct place *p, struct neap__stage_buffer *b, int64_t nplaced)
{
	const struct neap__stage_buffer *all = p->program->buffers;
	uint64_t at = 0;
	int64_t k = 0;
	for (; k < nplaced; k++) {
		const struct neap__stage_buffer *other = &all[p->placed[k]];
		if (other->from > b->to || other->to < b->from)
			continue;
		if (other->offset >= at && other->offset - at >= b->bytes)
			break;
		uint64_t end = neap__sat_add(other->offset, other->bytes);
		at = end > at ? end : at;
	}
	p->work += k;
	b->offset = at;
	while (k > 0 && all[p->placed[k - 1]].offset > at)
		k--;
	return k;
}

/* Places all buffers in order; keeps the places if they are the best so far. */
static void try_order(struct place *p)
{
	uint64_t height = 0;
	int64_t nplaced = 0;
	for (int64_t k = 0; k < p->program->nbuffers; k++) {
		struct neap__stage_buffer *b = &p->program->buffers[p->order[k]];
		b->offset = 0;
		if (b->bytes == 0)
			continue;
		int64_t at = fit(p, b, nplaced);
		memmove(p->placed + at + 1, p->placed + at,
			(size_t)(nplaced++ - at) * sizeof *p->placed);
		p->placed[at] = p->order[k];
		uint64_t end = neap__sat_add(b->offset, b->bytes);
		height = end > height ? end : height;
	}
	if (height < p->best) {
		p->best = height;
		for (int64_t b = 0; b < p->program->nbuffers; b++)
			p->offsets[b] = p->program->buffers[b].offset;
	}
}

/* Moves buffers that end above the limit to the front of the order. */
static void promote(struct place *p, uint64_t limit)
{
	int64_t front = 0, back = 0, n = p->program->nbuffers;
	for (int64_t k = 0; k < n; k++) {
		const struct neap__stage_buffer *b = &p->program->buffers[p->order[k]];
		if (neap__sat_add(b->offset, b->bytes) > limit)
			p->order[front++] = p->order[k];
		else
			p->spare[back++] = p->order[k];
	}
	memcpy(p->order + front, p->spare, (size_t)back * sizeof *p->order);
}

static void start_order(struct place *p, int k)
{
	for (int64_t b = 0; b < p->program->nbuffers; b++)
		p->order[b] = b;
	qsort_r(p->order, (size_t)p->program->nbuffers, sizeof *p->order, orders[k], p);
	try_order(p);
}

/* Repairs the orders until all buffers fit `limit`, or `work` pairs were compared. */
static void repair(struct place *p, uint64_t limit, int64_t work)
{
	for (int k = 0; k < ORDERS && p->best > limit; k++) {
		start_order(p, k);
		for (int i = 0; i < REPAIRS && p->best > limit && p->work < work; i++) {
			promote(p, limit);
			try_order(p);
		}
	}
}

static void search(struct place *p, uint64_t budget)
{
	p->best = UINT64_MAX;
	for (int k = 0; k < ORDERS && p->best > p->program->peak; k++)
		start_order(p, k);
	repair(p, budget, WORK);
	repair(p, p->program->peak, WORK / 10); /* a smaller arena, if it is cheap */
}

static void settle(struct place *p)
{
	struct neap__stage_program *program = p->program;
	for (int64_t b = 0; b < program->nbuffers; b++)
		program->buffers[b].offset = p->offsets[b];
	for (int64_t k = 0; k < program->ncalls; k++)
		for (int role = 0; role < NEAP__ROLES; role++)
			if (program->calls[k].at[role] != NEAP__NOTHING)
				program->calls[k].at[role] =
					(int64_t)p->offsets[program->calls[k].at[role]];
	for (int64_t k = 0; k < program->nparts; k++)
		program->parts[k].offset = p->offsets[program->parts[k].buffer];
	program->arena = p->best;
}

int neap__stage_place(struct neap__stage_program *program, uint64_t budget)
{
	size_t n = (size_t)program->nbuffers;
	struct place p = {.program = program};
	int rc = -ENOMEM;
	p.order = malloc(3 * n * sizeof *p.order);
	p.offsets = malloc(n * sizeof *p.offsets);
	if (p.order && p.offsets) {
		p.placed = p.order + n;
		p.spare = p.order + 2 * n;
		search(&p, budget);
		rc = p.best <= budget;
		if (rc)
			settle(&p);
	} else {
		neap__fail_errno(ENOMEM, "tables of a sweep");
	}
	free(p.order);
	free(p.offsets);
	return rc;
}
