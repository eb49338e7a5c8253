/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cell_graph.h: the step of a cell file as a graph of operations. A node comes after its operands.
 * Equal nodes are stored once, and nodes of constants are computed when they are added, so that
 * common subexpressions of the step and of its derivative are shared.
 */
#ifndef NEAP_NN_CELLFILE_CELL_GRAPH_H
#define NEAP_NN_CELLFILE_CELL_GRAPH_H

#include <stdint.h>

/* Leaves first. Operands are a, b and c; a leaf of several numbers has its number in a. */
enum neap__cell_op {
	NEAP__CELL_CONST,
	NEAP__CELL_STATE,      /* a state before the step */
	NEAP__CELL_IN,	       /* products with weights and the bias */
	NEAP__CELL_LAST,       /* spikes of the step before */
	NEAP__CELL_RESET_LAST, /* the same as a detached reset uses them: without a gradient */
	NEAP__CELL_HEIGHT,     /* surrogate derivative at the spike condition */
	NEAP__CELL_DS,	       /* gradient that reaches the spikes from outside the cell */
	NEAP__CELL_DSTATE,     /* gradient with respect to a state after the step */
	NEAP__CELL_LEAVES,
	NEAP__CELL_NOW = NEAP__CELL_LEAVES, /* spikes of this step; a: the spike condition */
	NEAP__CELL_RESET_NOW,		    /* the same without a gradient */
	NEAP__CELL_ADD,
	NEAP__CELL_SUB,
	NEAP__CELL_MUL,
	NEAP__CELL_DIV,
	NEAP__CELL_NEG,
	NEAP__CELL_MIN,
	NEAP__CELL_MAX,
	NEAP__CELL_GT,	   /* 1 if a > b, else 0 */
	NEAP__CELL_GE,	   /* 1 if a >= b, else 0 */
	NEAP__CELL_SELECT, /* a != 0 ? b : c */
	NEAP__CELL_BLEND,  /* a b + (1 - a) c; b or c alone if a is 1 or 0 */
	NEAP__CELL_ABS,
	NEAP__CELL_EXP,
	NEAP__CELL_LOG,
	NEAP__CELL_SQRT,
	NEAP__CELL_TANH,
	NEAP__CELL_SIGMOID,
	NEAP__CELL_SIN,
	NEAP__CELL_COS,
	NEAP__CELL_OPS
};

enum {
	NEAP__CELL_NODES = 2048, /* chosen: far more than the step of a published neuron model */
	NEAP__CELL_BUCKETS = 4096
};

struct neap__cell_node {
	enum neap__cell_op op;
	int a, b, c;
	double value; /* CONST */
};

/* All zero to begin with. */
struct neap__cell_graph {
	int count, is_full;
	struct neap__cell_node node[NEAP__CELL_NODES];
	uint16_t bucket[NEAP__CELL_BUCKETS]; /* 1 + a node; 0: empty */
};

/* How many operands an operation has. */
int neap__cell_operands(enum neap__cell_op op);

/* The k-th operand of a node. */
static inline int neap__cell_operand(const struct neap__cell_node *node, int k)
{
	return k == 0 ? node->a : k == 1 ? node->b : node->c;
}

/* The value of an operation behind NEAP__CELL_RESET_NOW. */
double neap__cell_value(enum neap__cell_op op, double a, double b, double c);

/* The node of an operation; 0 and is_full once the graph has no room. Unused operands are 0. */
int neap__cell_add(struct neap__cell_graph *graph, enum neap__cell_op op, int a, int b, int c);
int neap__cell_const(struct neap__cell_graph *graph, double value);

#endif
