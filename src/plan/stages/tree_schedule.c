/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tree_schedule.c: the nodes of the tree from its root on, the right part of a split before the
 * left one. The tree is made when the schedule is opened, so that no action has to wait for it.
 */
#include "plan/stages/tree_schedule.h"

#include <errno.h>
#include <stdlib.h>
#include "plan/core/stage_sizes.h"

/* All sizes together are less. More memory is no better, and bytes stay in 63 bits. */
#define MEMORY_MOST ((uint64_t)1 << 61)

/* Values of `slot` without a slot. */
#define IN_TAPE (-1)  /* the tape of stage i - 1 holds the state */
#define NOT_KEPT (-2) /* the last state, live until the loss */

/* A node that is still to be done, and where its first state is kept. */
struct tree_part {
	int32_t node;
	int64_t slot;
};

struct tree_schedule {
	struct neap__chain_tree tree;
	struct tree_part *stack;
	int64_t *free_slots; /* free numbers, the lowest last */
	int64_t depth, free;
	int64_t live; /* the live state's step, -1: none */
};

static int64_t take_slot(struct tree_schedule *x)
{
	return x->free_slots[--x->free];
}

static void drop(struct neap_schedule *s, struct tree_part *part, int64_t i)
{
	struct tree_schedule *x = s->self;
	if (part->slot < 0)
		return;
	neap__drop(s, part->slot, i);
	x->free_slots[x->free++] = part->slot;
	part->slot = NOT_KEPT;
}

/* Makes the first state of a part live. */
static void bring(struct neap_schedule *s, const struct tree_part *part, int64_t i)
{
	struct tree_schedule *x = s->self;
	if (x->live == i)
		return;
	x->live = i;
	if (part->slot >= 0)
		neap__load(s, part->slot, i);
	else
		neap__emit(s, &(struct neap_action){
				      .kind = NEAP_LOAD, .payload = NEAP_TAPE, .t0 = i, .t1 = i});
}

static void reverse(struct neap_schedule *s, int64_t t0, int64_t t1)
{
	struct tree_schedule *x = s->self;
	neap__backward(s, t0, t1);
	x->live = -1;
}

/* Does a leaf, or the loss. */
static void do_leaf(
	struct neap_schedule *s, const struct neap__chain_node *node, struct tree_part part)
{
	struct tree_schedule *x = s->self;
	int needs = neap__backward_needs_input(s->problem.chain.stages);
	if (node->i == s->problem.chain.steps) {
		bring(s, &part, node->i);
		neap__emit_turn(s);
		drop(s, &part, node->i);
		x->live = -1;
		return;
	}
	if (!node->taped) {
		bring(s, &part, node->i);
		if (!needs)
			drop(s, &part, node->i);
		neap__record(s, node->i, node->end);
	} else if (!needs) {
		drop(s, &part, node->i);
	}
	reverse(s, node->i, node->end);
	drop(s, &part, node->i);
}

static void push(struct tree_schedule *x, int32_t node, int64_t slot)
{
	x->stack[x->depth++] = (struct tree_part){node, slot};
}

static void do_split(
	struct neap_schedule *s, const struct neap__chain_node *node, const struct tree_part *part)
{
	struct tree_schedule *x = s->self;
	int64_t slot = NOT_KEPT;
	bring(s, part, node->i);
	neap__advance(s, node->i, node->from);
	if (node->from < node->j)
		neap__record(s, node->from, node->j);
	x->live = node->j;
	if (node->from < node->j && neap__tape_holds_output(s->problem.chain.stages)) {
		slot = IN_TAPE;
	} else if (node->j < s->problem.chain.steps) {
		slot = take_slot(x);
		neap__save(s, slot, node->j);
	}
	push(x, node->left, part->slot);
	push(x, node->right, slot);
}

static int refill(struct neap_schedule *s)
{
	struct tree_schedule *x = s->self;
	if (x->depth == 0)
		return 0;
	struct tree_part part = x->stack[--x->depth];
	const struct neap__chain_node *node = &x->tree.nodes[part.node];
	if (node->kind == NEAP__CHAIN_LEAF) {
		do_leaf(s, node, part);
	} else if (node->kind == NEAP__CHAIN_SPLIT) {
		do_split(s, node, &part);
	} else { /* the backward of the last stages needs their tapes only */
		reverse(s, node->j, node->end);
		push(x, node->left, part.slot);
	}
	return 0;
}

static void fini(struct neap_schedule *s)
{
	struct tree_schedule *x = s->self;
	neap__chain_tree_free(&x->tree);
	free(x->stack);
	free(x->free_slots);
}

int neap__tree_schedule_open(struct neap_schedule *s, const struct neap__chain_grouping *how)
{
	const struct neap_chain *c = &s->problem.chain;
	struct tree_schedule *x = s->self = calloc(1, sizeof *x);
	if (!x)
		return neap__fail(-ENOMEM, "schedule: out of memory");
	s->refill = refill;
	s->fini = fini;
	uint64_t memory = s->problem.memory < MEMORY_MOST ? s->problem.memory : MEMORY_MOST;
	NEAP_TRY(neap__chain_tree_make(&x->tree, c, memory, how));
	x->stack = malloc((size_t)(c->steps + 2) * sizeof *x->stack);
	x->free_slots = malloc((size_t)(c->steps + 2) * sizeof *x->free_slots);
	if (!x->stack || !x->free_slots)
		return neap__fail(-ENOMEM, "schedule: out of memory");
	for (x->free = 0; x->free < c->steps + 2; x->free++)
		x->free_slots[x->free] = c->steps + 1 - x->free;
	int64_t slot = take_slot(x);
	neap__save(s, slot, 0);
	push(x, 0, slot);
	return s->error;
}
