/* SPDX-License-Identifier: Apache-2.0 */
/* cell_graph.c: adds nodes, shares equal ones and computes constant ones (cell_graph.h). */
#include "nn/cellfile/cell_graph.h"
#include "base/half.h"

#include <math.h>
#include <string.h>

int neap__cell_operands(enum neap__cell_op op)
{
	if (op < NEAP__CELL_LEAVES)
		return 0;
	if (op == NEAP__CELL_SELECT || op == NEAP__CELL_BLEND)
		return 3;
	if (op <= NEAP__CELL_RESET_NOW || op == NEAP__CELL_NEG || op >= NEAP__CELL_ABS)
		return 1;
	return 2;
}

double neap__cell_value(enum neap__cell_op op, double a, double b, double c)
{
	switch (op) {
	case NEAP__CELL_ADD:
		return a + b;
	case NEAP__CELL_SUB:
		return a - b;
	case NEAP__CELL_MUL:
		return a * b;
	case NEAP__CELL_DIV:
		return a / b;
	case NEAP__CELL_NEG:
		return -a;
	case NEAP__CELL_MIN:
		return a < b ? a : b;
	case NEAP__CELL_MAX:
		return a > b ? a : b;
	case NEAP__CELL_GT:
		return a > b;
	case NEAP__CELL_GE:
		return a >= b;
	case NEAP__CELL_SELECT:
		return a != 0 ? b : c;
	case NEAP__CELL_BLEND:
		return a == 0 ? c : a == 1 ? b : a * b + (1 - a) * c;
	case NEAP__CELL_ABS:
		return fabs(a);
	case NEAP__CELL_EXP:
		return exp(a);
	case NEAP__CELL_LOG:
		return log(a);
	case NEAP__CELL_SQRT:
		return sqrt(a);
	case NEAP__CELL_TANH:
		return tanh(a);
	case NEAP__CELL_SIGMOID:
		return 1 / (1 + exp(-a));
	case NEAP__CELL_SIN:
		return sin(a);
	case NEAP__CELL_COS:
		return cos(a);
	default:
		return 0;
	}
}

/* The node that equals `want`, which is added if there is none. */
static int find(struct neap__cell_graph *graph, const struct neap__cell_node *want)
{
	uint64_t bits = neap__double_bits(want->value), hash;

	hash = (uint64_t)want->op * 0x9E3779B97F4A7C15u ^ bits;
	hash = (hash ^ (uint64_t)want->a) * 0xBF58476D1CE4E5B9u;
	hash = (hash ^ (uint64_t)want->b << 16 ^ (uint64_t)want->c << 32) * 0x94D049BB133111EBu;
	for (uint64_t i = hash >> 40;; i++) {
		uint16_t *at = &graph->bucket[i % NEAP__CELL_BUCKETS];
		const struct neap__cell_node *node = *at ? &graph->node[*at - 1] : NULL;
		if (node && node->op == want->op && node->a == want->a && node->b == want->b &&
			node->c == want->c && neap__double_bits(node->value) == bits)
			return *at - 1;
		if (node)
			continue;
		if (graph->count == NEAP__CELL_NODES) {
			graph->is_full = 1;
			return 0;
		}
		graph->node[graph->count] = *want;
		*at = (uint16_t)(graph->count + 1);
		return graph->count++;
	}
}

int neap__cell_const(struct neap__cell_graph *graph, double value)
{
	return find(graph, &(struct neap__cell_node){.op = NEAP__CELL_CONST, .value = value});
}

/* 1: the node is this constant. */
static int is(const struct neap__cell_graph *graph, int node, double value)
{
	return graph->node[node].op == NEAP__CELL_CONST && graph->node[node].value == value;
}

/* A simpler node that has the same value; -1: there is none. */
static int simpler(struct neap__cell_graph *g, enum neap__cell_op op, int a, int b, int c)
{
	int zero_a = is(g, a, 0), zero_b = is(g, b, 0);

	switch (op) {
	case NEAP__CELL_ADD:
		return zero_a ? b : zero_b ? a : -1;
	case NEAP__CELL_SUB:
		return zero_b ? a : zero_a ? neap__cell_add(g, NEAP__CELL_NEG, b, 0, 0) : -1;
	case NEAP__CELL_MUL:
		return zero_a || is(g, b, 1) ? a : zero_b || is(g, a, 1) ? b : -1;
	case NEAP__CELL_DIV:
		return zero_a || is(g, b, 1) ? a : -1;
	case NEAP__CELL_NEG:
		return g->node[a].op == NEAP__CELL_NEG ? g->node[a].a : -1;
	case NEAP__CELL_SELECT:
	case NEAP__CELL_BLEND:
		return b == c || is(g, a, 1) ? b : zero_a ? c : -1;
	default:
		return -1;
	}
}

int neap__cell_add(struct neap__cell_graph *graph, enum neap__cell_op op, int a, int b, int c)
{
	int operands = neap__cell_operands(op), same;
	const int operand[] = {a, b, c};
	int constants = 0;

	for (int i = 0; i < operands; i++)
		constants += graph->node[operand[i]].op == NEAP__CELL_CONST;
	/* A constant condition remains a node: its spikes are not constant in a smooth net. */
	if (operands && constants == operands && op > NEAP__CELL_RESET_NOW)
		return neap__cell_const(graph, neap__cell_value(op, graph->node[a].value,
						       graph->node[b].value, graph->node[c].value));
	if (operands > 0 && (same = simpler(graph, op, a, b, c)) >= 0)
		return same;
	if ((op == NEAP__CELL_ADD || op == NEAP__CELL_MUL) && a > b) {
		int last = a;
		a = b;
		b = last;
	}
	return find(graph, &(struct neap__cell_node){.op = op, .a = a, .b = b, .c = c});
}
