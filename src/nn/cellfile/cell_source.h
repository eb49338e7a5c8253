/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cell_source.h: the text of a cell file: its declarations, and its step as a graph. Statements
 * end at a line's end or at ';', and '#' begins a comment:
 *     cell NAME                               first
 *     state NAME [= NUMBER]                   a number per unit, and its value at step 0
 *     param NAME = NUMBER [in LOW..HIGH]      a constant, which a layer option may set
 *     NAME = EXPRESSION                       a new value of a state, or a local value
 *     spike EXPRESSION                        once: a unit spikes if the value is above 0
 *     reset NAME = EXPRESSION                 a new value of the units that spiked
 * The values of `in`, `dt` and `spike` are known. Before the statement `spike`, spikes are those of
 * the step before.
 */
#ifndef NEAP_NN_CELLFILE_CELL_SOURCE_H
#define NEAP_NN_CELLFILE_CELL_SOURCE_H

#include <stddef.h>
#include "nn/cellfile/cell_graph.h"

/* All chosen: several times what published neuron models need. */
enum {
	NEAP__CELL_STATES = 16,
	NEAP__CELL_PARAMS = 32,
	NEAP__CELL_SYMBOLS = 128,
	NEAP__CELL_NAME = 24,	 /* bytes of a name, its end included */
	NEAP__CELL_TEXT = 16384, /* bytes of a text */
	NEAP__CELL_NESTED = 50	 /* brackets and signs within each other */
};

struct neap__cell_param {
	char name[NEAP__CELL_NAME];
	double value, low, high; /* both included */
	int is_time;
};

struct neap__cell_state {
	char name[NEAP__CELL_NAME];
	double start; /* at step 0; what is stored is the difference from it, which is 0 then */
	int next;     /* the node of what is stored after a step */
};

/* A name that expressions may use, and the node of its value. */
struct neap__cell_symbol {
	char name[NEAP__CELL_NAME];
	int node, state; /* state: its number, or -1 */
	int is_fixed;	 /* a parameter or `in`, which is not assigned to */
};

/* What the numbers of a graph depend on in addition to the text. */
struct neap__cell_setting {
	const double *params; /* values in the order of the text; NULL: the defaults */
	double dt;	      /* seconds */
	int euler;	      /* decay(tau) is 1 - dt/tau */
	int detach;	      /* resets have no gradient */
};

struct neap__cell_source {
	char name[NEAP__CELL_NAME];
	int nstates, nparams, nsymbols;
	struct neap__cell_state state[NEAP__CELL_STATES];
	struct neap__cell_param param[NEAP__CELL_PARAMS];
	struct neap__cell_symbol symbol[NEAP__CELL_SYMBOLS];
	/* A unit spikes if the node `condition` is above the threshold. */
	int condition;
	double threshold;
	struct neap__cell_graph graph;
};

/*
 * Reads a text; `where` names it in messages ("my.cell"). 0 or NEAP_EUSAGE with a line such as
 * "my.cell:3:9: ...".
 */
int neap__cell_source_read(struct neap__cell_source *source, const char *text, const char *where,
	const struct neap__cell_setting *setting);

/*
 * Writes the text as one line without comments, ',' or ':', which the source reads as the same
 * cell: statements are separated by ';', and arguments of functions too. `to` has room for
 * strlen(text) + 1 bytes.
 */
void neap__cell_source_line(char *to, const char *text);

#endif
