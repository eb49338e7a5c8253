/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cell_cut.c: what the tape of a step holds (cell_derivative.h), as the minimum vertex cut by
 * maximum flow (Ford and Fulkerson 1956, augmenting along shortest paths). A vertex is a node that
 * the step computes, with a capacity; it has an entry and an exit. Among the smallest cuts, the one
 * closest to the derivative is used, which recomputes least.
 */
#include "nn/cellfile/cell_derivative.h"

#include <string.h>

enum {
	ROW = 64, /* capacity: bits of a number of the tape; those of a double */
	BIT = 2,  /* of a spike as a bit; 2, so that of two equal cuts the one without wins */
	ENDLESS = 1 << 20,
	ENTRY = 0,
	EXIT = NEAP__CELL_NODES,
	PLACES = 2 * NEAP__CELL_NODES
};

struct flow {
	const struct neap__cell_graph *graph;
	int capacity[NEAP__CELL_NODES]; /* 0: no vertex */
	int used[NEAP__CELL_NODES];	/* flow through a vertex */
	int edge[3 * NEAP__CELL_NODES]; /* flow from the k-th operand of a node to it */
	uint8_t is_needed[NEAP__CELL_NODES];
	int from[PLACES], queue[PLACES]; /* search: the place before, or -1 */
};

/* Operands of a vertex that are vertices; spikes of this step are known and have none. */
static int operands(const struct flow *f, int node)
{
	return f->capacity[node] ? neap__cell_operands(f->graph->node[node].op) : 0;
}

static void reach(struct flow *f, int place, int before, int *tail)
{
	if (f->from[place] >= 0)
		return;
	f->from[place] = before;
	f->queue[(*tail)++] = place;
}

/*
 * Searches from what is needed towards the inputs. Returns the input's place that is reached with
 * room left, or -1; f->from then marks all places that reach the needed ones.
 */
static int search(struct flow *f)
{
	int tail = 0;

	for (int i = 0; i < PLACES; i++)
		f->from[i] = -1;
	for (int i = 0; i < f->graph->count; i++)
		if (f->is_needed[i] && f->capacity[i])
			reach(f, EXIT + i, EXIT + i, &tail);
	for (int head = 0; head < tail; head++) {
		int place = f->queue[head], i = place % EXIT;
		if (place >= EXIT) {
			if (f->used[i] < f->capacity[i])
				reach(f, ENTRY + i, place, &tail);
			/* Back along flow that leaves to another node. */
			for (int j = i + 1; j < f->graph->count; j++)
				for (int k = 0; k < operands(f, j); k++)
					if (neap__cell_operand(&f->graph->node[j], k) == i &&
						f->edge[3 * j + k] > 0)
						reach(f, ENTRY + j, place, &tail);
			continue;
		}
		if (f->graph->node[i].op < NEAP__CELL_LEAVES)
			return place;
		if (f->used[i] > 0)
			reach(f, EXIT + i, place, &tail);
		for (int k = 0; k < operands(f, i); k++)
			if (f->capacity[neap__cell_operand(&f->graph->node[i], k)])
				reach(f, EXIT + neap__cell_operand(&f->graph->node[i], k), place,
					&tail);
	}
	return -1;
}

/* Which operand edge of node j leads to node i and, if `full`, carries flow. */
static int edge_of(const struct flow *f, int j, int i, int full)
{
	for (int k = 0; k < 3; k++)
		if (k < operands(f, j) && neap__cell_operand(&f->graph->node[j], k) == i &&
			(!full || f->edge[3 * j + k] > 0))
			return 3 * j + k;
	return 0;
}

/* The flow that fits between a place and the one before it; adds `amount` to it. */
static int along(struct flow *f, int place, int amount)
{
	int before = f->from[place], i = place % EXIT, j = before % EXIT, *flow, room;

	if (i == j) {
		flow = &f->used[i];
		int back = place >= EXIT;
		room = back ? *flow : f->capacity[i] - *flow;
		*flow += back ? -amount : amount;
	} else if (place >= EXIT) { /* an operand of the node before */
		f->edge[edge_of(f, j, i, 0)] += amount;
		room = ENDLESS;
	} else { /* back along an edge to the node i */
		flow = &f->edge[edge_of(f, i, j, 1)];
		room = *flow;
		*flow -= amount;
	}
	return room;
}

static void augment(struct flow *f, int end)
{
	int least = ENDLESS;

	for (int place = end; f->from[place] != place; place = f->from[place]) {
		int room = along(f, place, 0);
		least = room < least ? room : least;
	}
	for (int place = end; f->from[place] != place; place = f->from[place])
		along(f, place, least);
}

/* Marks what depends on the nodes marked; nodes behind `stop` do not. */
static void spread(const struct neap__cell_graph *g, uint8_t *mark, int stop)
{
	for (int i = 0; i < g->count; i++)
		for (int k = 0; k < neap__cell_operands(g->node[i].op) && i != stop; k++)
			mark[i] = mark[i] || mark[neap__cell_operand(&g->node[i], k)];
}

/* Marks the nodes that the outputs of the derivative need. */
static void mark_used(
	uint8_t *used, const struct neap__cell_source *s, const struct neap__cell_derivative *d)
{
	used[d->in] = used[d->last] = used[s->condition] = used[d->condition] = 1;
	for (int k = 0; k < s->nstates; k++)
		used[d->state[k]] = 1;
	for (int i = s->graph.count - 1; i >= 0; i--)
		for (int k = 0; used[i] && k < neap__cell_operands(s->graph.node[i].op); k++)
			used[neap__cell_operand(&s->graph.node[i], k)] = 1;
}

static int is_gradient(enum neap__cell_op op)
{
	return op == NEAP__CELL_HEIGHT || op == NEAP__CELL_DS || op == NEAP__CELL_DSTATE;
}

static void fill(struct flow *f, const struct neap__cell_source *s,
	const struct neap__cell_derivative *d, int smooth)
{
	const struct neap__cell_graph *g = &s->graph;
	uint8_t used[NEAP__CELL_NODES] = {0}, gradient[NEAP__CELL_NODES] = {0};

	f->graph = g;
	mark_used(used, s, d);
	for (int i = 0; i < g->count; i++)
		gradient[i] = (uint8_t)is_gradient(g->node[i].op);
	spread(g, gradient, -1);
	for (int i = 0; i < g->count; i++) {
		enum neap__cell_op op = g->node[i].op;
		int is_last = op == NEAP__CELL_LAST || op == NEAP__CELL_RESET_LAST;
		if (gradient[i] || op == NEAP__CELL_CONST || op == NEAP__CELL_NOW ||
			op == NEAP__CELL_RESET_NOW)
			continue;
		f->capacity[i] = is_last && !smooth ? BIT : ROW;
	}
	f->is_needed[s->condition] = 1;
	f->is_needed[d->in] = f->is_needed[d->last] = 1;
	for (int k = 0; k < s->nstates; k++)
		f->is_needed[d->state[k]] = 1;
	for (int i = 0; i < g->count; i++)
		for (int k = 0; used[i] && gradient[i] && k < neap__cell_operands(g->node[i].op);
			k++)
			f->is_needed[neap__cell_operand(&g->node[i], k)] = 1;
}

/* 1: operations of finite numbers whose results are finite, too. */
static int stays_finite(enum neap__cell_op op)
{
	return op <= NEAP__CELL_MUL || (op >= NEAP__CELL_NEG && op <= NEAP__CELL_ABS);
}

/* 1: of units whose surrogate derivative is 0, the value of the condition reaches no output. */
static int is_sparse(const struct neap__cell_source *s, const struct neap__cell_derivative *d)
{
	const struct neap__cell_graph *g = &s->graph;
	uint8_t used[NEAP__CELL_NODES] = {0}, depends[NEAP__CELL_NODES] = {0};

	mark_used(used, s, d);
	depends[s->condition] = 1;
	for (int i = s->condition + 1; i < g->count; i++) {
		enum neap__cell_op op = g->node[i].op;
		if (op == NEAP__CELL_NOW || op == NEAP__CELL_RESET_NOW || i == d->condition)
			continue;
		for (int k = 0; k < neap__cell_operands(op); k++)
			depends[i] = depends[i] || depends[neap__cell_operand(&g->node[i], k)];
		/* Nodes of the step itself are not computed from the condition. */
		if (used[i] && depends[i] && !stays_finite(op))
			return 0;
	}
	for (int k = 0; k < s->nstates; k++)
		if (depends[d->state[k]])
			return 0;
	return !depends[d->in] && !depends[d->last];
}

void neap__cell_cut_make(struct neap__cell_cut *cut, const struct neap__cell_source *source,
	const struct neap__cell_derivative *derivative, int smooth)
{
	struct flow f = {0};
	int end;

	fill(&f, source, derivative, smooth);
	while ((end = search(&f)) >= 0)
		augment(&f, end);
	*cut = (struct neap__cell_cut){0};
	for (int i = 0; i < source->graph.count; i++) {
		enum neap__cell_op op = source->graph.node[i].op;
		if (!f.capacity[i] || f.from[EXIT + i] < 0 || f.from[ENTRY + i] >= 0)
			continue;
		if (op == NEAP__CELL_LAST || op == NEAP__CELL_RESET_LAST)
			cut->last = 1;
		else
			cut->node[cut->count++] = i;
	}
	cut->is_sparse = cut->count == 1 && cut->node[0] == source->condition && !cut->last &&
			 is_sparse(source, derivative);
}
