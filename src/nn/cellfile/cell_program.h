/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cell_program.h: the cell of a layer that a cell file describes. From the text, the values of its
 * parameters and the net's options come three lists of instructions over rows of units: the step,
 * the spike condition from a tape, and the backward step from a tape. cell_steps.c runs them: the
 * interpreter does or, if the net's options ask for it, machine code that the C compiler makes.
 */
#ifndef NEAP_NN_CELLFILE_CELL_PROGRAM_H
#define NEAP_NN_CELLFILE_CELL_PROGRAM_H

#include "nn/cellfile/cell_derivative.h"
#include "nn/core/cell.h"
#include "base/text.h"

/* Rows that instructions read: of the sample, or of a block of units. */
enum {
	NEAP__CELL_FROM_STATE = 0,
	NEAP__CELL_FROM_DSTATE = NEAP__CELL_STATES,
	NEAP__CELL_FROM_IN = 2 * NEAP__CELL_STATES,
	NEAP__CELL_FROM_LAST,
	NEAP__CELL_FROM_RESET_LAST,
	NEAP__CELL_FROM_NOW,
	NEAP__CELL_FROM_FROZEN, /* spikes that a detached reset sees in a gradient check */
	NEAP__CELL_FROM_HEIGHT,
	NEAP__CELL_FROM_DS,
	NEAP__CELL_FROM_TAPE,
	NEAP__CELL_FROM = NEAP__CELL_FROM_TAPE + NEAP__CELL_STATES + 3
};

/* Rows that they write: states or their gradients, then these. */
enum {
	NEAP__CELL_TO_CONDITION = NEAP__CELL_STATES,
	NEAP__CELL_TO_IN = NEAP__CELL_TO_CONDITION,
	NEAP__CELL_TO_LAST,
	NEAP__CELL_TO_TAPE,
	NEAP__CELL_TO = NEAP__CELL_TO_TAPE + NEAP__CELL_STATES + 3
};

enum {
	/* Units that an instruction goes through: registers of a block stay in the first cache. */
	NEAP__CELL_BLOCK = 128,
	/* Units that a call of compiled code goes through: the rows of a block stay there. */
	NEAP__CELL_WIDE = 512,
	NEAP__CELL_REGISTERS = 64
};

/* What an operand is, in its upper bits; the lower ones have its number. */
enum {
	NEAP__CELL_REGISTER = 0,
	NEAP__CELL_CONSTANT = 1 << 12,
	NEAP__CELL_ROW = 2 << 12,
	NEAP__CELL_NUMBER_BITS = (1 << 12) - 1
};

/* An operation; NEAP__CELL_CONST copies a to the register, NEAP__CELL_OPS to the row written. */
struct neap__cell_instruction {
	uint16_t op, to, a, b, c;
};

struct neap__cell_list {
	int count;
	uint64_t reads; /* bit r: row r of NEAP__CELL_FROM is read */
	struct neap__cell_instruction *instruction;
};

/* What is run of a program: the step without a tape and with one, and the other two lists. */
enum neap__cell_part {
	NEAP__CELL_STEP,
	NEAP__CELL_RECORD,
	NEAP__CELL_CONDITION,
	NEAP__CELL_BACK,
	NEAP__CELL_PARTS
};

/* Functions of the C library in cells, in the order of their operations: cell_blocks.c. */
#define NEAP__CELL_FUNCTION_TABLE(X) X(EXP, exp) X(LOG, log) X(TANH, tanh) X(SIN, sin) X(COS, cos)
#define NEAP_X(op, name) NEAP__CELL_CALL_##op,
enum { NEAP__CELL_FUNCTION_TABLE(NEAP_X) NEAP__CELL_FUNCTIONS };
#undef NEAP_X

/* x = m x + b in: the step while no unit spikes, x[0] the spike condition less that at rest. */
struct neap__cell_linear {
	int is_known; /* of one or two states, and stable */
	double m[2][2], b[2];
	double distance; /* of the threshold from the spike condition at rest */
};

struct neap__cell_program {
	struct neap__cell cell; /* of the layer */
	struct neap__cell_code code[2];
	char name[NEAP__CELL_NAME + 8], where[256]; /* name: "lif.cell", unlike that of lif */
	char state[NEAP__CELL_STATES][NEAP__CELL_NAME];
	char *text; /* one line, as specifications have it */
	int nstates, nparams;
	struct neap__cell_param param[NEAP__CELL_PARAMS];
	struct neap__cell_list step, condition, back;
	int nconstants;
	void *constants; /* [nconstants][NEAP__CELL_BLOCK] in the net's precision */
	struct neap__cell_cut cut;
	struct neap__cell_linear linear;
	int takes_last;	   /* the step uses spikes of the step before */
	int returns_last;  /* and they have a gradient */
	int condition_row; /* of the tape's rows; -1: `condition` computes it */
	/* The state after a step that is the spike condition, so that it has no row of its own; -1
	 */
	int condition_state;
	/* Functions of the compiled parts, of the type that cell_blocks.c has; NULL: interpreted.
	 */
	void *compiled[NEAP__CELL_PARTS];
};

/* 1: the name of a layer is a cell file, or the text of one. */
int neap__cell_program_named(const char *word, int length);
/* 1: a layer of the specification is a cell file that would be read. Models contain texts only, so
 * that opening one reads no other file. */
int neap__cell_program_reads(const char *spec);
/* The program of such a name, in memory of the net. 0, NEAP_EUSAGE or -ENOMEM. */
int neap__cell_program_open(
	struct neap__cell_program **out, struct neap_net *net, const char *word, int length);
/* Sets a parameter: 1, 0 if the cell has none of this name, or NEAP_EUSAGE. */
int neap__cell_program_set(struct neap__cell_program *program, const char *name, int name_length,
	const char *value, int length);
/* Derives, checks and writes the lists, once the layer's keys are known. */
int neap__cell_program_build(struct neap_net *net, struct neap__layer *layer);
/* Fills in net->whole_spec, once all layers are known. 0 or -ENOMEM. */
int neap__cell_program_whole(struct neap_net *net);

/* cell_linear.c: fills in a program's linear system, for the initial weights. */
void neap__cell_linearise(struct neap__cell_linear *linear, const struct neap__cell_source *source);

/* cell_lists.c: writes the lists of a program. 0, NEAP_EUSAGE or -ENOMEM. */
int neap__cell_lists_make(struct neap_net *net, struct neap__cell_program *program,
	const struct neap__cell_source *source, const struct neap__cell_derivative *derivative);

/*
 * cell_text.c: writes the parts of a program as C functions of these names, for the net's
 * precision. The text consists of this file's words and of numbers of rows, constants and
 * operations: names and numbers of the cell file are not in it. 0 or -ENOMEM.
 */
extern const char *const neap__cell_part_names[NEAP__CELL_PARTS];
int neap__cell_text(
	struct neap__text *text, const struct neap__cell_program *program, int is_double);
/*
 * cell_compile.c: compiles the programs of a net, before its first batch. 0, -ENOMEM, or
 * NEAP_EUSAGE: no layer is a cell file, or as in compiled_code.h.
 */
int neap__cells_compile(struct neap_net *net);

/* cell_steps.c: fills in the functions of a program's code. */
void neap__cell_steps_float(struct neap__cell_code *code, int is_sparse);
void neap__cell_steps_double(struct neap__cell_code *code, int is_sparse);

#endif
