/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cell_expression.h: reads expressions of a cell file. From weak to strong: comparisons (> < >= <=,
 * 1 or 0), + and -, * and /, the sign, and ^ with a whole exponent. Functions: abs, cos, decay,
 * exp, if(condition, then, else), log, max, min, sigmoid, sin, sqrt and tanh.
 */
#ifndef NEAP_NN_CELLFILE_CELL_EXPRESSION_H
#define NEAP_NN_CELLFILE_CELL_EXPRESSION_H

#include "nn/cellfile/cell_source.h"
#include "nn/cellfile/cell_words.h"

struct neap__cell_reader {
	struct neap__cell_words words;
	struct neap__cell_source *source;
	const struct neap__cell_setting *setting;
	int spike, reset; /* nodes of the spikes as expressions and resets use them */
	int has_step;	  /* a statement other than a declaration was read */
	int nested;
};

/* Reads an expression and moves behind it; fills in its node. */
int neap__cell_expression(struct neap__cell_reader *reader, int *node);

/* 1: the name is that of a function. */
int neap__cell_is_function(const char *name, int length);

/* The symbol of a name; NULL: there is none (cell_source.c). */
struct neap__cell_symbol *neap__cell_symbol_find(
	struct neap__cell_source *source, const char *name, int length);

#endif
