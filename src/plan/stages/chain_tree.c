/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain_tree.c: a table is filled for the groups of a part, its choices are followed down to single
 * groups, and the table is freed. A table that would be large knows only the choices of the parts
 * that end with it: those of the others, which are shorter, come from tables of their own. Of the
 * tree that this gives, the nodes with few groups are the parts that are solved once more, in the
 * bytes that they have. The coarser tree of such a part stays where the finer one takes no less
 * time, as both round sizes up in their own way.
 */
#include "plan/stages/chain_tree.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include "base/fail.h"
#include "base/grow.h"
#include "plan/core/stage_sizes.h"
#include "plan/stages/chain_table.h"
#include "plan/stages/stage_groups.h"

#define GAIN 1e-9	/* the share of its time that a finer tree must save */
#define TABLES_MOST 100 /* of a tree, so that it takes seconds */

/* A part of the chain that is to be solved: its range, the bytes beside x_first. */
struct chain_part {
	struct neap__stage_range range;
	int64_t bytes;
};

/* A node of the tree of groups i..t; t = n with the loss. */
struct group_node {
	int64_t i, t, bytes, right, left;
	int taped, kind;
	struct neap__chain_table_choice choice;
	double way; /* seconds to x_j */
	double seconds;
};

struct group_tree {
	struct neap__stage_groups groups;
	struct neap_chain chain;	/* of the groups */
	double unit;			/* bytes a level of all tables */
	struct neap__chain_table table; /* of groups `first` and following, filled for a part */
	struct neap_stages part_stages;
	struct neap_chain part_chain;
	int64_t first;
	struct group_node *nodes; /* children behind their parents */
	int64_t count;
	int64_t *left; /* nodes that are to be followed with another table */
	int64_t nleft;
};

struct growing {
	struct neap__chain_tree *tree;
	const struct neap_chain *chain;
	struct neap__chain_grouping how;
	int tables; /* filled so far */
};

static int64_t add_node(struct group_tree *x, int64_t i, int64_t t, int64_t bytes, int taped)
{
	x->nodes[x->count] = (struct group_node){.i = i, .t = t, .bytes = bytes, .taped = taped};
	return x->count++;
}

/* Adds the parts that a node is taken apart into, as far as the table knows; the others are left.
 */
static void follow(struct group_tree *x, int64_t at)
{
	struct group_node *n = &x->nodes[at];
	const struct neap__part_costs *parts = &x->table.parts;
	if (n->i == n->t) {
		n->kind = NEAP__CHAIN_LEAF;
		return;
	}
	if (n->taped && !neap__backward_needs_input(x->chain.stages)) {
		n->kind = NEAP__CHAIN_FIRST;
		n->left = add_node(x, n->i, n->t - 1, n->bytes + (int64_t)x->groups.tape[n->t], 0);
		follow(x, n->left);
		return;
	}
	if (!x->table.chain || !neap__chain_table_knows(&x->table, n->taped, n->t - x->first)) {
		x->left[x->nleft++] = at;
		return;
	}
	int64_t i = n->i - x->first;
	struct neap__chain_table_choice k =
		neap__chain_table_choose(&x->table, n->taped, i, n->t - x->first, n->bytes);
	n->way = (k.record ? parts->record : parts->advance)[neap__row_pair(parts->n, i, k.j - 1)];
	k.j += x->first;
	n->kind = NEAP__CHAIN_SPLIT;
	n->choice = k;
	n->right = add_node(x, k.j, n->t, k.right, n->taped);
	follow(x, n->right);
	n->left = add_node(x, n->i, k.j - 1, k.left, k.record);
	follow(x, n->left);
}

/* Fills a table for a node. */
static int fill_table(struct group_tree *x, const struct group_node *n)
{
	const struct neap_stages *s = x->chain.stages;
	int64_t i = n->i, steps = n->t - (n->t == x->chain.steps) + 1 - i;
	struct neap__chain_table_part part = {.memory = (uint64_t)n->bytes + s->state[i],
		.last = n->t - i,
		.taped = n->taped,
		.unit = x->unit};
	neap__chain_table_free(&x->table);
	x->part_stages = *s;
	x->part_stages.advance = s->advance + i;
	x->part_stages.record = s->record ? s->record + i : NULL;
	x->part_stages.backward = s->backward + i;
	x->part_stages.state = s->state + i;
	x->part_stages.tape = s->tape + i;
	x->part_stages.advance_tmp = s->advance_tmp ? s->advance_tmp + i : NULL;
	x->part_stages.record_tmp = s->record_tmp ? s->record_tmp + i : NULL;
	x->part_stages.backward_tmp = s->backward_tmp ? s->backward_tmp + i : NULL;
	x->part_chain = x->chain;
	x->part_chain.steps = steps;
	x->part_chain.stages = &x->part_stages;
	x->first = i;
	NEAP_TRY(neap__chain_table_fill_part(&x->table, &x->part_chain, &part));
	x->unit = x->table.unit;
	return 0;
}

/* Seconds of all parts, from those of their parts. */
static void add_seconds(struct group_tree *x)
{
	for (int64_t at = x->count - 1; at >= 0; at--) {
		struct group_node *n = &x->nodes[at];
		if (n->kind == NEAP__CHAIN_LEAF)
			n->seconds = neap__leaf_cost(&x->chain, n->t, n->taped);
		else if (n->kind == NEAP__CHAIN_FIRST)
			n->seconds = x->groups.backward[n->t] + x->nodes[n->left].seconds;
		else
			n->seconds =
				n->way + x->nodes[n->right].seconds + x->nodes[n->left].seconds;
	}
}

static int solve(struct group_tree *x, const struct growing *g, const struct chain_part *part)
{
	const struct neap__stage_range *range = &part->range;
	const int loss = range->end > g->chain->steps, taped = range->taped < range->end - loss;
	const struct neap__stage_range stages = {range->first, range->end - loss, range->taped};
	int64_t count = g->how.groups > 0 ? g->how.groups : g->chain->steps;
	NEAP_TRY(neap__stage_groups_make(&x->groups, g->chain, stages, count, g->how.largest));
	x->chain = *g->chain;
	x->chain.steps = x->groups.n;
	x->chain.stages = &x->groups.stages;
	int64_t last = x->groups.n - !loss;
	size_t most = (size_t)(3 * x->groups.n + 3);
	x->nodes = malloc(most * sizeof *x->nodes);
	x->left = malloc(most * sizeof *x->left);
	if (!x->nodes || !x->left)
		return neap__fail(-ENOMEM, "plan: out of memory");
	(void)add_node(x, 0, last, part->bytes, taped);
	/* The table of all groups also tells whether they fit, and how many bytes a level is. */
	NEAP_TRY(fill_table(x, &x->nodes[0]));
	follow(x, 0);
	while (x->nleft > 0) {
		int64_t at = x->left[--x->nleft];
		NEAP_TRY(fill_table(x, &x->nodes[at]));
		follow(x, at);
	}
	add_seconds(x);
	return 0;
}

static void free_groups(struct group_tree *x)
{
	neap__chain_table_free(&x->table);
	neap__stage_groups_free(&x->groups);
	free(x->nodes);
	free(x->left);
}

/* The first stage of a group; beyond the last one the chain's end, or the end of its loss. */
static int64_t stage_of(const struct group_tree *x, int64_t group)
{
	int64_t n = x->groups.n;
	return x->groups.at[group < n ? group : n] + (group > n);
}

/* 1 where a part of several groups, of which some have several stages, is worth to be solved. */
static int is_part(const struct growing *g, const struct group_tree *x, const struct group_node *n)
{
	int64_t groups = n->t - n->i + 1, most = g->how.again;
	int64_t stages = stage_of(x, n->t + 1) - stage_of(x, n->i);
	if (most > x->groups.n / 2)
		most = x->groups.n / 2;
	return g->tables < TABLES_MOST && groups > 1 && groups <= most &&
	       n->kind == NEAP__CHAIN_SPLIT && stages > groups;
}

static int grow_part(struct growing *g, const struct chain_part *part, double below, int32_t *node);

static int add(struct growing *g, const struct group_tree *x, const struct group_node *n)
{
	struct neap__chain_tree *tree = g->tree;
	if (neap__grow(&tree->nodes, &tree->room, tree->count + 1, sizeof *tree->nodes) < 0)
		return neap__fail(-ENOMEM, "plan: out of memory");
	struct neap__chain_node *at = &tree->nodes[tree->count++];
	*at = (struct neap__chain_node){.i = (int32_t)stage_of(x, n->i),
		.end = (int32_t)stage_of(x, n->t + 1),
		.kind = (uint8_t)n->kind,
		.taped = (uint8_t)n->taped};
	if (n->kind == NEAP__CHAIN_FIRST)
		at->j = (int32_t)stage_of(x, n->t);
	if (n->kind == NEAP__CHAIN_SPLIT) {
		at->j = (int32_t)stage_of(x, n->choice.j);
		at->from = n->choice.record ? (int32_t)stage_of(x, n->choice.j - 1) : at->j;
	}
	return 0;
}

/* Copies a part of the tree of groups, with parts of it solved anew; *node is its number. */
static int copy(struct growing *g, const struct group_tree *x, int64_t at, int32_t *node)
{
	const struct group_node *n = &x->nodes[at];
	int32_t child = 0;
	if (is_part(g, x, n)) {
		int64_t first = stage_of(x, n->i), end = stage_of(x, n->t + 1);
		int64_t taped = n->taped ? stage_of(x, n->t) : end - (end > g->chain->steps);
		int rc = grow_part(g, &(struct chain_part){{first, end, taped}, n->bytes},
			n->seconds * (1 - GAIN), node);
		if (rc != 0 && rc != NEAP_EINFEASIBLE)
			return rc;
	}
	*node = (int32_t)g->tree->count;
	NEAP_TRY(add(g, x, n));
	if (n->kind == NEAP__CHAIN_SPLIT) {
		NEAP_TRY(copy(g, x, n->right, &child));
		g->tree->nodes[*node].right = child;
	}
	if (n->kind != NEAP__CHAIN_LEAF) {
		NEAP_TRY(copy(g, x, n->left, &child));
		g->tree->nodes[*node].left = child;
	}
	return 0;
}

/* Solves a part and adds it where it takes less than `below`: 1, else 0, or a negative code. */
static int grow_part(struct growing *g, const struct chain_part *part, double below, int32_t *node)
{
	struct group_tree x = {.count = 0};
	g->tables++;
	int rc = solve(&x, g, part);
	neap__chain_table_free(&x.table);
	if (rc == 0 && x.nodes->seconds < below) {
		rc = copy(g, &x, 0, node);
		rc = rc < 0 ? rc : 1;
	}
	free_groups(&x);
	return rc;
}

int neap__chain_tree_make(struct neap__chain_tree *tree, const struct neap_chain *chain,
	uint64_t memory, const struct neap__chain_grouping *how)
{
	struct growing g = {.tree = tree, .chain = chain, .how = *how};
	const struct chain_part all = {{0, chain->steps + 1, chain->steps},
		(int64_t)memory - (int64_t)chain->stages->state[0]};
	int32_t root;
	*tree = (struct neap__chain_tree){.count = 0};
	if (memory < chain->stages->state[0])
		return neap__fail(NEAP_EINFEASIBLE, "x_0 does not fit");
	int rc = grow_part(&g, &all, INFINITY, &root);
	return rc < 0 ? rc : 0;
}

void neap__chain_tree_free(struct neap__chain_tree *tree)
{
	free(tree->nodes);
	*tree = (struct neap__chain_tree){.count = 0};
}
