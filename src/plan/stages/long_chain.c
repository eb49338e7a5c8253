/* SPDX-License-Identifier: Apache-2.0 */
/*
 * long_chain.c: reverses part by part, the last part first, split where chain_reach.h says. The
 * first state of a part is kept in a slot from the first split on; that of a leaf only where
 * its backward needs it. O(L) memory for L stages: 80 bytes a stage, and the slots.
 */
#include "plan/stages/long_chain.h"

#include <errno.h>
#include <stdlib.h>
#include "base/fail.h"
#include "plan/stages/chain_reach.h"
#include "plan/core/stage_sizes.h"

#define TRIES 8		    /* places looked at for a split */
#define WORK 40000000	    /* stages looked at before only the furthest is */
#define WORK_MOST 500000000 /* and before leaves are done one by one from the end */
#define NOT_KEPT (-1)	    /* only live */
#define SMALL 16	    /* parts of so few stages have little to gain */
#define PARTS_AT_LEAST 64

/* [i,n) is still to be done, in so many bytes beside x_i; n = steps + 1 with the loss. */
struct long_part {
	int64_t i, n, bytes, slot;
};

struct longchain {
	struct neap__chain_reach reach;
	struct long_part *stack;
	int64_t depth, room;
	int64_t *free_slots;  /* numbers given back */
	int64_t nfree, slots; /* how many are in the list; numbers 0..slots-1 were taken */
	int64_t live;	      /* the live state's step, -1: none */
};

static int64_t take_slot(struct longchain *x)
{
	return x->nfree > 0 ? x->free_slots[--x->nfree] : x->slots++;
}

static int64_t keep(struct neap_schedule *s, int64_t i)
{
	int64_t slot = take_slot(s->self);
	neap__save(s, slot, i);
	return slot;
}

static void drop(struct neap_schedule *s, int64_t slot, int64_t i)
{
	struct longchain *x = s->self;
	neap__drop(s, slot, i);
	x->free_slots[x->nfree++] = slot;
}

static void bring(struct neap_schedule *s, const struct long_part *part)
{
	struct longchain *x = s->self;
	if (x->live != part->i)
		neap__load(s, part->slot, part->i);
	x->live = part->i;
}

static int push(struct longchain *x, struct long_part part)
{
	if (x->depth == x->room) {
		int64_t room = 2 * x->room + PARTS_AT_LEAST;
		void *stack = realloc(x->stack, (size_t)room * sizeof *x->stack);
		if (!stack)
			return neap__fail(-ENOMEM, "schedule: out of memory");
		x->stack = stack;
		x->room = room;
	}
	x->stack[x->depth++] = part;
	return 0;
}

/* A leaf of which the backward of each stage needs its input, held nowhere else. */
static void with_inputs(struct neap_schedule *s, const struct long_part *part, int64_t end)
{
	struct longchain *x = s->self;
	int64_t first = x->slots;
	for (int64_t k = part->i; k < end; k++) {
		neap__record(s, k, k + 1);
		if (k + 1 < end) /* one after the other, in numbers of their own */
			neap__save(s, first + k - part->i, k + 1);
	}
	if (part->n > s->problem.chain.steps)
		neap__emit_turn(s);
	for (int64_t k = end - 1; k >= part->i; k--) {
		neap__backward(s, k, k + 1);
		if (k > part->i)
			neap__drop(s, first + k - 1 - part->i, k);
	}
}

static void do_leaf(struct neap_schedule *s, struct long_part part)
{
	struct longchain *x = s->self;
	const struct neap_stages *stages = s->problem.chain.stages;
	int64_t steps = s->problem.chain.steps, end = part.n > steps ? steps : part.n;
	int needs = neap__backward_needs_input(stages) && part.i < steps;
	bring(s, &part);
	if (needs && part.slot == NOT_KEPT)
		part.slot = keep(s, part.i);
	if (!needs && part.slot != NOT_KEPT)
		drop(s, part.slot, part.i);
	if (needs && !neap__tape_holds_output(stages)) {
		with_inputs(s, &part, end);
	} else {
		if (part.i < end)
			neap__record(s, part.i, end);
		if (part.n > steps)
			neap__emit_turn(s);
		if (part.i < end)
			neap__backward(s, part.i, end);
	}
	if (needs)
		drop(s, part.slot, part.i);
	x->live = -1;
}

static int refill(struct neap_schedule *s)
{
	struct longchain *x = s->self;
	if (x->depth == 0)
		return 0;
	struct long_part part = x->stack[--x->depth];
	if (neap__chain_reach_leaf(&x->reach, part.i, part.n, part.bytes)) {
		do_leaf(s, part);
		return 0;
	}
	int tries = x->reach.scanned < WORK && part.n - part.i > SMALL ? TRIES : 0;
	int64_t j = x->reach.scanned < WORK_MOST
			    ? neap__chain_reach_split(&x->reach, part.i, part.n, part.bytes, tries)
			    : neap__chain_reach_last(&x->reach, part.i, part.n, part.bytes);
	if (j < 0)
		return neap__fail(NEAP_EINFEASIBLE, "the stages need more bytes");
	bring(s, &part);
	if (part.slot == NOT_KEPT)
		part.slot = keep(s, part.i);
	neap__advance(s, part.i, j);
	x->live = j;
	int64_t right = part.bytes - (int64_t)s->problem.chain.stages->state[j];
	NEAP_TRY(push(x, (struct long_part){part.i, j, part.bytes, part.slot}));
	return push(x, (struct long_part){j, part.n, right, NOT_KEPT});
}

static void fini(struct neap_schedule *s)
{
	struct longchain *x = s->self;
	neap__chain_reach_free(&x->reach);
	free(x->stack);
	free(x->free_slots);
}

uint64_t neap__long_chain_least(const struct neap_chain *chain)
{
	struct neap__chain_reach reach;
	uint64_t least = UINT64_MAX;
	if (neap__chain_reach_init(&reach, chain, 0) == 0)
		least = neap__chain_reach_least(&reach);
	neap__chain_reach_free(&reach);
	return least;
}

int neap__long_chain_open(struct neap_schedule *s)
{
	const struct neap_chain *c = &s->problem.chain;
	const uint64_t most = (uint64_t)1 << 61; /* of sizes that are 2^60 together */
	uint64_t memory = s->problem.memory < most ? s->problem.memory : most;
	struct longchain *x = s->self = calloc(1, sizeof *x);
	if (!x)
		return neap__fail(-ENOMEM, "schedule: out of memory");
	s->refill = refill;
	s->fini = fini;
	NEAP_TRY(neap__chain_reach_init(&x->reach, c, s->plan.variant == NEAP__LONG_CHAIN_WORST));
	uint64_t least = neap__chain_reach_least(&x->reach);
	if (memory < least)
		return neap__fail(NEAP_EINFEASIBLE, "the stages need %llu bytes at least",
			(unsigned long long)least);
	x->free_slots = malloc((size_t)(c->steps + 2) * sizeof *x->free_slots);
	if (!x->free_slots)
		return neap__fail(-ENOMEM, "schedule: out of memory");
	x->live = 0;
	return push(x, (struct long_part){
			       0, c->steps + 1, (int64_t)(memory - c->stages->state[0]), NOT_KEPT});
}
