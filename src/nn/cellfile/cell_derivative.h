/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cell_derivative.h: the backward pass of a step by reverse-mode differentiation of its graph. The
 * nodes of the derivative join the graph, so that they share subexpressions with the step. At the
 * spike condition the derivative is NEAP__CELL_HEIGHT.
 */
#ifndef NEAP_NN_CELLFILE_CELL_DERIVATIVE_H
#define NEAP_NN_CELLFILE_CELL_DERIVATIVE_H

#include "nn/cellfile/cell_source.h"

struct neap__cell_derivative {
	int in;			      /* node of the gradient with respect to `in` */
	int last;		      /* of the spikes of the step before; CONST 0: none */
	int state[NEAP__CELL_STATES]; /* of the states before the step */
	int condition;		      /* what the spikes hand on to the spike condition */
	int primal;		      /* 1 + the last node of the step itself */
};

/* 0 or NEAP_EUSAGE: the graph is full. */
int neap__cell_differentiate(
	struct neap__cell_derivative *derivative, struct neap__cell_source *source);

/*
 * What the tape of a step holds: the fewest numbers per unit from which the derivative can be
 * computed (a minimum cut of the graph between the inputs of the step and what the derivative
 * uses). Spikes of this step are known in addition.
 */
struct neap__cell_cut {
	int count, node[NEAP__CELL_STATES + 3]; /* rows */
	int last;				/* 1: spikes of the step before too */
	/*
	 * 1: the row is the spike condition, and its value matters only for units whose surrogate
	 * derivative is not 0: the tape may hold those units alone.
	 */
	int is_sparse;
};

/* `smooth`: spikes are numbers, which take as much as others. */
void neap__cell_cut_make(struct neap__cell_cut *cut, const struct neap__cell_source *source,
	const struct neap__cell_derivative *derivative, int smooth);

/*
 * Compares the derivative with central differences at random points, the spikes being smooth. 0, or
 * NEAP_EUSAGE with a line that begins with `where`.
 */
int neap__cell_derivative_check(const struct neap__cell_source *source,
	const struct neap__cell_derivative *derivative, const char *where);

#endif
