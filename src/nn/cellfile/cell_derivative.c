/* SPDX-License-Identifier: Apache-2.0 */
/* cell_derivative.c: reverse-mode differentiation of a graph (cell_derivative.h). */
#include "nn/cellfile/cell_derivative.h"
#include "base/fail.h"

struct reverse {
	struct neap__cell_graph *graph;
	int zero, one;
	int gradient[NEAP__CELL_NODES]; /* node of the gradient with respect to a node */
};

static int add(struct reverse *r, enum neap__cell_op op, int a, int b, int c)
{
	return neap__cell_add(r->graph, op, a, b, c);
}

static void gains(struct reverse *r, int node, int gradient)
{
	r->gradient[node] = add(r, NEAP__CELL_ADD, r->gradient[node], gradient, 0);
}

/* Hands the gradient d of y = a OP b to a and b. */
static void reverse_binary(struct reverse *r, const struct neap__cell_node *n, int y, int d)
{
	int a = n->a, b = n->b, quotient, first;

	switch (n->op) {
	case NEAP__CELL_ADD:
		gains(r, a, d);
		gains(r, b, d);
		break;
	case NEAP__CELL_SUB:
		gains(r, a, d);
		gains(r, b, add(r, NEAP__CELL_NEG, d, 0, 0));
		break;
	case NEAP__CELL_MUL:
		gains(r, a, add(r, NEAP__CELL_MUL, d, b, 0));
		gains(r, b, add(r, NEAP__CELL_MUL, d, a, 0));
		break;
	case NEAP__CELL_DIV:
		quotient = add(r, NEAP__CELL_DIV, d, b, 0);
		gains(r, a, quotient);
		gains(r, b, add(r, NEAP__CELL_NEG, add(r, NEAP__CELL_MUL, quotient, y, 0), 0, 0));
		break;
	case NEAP__CELL_MIN:
	case NEAP__CELL_MAX:
		first = n->op == NEAP__CELL_MIN ? add(r, NEAP__CELL_GT, b, a, 0)
						: add(r, NEAP__CELL_GT, a, b, 0);
		gains(r, a, add(r, NEAP__CELL_SELECT, first, d, r->zero));
		gains(r, b, add(r, NEAP__CELL_SELECT, first, r->zero, d));
		break;
	default: /* comparisons are constant almost everywhere */
		break;
	}
}

/* The derivative of y = f(a), times d. */
static int chain(struct reverse *r, const struct neap__cell_node *n, int y, int d)
{
	int a = n->a, slope;

	switch (n->op) {
	case NEAP__CELL_NEG:
		return add(r, NEAP__CELL_NEG, d, 0, 0);
	case NEAP__CELL_ABS:
		slope = add(r, NEAP__CELL_GT, a, r->zero, 0);
		return add(r, NEAP__CELL_SELECT, slope, d, add(r, NEAP__CELL_NEG, d, 0, 0));
	case NEAP__CELL_EXP:
		return add(r, NEAP__CELL_MUL, d, y, 0);
	case NEAP__CELL_LOG:
		return add(r, NEAP__CELL_DIV, d, a, 0);
	case NEAP__CELL_SQRT:
		return add(r, NEAP__CELL_DIV, d, add(r, NEAP__CELL_ADD, y, y, 0), 0);
	case NEAP__CELL_TANH:
		slope = add(r, NEAP__CELL_SUB, r->one, add(r, NEAP__CELL_MUL, y, y, 0), 0);
		return add(r, NEAP__CELL_MUL, d, slope, 0);
	case NEAP__CELL_SIGMOID:
		slope = add(r, NEAP__CELL_MUL, y, add(r, NEAP__CELL_SUB, r->one, y, 0), 0);
		return add(r, NEAP__CELL_MUL, d, slope, 0);
	case NEAP__CELL_SIN:
		return add(r, NEAP__CELL_MUL, d, add(r, NEAP__CELL_COS, a, 0, 0), 0);
	default: /* COS */
		slope = add(r, NEAP__CELL_SIN, a, 0, 0);
		return add(r, NEAP__CELL_NEG, add(r, NEAP__CELL_MUL, d, slope, 0), 0, 0);
	}
}

static void reverse_node(struct reverse *r, int y, struct neap__cell_derivative *derivative)
{
	const struct neap__cell_node n = r->graph->node[y];
	int d = r->gradient[y], part;

	if (n.op == NEAP__CELL_NOW) {
		part = add(r, NEAP__CELL_ADD, add(r, NEAP__CELL_DS, 0, 0, 0), d, 0);
		derivative->condition =
			add(r, NEAP__CELL_MUL, add(r, NEAP__CELL_HEIGHT, 0, 0, 0), part, 0);
		gains(r, n.a, derivative->condition);
		return;
	}
	if (d == r->zero || n.op < NEAP__CELL_LEAVES || n.op == NEAP__CELL_RESET_NOW)
		return;
	if (n.op == NEAP__CELL_SELECT) {
		gains(r, n.b, add(r, NEAP__CELL_SELECT, n.a, d, r->zero));
		gains(r, n.c, add(r, NEAP__CELL_SELECT, n.a, r->zero, d));
	} else if (n.op == NEAP__CELL_BLEND) {
		gains(r, n.b, add(r, NEAP__CELL_BLEND, n.a, d, r->zero));
		gains(r, n.c, add(r, NEAP__CELL_BLEND, n.a, r->zero, d));
		part = add(r, NEAP__CELL_SUB, n.b, n.c, 0);
		if (r->graph->node[n.a].op != NEAP__CELL_RESET_NOW &&
			r->graph->node[n.a].op != NEAP__CELL_RESET_LAST)
			gains(r, n.a, add(r, NEAP__CELL_MUL, d, part, 0));
	} else if (neap__cell_operands(n.op) == 2) {
		reverse_binary(r, &n, y, d);
	} else {
		gains(r, n.a, chain(r, &n, y, d));
	}
}

int neap__cell_differentiate(
	struct neap__cell_derivative *derivative, struct neap__cell_source *source)
{
	struct neap__cell_graph *g = &source->graph;
	struct reverse r = {.graph = g};

	r.zero = neap__cell_const(g, 0);
	r.one = neap__cell_const(g, 1);
	derivative->primal = g->count;
	for (int i = 0; i < g->count; i++)
		r.gradient[i] = r.zero;
	for (int k = 0; k < source->nstates; k++)
		gains(&r, source->state[k].next, neap__cell_add(g, NEAP__CELL_DSTATE, k, 0, 0));
	for (int i = derivative->primal - 1; i >= 0; i--)
		reverse_node(&r, i, derivative);
	derivative->in = derivative->last = r.zero;
	for (int k = 0; k < source->nstates; k++)
		derivative->state[k] = r.zero;
	for (int i = 0; i < derivative->primal; i++) {
		if (g->node[i].op == NEAP__CELL_IN)
			derivative->in = r.gradient[i];
		else if (g->node[i].op == NEAP__CELL_LAST)
			derivative->last = r.gradient[i];
		else if (g->node[i].op == NEAP__CELL_STATE)
			derivative->state[g->node[i].a] = r.gradient[i];
	}
	if (!g->is_full)
		return 0;
	return neap__fail(NEAP_EUSAGE,
		"the step of cell '%s' and its derivative have more than %d operations; simplify "
		"the cell",
		source->name, NEAP__CELL_NODES);
}
