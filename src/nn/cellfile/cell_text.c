/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cell_text.c: the lists of a cell file's program as C functions (cell_program.h). A function goes
 * through the units in one loop, which the compiler vectorises. It cannot vectorise calls of the C
 * library, so that a list with calls is divided into stages: a stage computes the operations whose
 * operands are known, then come the loops with the calls that these make possible, then the next
 * stage; numbers that pass from one to the next are in arrays of a few units. Every operation is
 * the same as the interpreter's, on numbers of the same precision and rounded for itself, so that
 * the results have the same bits. Constants and the functions of the C library are arguments: the
 * compiler cannot compute with the former, nor replace the latter.
 */
#include "nn/cellfile/cell_program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
	MOST = NEAP__CELL_NODES + NEAP__CELL_TO, /* instructions of a list */
	ARRAY_BYTES = 65536,			 /* of all arrays of a function; chosen */
	UNITS_LEAST = 16			 /* of an array: a vector of AVX-512 in float */
};

const char *const neap__cell_part_names[NEAP__CELL_PARTS] = {
	"cell_step", "cell_record", "cell_condition", "cell_back"};

/* What an operand is: a value is the instruction that computes it. */
struct cell_operand {
	enum { VALUE, CONSTANT, ROW } kind;
	int number;
};

struct writer {
	struct neap__text *text;
	const struct neap__cell_instruction *instruction;
	int count, stages, with_tape;
	struct cell_operand operand[MOST][3];
	int stage[MOST];       /* from which on a value is known */
	uint8_t needed[MOST];  /* 1: a value that is stored, or one that leads there */
	uint8_t crosses[MOST]; /* 1: a value that is in an array */
	uint8_t row[NEAP__CELL_FROM], constant[NEAP__CELL_CONSTANT];
};

static int called(int op)
{
	switch (op) {
#define NEAP_X(op, name)                                                                           \
	case NEAP__CELL_##op:                                                                      \
		return NEAP__CELL_CALL_##op;
		NEAP__CELL_FUNCTION_TABLE(NEAP_X)
#undef NEAP_X
	case NEAP__CELL_SIGMOID:
		return NEAP__CELL_CALL_EXP;
	default:
		return -1;
	}
}

static int is_store(const struct neap__cell_instruction *i)
{
	return i->op == NEAP__CELL_OPS;
}

/* Rows of the tape are not written in a step without one. */
static int is_left_out(const struct writer *w, const struct neap__cell_instruction *i)
{
	return i->to >= NEAP__CELL_TO_TAPE && !w->with_tape;
}

static int operands_of(const struct neap__cell_instruction *i)
{
	int op = i->op;

	if (is_store(i) || op == NEAP__CELL_CONST)
		return 1;
	return neap__cell_operands((enum neap__cell_op)op);
}

/* Finds what operands are, and the stages of values. */
static void find_operands(struct writer *w)
{
	struct cell_operand now[NEAP__CELL_REGISTERS] = {{0}};

	for (int k = 0; k < w->count; k++) {
		const struct neap__cell_instruction *i = &w->instruction[k];
		const uint16_t code[] = {i->a, i->b, i->c};
		w->stage[k] = 0;
		w->needed[k] = is_store(i) && !is_left_out(w, i);
		for (int o = 0; o < operands_of(i); o++) {
			int number = code[o] & NEAP__CELL_NUMBER_BITS;
			struct cell_operand *s = &w->operand[k][o];
			*s = code[o] < NEAP__CELL_CONSTANT ? now[number]
			     : code[o] < NEAP__CELL_ROW	   ? (struct cell_operand){CONSTANT, number}
							   : (struct cell_operand){ROW, number};
			if (s->kind == VALUE && w->stage[s->number] > w->stage[k])
				w->stage[k] = w->stage[s->number];
		}
		w->stage[k] += called(i->op) >= 0;
		if (!is_store(i))
			now[i->to] = i->op == NEAP__CELL_CONST ? w->operand[k][0]
							       : (struct cell_operand){VALUE, k};
	}
}

/* Finds which values are needed, and how many stages these have. */
static void find_needed(struct writer *w)
{
	w->stages = 1;
	for (int k = w->count - 1; k >= 0; k--)
		for (int o = 0; w->needed[k] && o < operands_of(&w->instruction[k]); o++)
			if (w->operand[k][o].kind == VALUE)
				w->needed[w->operand[k][o].number] = 1;
	for (int k = 0; k < w->count; k++)
		if (w->needed[k] && w->stage[k] >= w->stages)
			w->stages = w->stage[k] + 1;
}

/* Finds the rows and constants that are read, and the values that a later stage reads. */
static void find_reads(struct writer *w)
{
	for (int k = 0; k < w->count; k++) {
		const struct neap__cell_instruction *i = &w->instruction[k];
		int at = is_store(i) ? w->stages - 1 : w->stage[k];
		w->crosses[k] |= w->needed[k] && called(i->op) >= 0;
		for (int o = 0; w->needed[k] && o < operands_of(i); o++) {
			struct cell_operand s = w->operand[k][o];
			if (s.kind == ROW)
				w->row[s.number] = 1;
			else if (s.kind == CONSTANT)
				w->constant[s.number] = 1;
			else
				w->crosses[s.number] |= w->stage[s.number] < at;
		}
	}
}

static void resolve(struct writer *w)
{
	find_operands(w);
	find_needed(w);
	find_reads(w);
}

#define ADD(...) neap__text_add(w->text, __VA_ARGS__)

/* An operand in a loop over the units i of a stage, or in one with calls. */
static void write_operand(struct writer *w, struct cell_operand s, int stage, int in_call)
{
	if (s.kind == CONSTANT)
		ADD("k%d", s.number);
	else if (s.kind == ROW)
		ADD(in_call ? "from%d[j + i]" : "x%d", s.number);
	else
		ADD(w->stage[s.number] == stage && !in_call &&
					called(w->instruction[s.number].op) < 0
				? "v%d"
				: "t%d[i]",
			s.number);
}

/* Text of an operation: A, B and C are its operands. */
static const char *const formula[NEAP__CELL_OPS] = {
	[NEAP__CELL_NOW] = "A > theta ? (R)1 : (R)0",
	[NEAP__CELL_RESET_NOW] = "A > theta ? (R)1 : (R)0",
	[NEAP__CELL_ADD] = "A + B",
	[NEAP__CELL_SUB] = "A - B",
	[NEAP__CELL_MUL] = "A * B",
	[NEAP__CELL_DIV] = "A / B",
	[NEAP__CELL_NEG] = "-A",
	[NEAP__CELL_MIN] = "A < B ? A : B",
	[NEAP__CELL_MAX] = "A > B ? A : B",
	[NEAP__CELL_GT] = "A > B ? (R)1 : (R)0",
	[NEAP__CELL_GE] = "A >= B ? (R)1 : (R)0",
	[NEAP__CELL_SELECT] = "A != 0 ? B : C",
	[NEAP__CELL_BLEND] = "blend(A, B, C)",
	[NEAP__CELL_ABS] = "A < 0 ? -A : A",
	[NEAP__CELL_SQRT] = "root(A)",
};

static void write_value(struct writer *w, int k, int stage)
{
	ADD("\t\t\tconst R v%d = ", k);
	for (const char *c = formula[w->instruction[k].op]; *c; c++)
		if (*c >= 'A' && *c <= 'C')
			write_operand(w, w->operand[k][*c - 'A'], stage, 0);
		else
			ADD("%c", *c);
	ADD(w->crosses[k] ? ";\n\t\t\tt%d[i] = v%d;\n" : ";\n", k, k);
}

/* 1: the stage computes or stores this in its loop without calls. */
static int is_in_stage(const struct writer *w, int k, int stage)
{
	const struct neap__cell_instruction *i = &w->instruction[k];

	return w->needed[k] && called(i->op) < 0 &&
	       (is_store(i) ? w->stages - 1 : w->stage[k]) == stage;
}

static void write_stage(struct writer *w, int stage)
{
	uint8_t row[NEAP__CELL_FROM] = {0};

	for (int k = 0; k < w->count; k++)
		for (int o = 0; is_in_stage(w, k, stage) && o < operands_of(&w->instruction[k]);
			o++)
			if (w->operand[k][o].kind == ROW)
				row[w->operand[k][o].number] = 1;
	ADD("\t\tEACH (long i = 0; i < m; i++) {\n");
	/* All rows are read before the first is written, which may be one of them. */
	for (int r = 0; r < NEAP__CELL_FROM; r++)
		if (row[r])
			ADD("\t\t\tconst R x%d = from%d[j + i];\n", r, r);
	for (int k = 0; k < w->count; k++)
		if (is_in_stage(w, k, stage) && !is_store(&w->instruction[k]))
			write_value(w, k, stage);
	for (int k = 0; k < w->count; k++)
		if (is_in_stage(w, k, stage) && is_store(&w->instruction[k])) {
			ADD("\t\t\tto%d[j + i] = ", w->instruction[k].to);
			write_operand(w, w->operand[k][0], stage, 0);
			ADD(";\n");
		}
	ADD("\t\t}\n");
}

/* The calls whose arguments are known after a stage. */
static void write_calls(struct writer *w, int stage)
{
	for (int k = 0; k < w->count; k++) {
		int op = w->instruction[k].op;
		if (!w->needed[k] || called(op) < 0 || w->stage[k] != stage + 1)
			continue;
		ADD("\t\tfor (long i = 0; i < m; i++)\n\t\t\tt%d[i] = f[%d](%s", k, called(op),
			op == NEAP__CELL_SIGMOID ? "-" : "");
		write_operand(w, w->operand[k][0], stage, 1);
		ADD(");\n");
		if (op == NEAP__CELL_SIGMOID)
			ADD("\t\tEACH (long i = 0; i < m; i++)\n\t\t\tt%d[i] = 1 / (1 + t%d[i]);\n",
				k, k);
	}
}

/* Units of the arrays; 0: there are no arrays. */
static int array_units(const struct writer *w, int is_double)
{
	int arrays = 0, units;

	for (int k = 0; k < w->count; k++)
		arrays += w->crosses[k];
	if (!arrays)
		return 0;
	units = ARRAY_BYTES / (arrays * (is_double ? 8 : 4)) / UNITS_LEAST * UNITS_LEAST;
	return units < UNITS_LEAST	  ? UNITS_LEAST
	       : units > NEAP__CELL_BLOCK ? NEAP__CELL_BLOCK
					  : units;
}

static void write_function(struct writer *w, const char *name, int is_double)
{
	ADD("\nvoid %s(const R *const *from, R *const *to, const R *k, F const *f, R theta, long "
	    "n)\n"
	    "{\n",
		name);
	for (int r = 0; r < NEAP__CELL_FROM; r++)
		if (w->row[r])
			ADD("\tconst R *from%d = from[%d];\n", r, r);
	for (int i = 0; i < w->count; i++)
		if (is_store(&w->instruction[i]) && w->needed[i])
			ADD("\tR *to%d = to[%d];\n", w->instruction[i].to, w->instruction[i].to);
	for (int c = 0; c < NEAP__CELL_CONSTANT; c++)
		if (w->constant[c])
			ADD("\tconst R k%d = k[%d];\n", c, c * NEAP__CELL_BLOCK);
	int units = array_units(w, is_double);
	for (int k = 0; k < w->count; k++)
		if (w->crosses[k])
			ADD("\tR t%d[%d];\n", k, units);
	if (units)
		ADD("\tfor (long j = 0; j < n; j += %d) {\n"
		    "\t\tlong m = n - j < %d ? n - j : %d;\n",
			units, units, units);
	else
		ADD("\t{\n\t\tconst long j = 0, m = n;\n");
	for (int stage = 0; stage < w->stages; stage++) {
		write_stage(w, stage);
		write_calls(w, stage);
	}
	ADD("\t}\n}\n");
}

static void write_part(struct writer *w, const struct neap__cell_program *p,
	enum neap__cell_part part, int is_double)
{
	const struct neap__cell_list *lists[] = {&p->step, &p->step, &p->condition, &p->back};

	memset(w->crosses, 0, sizeof w->crosses);
	memset(w->row, 0, sizeof w->row);
	memset(w->constant, 0, sizeof w->constant);
	w->instruction = lists[part]->instruction;
	w->count = lists[part]->count;
	w->with_tape = part != NEAP__CELL_STEP;
	resolve(w);
	write_function(w, neap__cell_part_names[part], is_double);
}

/* What all texts begin with. Excess precision would change roundings. */
static const char head[] =
	"/* The step of a cell file and its derivative, generated by neap; cell_text.c. */\n"
	"#if __FLT_EVAL_METHOD__ != 0 && __FLT_EVAL_METHOD__ != 16\n"
	"#error this processor rounds intermediate results differently\n"
	"#endif\n"
	"#ifdef __clang__\n"
	"#define EACH _Pragma(\"clang loop vectorize(assume_safety)\") for\n"
	"#else\n"
	"#define EACH _Pragma(\"GCC ivdep\") for\n"
	"#endif\n"
	"typedef %s R;\n"
	"typedef R (*F)(R);\n"
	"static inline R root(R a) { return %s(a); }\n"
	"static inline R blend(R a, R b, R c)\n"
	"{\n"
	"\tR both = a * b + (1 - a) * c;\n"
	"\treturn a == 0 ? c : a == 1 ? b : both;\n"
	"}\n";

int neap__cell_text(
	struct neap__text *text, const struct neap__cell_program *program, int is_double)
{
	struct writer *w = calloc(1, sizeof *w);

	if (!w)
		return -ENOMEM;
	w->text = text;
	ADD(head, is_double ? "double" : "float", is_double ? "__builtin_sqrt" : "__builtin_sqrtf");
	for (int part = 0; part < NEAP__CELL_PARTS; part++)
		write_part(w, program, (enum neap__cell_part)part, is_double);
	free(w);
	return text->error;
}
