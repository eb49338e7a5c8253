/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cell_blocks.c: the interpreter of cell files (cell_blocks.h). One instruction goes through all
 * units of a block, so that the time to decode it is shared and its loop is vectorised. Compiled
 * parts (cell_text.c) are called instead.
 */
#include "nn/cellfile/cell_blocks.h"

#include <math.h>
#include <string.h>

#define FUNCTION(name)                                                                             \
	static inline real real_##name(real x)                                                     \
	{                                                                                          \
		return sizeof(real) == sizeof(double) ? (real)name((double)x)                      \
						      : (real)name##f((float)x);                   \
	}
FUNCTION(exp)
FUNCTION(log)
FUNCTION(sqrt)
FUNCTION(tanh)
FUNCTION(sin)
FUNCTION(cos)
#undef FUNCTION

/* The functions that compiled code calls, which are therefore the interpreter's. */
typedef real (*function)(real);
#define NEAP_X(op, name) real_##name,
static const function functions[NEAP__CELL_FUNCTIONS] = {NEAP__CELL_FUNCTION_TABLE(NEAP_X)};
#undef NEAP_X

/* A part, as cell_text.c writes it. */
typedef void (*compiled_part)(const real *const *from, real *const *to, const real *constants,
	const function *functions, real theta, long units);

/* The iterations are independent: a result replaces at most the operand of the same unit. */
#ifdef __clang__
#define INDEPENDENT /* it checks at run time that the arrays do not overlap */
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif
#define EACH(expression)                                                                           \
	INDEPENDENT for (int i = 0; i < n; i++) to[i] = (expression);                              \
	break

/* Spikes from the spike condition x. */
static void spikes(real *to, const real *x, int n, const struct neap__at *at)
{
	const struct neap__layer *layer = at->layer;
	struct neap__slope slope = neap__slope(layer);

	if (layer->smooth)
		at->net->kernels->integral[layer->surrogate](to, x, n, &slope);
	for (int i = 0; i < n && !layer->smooth; i++)
		to[i] = x[i] > slope.theta;
}

static void run(enum neap__cell_op op, real *to, const real *a, const real *b, const real *c, int n)
{
	switch (op) {
	case NEAP__CELL_CONST:
		EACH(a[i]);
	case NEAP__CELL_ADD:
		EACH(a[i] + b[i]);
	case NEAP__CELL_SUB:
		EACH(a[i] - b[i]);
	case NEAP__CELL_MUL:
		EACH(a[i] * b[i]);
	case NEAP__CELL_DIV:
		EACH(a[i] / b[i]);
	case NEAP__CELL_NEG:
		EACH(-a[i]);
	case NEAP__CELL_MIN:
		EACH(a[i] < b[i] ? a[i] : b[i]);
	case NEAP__CELL_MAX:
		EACH(a[i] > b[i] ? a[i] : b[i]);
	case NEAP__CELL_GT:
		EACH(a[i] > b[i] ? (real)1 : (real)0);
	case NEAP__CELL_GE:
		EACH(a[i] >= b[i] ? (real)1 : (real)0);
	case NEAP__CELL_SELECT:
		EACH(a[i] != 0 ? b[i] : c[i]);
	case NEAP__CELL_BLEND:
		EACH(a[i] == 0 ? c[i] : a[i] == 1 ? b[i] : a[i] * b[i] + (1 - a[i]) * c[i]);
	case NEAP__CELL_ABS:
		EACH(a[i] < 0 ? -a[i] : a[i]);
	case NEAP__CELL_EXP:
		EACH(real_exp(a[i]));
	case NEAP__CELL_LOG:
		EACH(real_log(a[i]));
	case NEAP__CELL_SQRT:
		EACH(real_sqrt(a[i]));
	case NEAP__CELL_TANH:
		EACH(real_tanh(a[i]));
	case NEAP__CELL_SIGMOID:
		EACH(1 / (1 + real_exp(-a[i])));
	case NEAP__CELL_SIN:
		EACH(real_sin(a[i]));
	case NEAP__CELL_COS:
		EACH(real_cos(a[i]));
	default: /* leaves are rows, and spikes are above */
		break;
	}
}

static const real *operand(uint16_t code, const real (*registers)[NEAP__CELL_BLOCK],
	const real *constants, const struct neap__cell_block *block)
{
	int number = code & NEAP__CELL_NUMBER_BITS;

	return code < NEAP__CELL_CONSTANT ? registers[number]
	       : code < NEAP__CELL_ROW	  ? constants + (size_t)number * NEAP__CELL_BLOCK
					  : block->from[number];
}

static void interpret(const struct neap__cell_list *list, const struct neap__cell_block *block)
{
	real registers[NEAP__CELL_REGISTERS][NEAP__CELL_BLOCK];
	const struct neap__at *at = block->at;
	const real(*const_registers)[NEAP__CELL_BLOCK] = (const real(*)[NEAP__CELL_BLOCK])registers;
	const real *constants = at->layer->program->constants;
	const real *frozen = block->from[NEAP__CELL_FROM_FROZEN];
	int n = block->count;

	for (int k = 0; k < list->count; k++) {
		const struct neap__cell_instruction *i = &list->instruction[k];
		const real *a = operand(i->a, const_registers, constants, block);
		if (i->op == NEAP__CELL_OPS && !block->to[i->to])
			continue; /* a row of the tape, of a step without one */
		if (i->op == NEAP__CELL_OPS)
			memcpy(block->to[i->to], a, (size_t)n * sizeof *a);
		else if (i->op == NEAP__CELL_RESET_NOW && frozen)
			memcpy(registers[i->to], frozen, (size_t)n * sizeof *frozen);
		else if (i->op == NEAP__CELL_NOW || i->op == NEAP__CELL_RESET_NOW)
			spikes(registers[i->to], a, n, at);
		else
			run((enum neap__cell_op)i->op, registers[i->to], a,
				operand(i->b, const_registers, constants, block),
				operand(i->c, const_registers, constants, block), n);
	}
}

void neap__cell_block_run(enum neap__cell_part part, const struct neap__cell_block *block)
{
	const struct neap__layer *layer = block->at->layer;
	const struct neap__cell_program *p = layer->program;
	const struct neap__cell_list *lists[] = {&p->step, &p->step, &p->condition, &p->back};
	compiled_part compiled;

	if (!p->compiled[part]) {
		interpret(lists[part], block);
		return;
	}
	memcpy(&compiled, &p->compiled[part],
		sizeof compiled); /* C has no cast from data to functions */
	compiled(block->from, block->to, p->constants, functions, (real)layer->threshold,
		block->count);
}
