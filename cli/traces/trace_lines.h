/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_lines.h: numbers of some units over time, as lines of so many points as a figure has room
 * for: of more steps, the least and the largest number of the steps that share a place.
 */
#ifndef NEAP_CLI_TRACE_LINES_H
#define NEAP_CLI_TRACE_LINES_H

#include "svg_panels.h"

struct cli_lines {
	int64_t steps;
	int units, places;
	double *low, *high; /* [units][places]; low > high: none yet */
	double *sum;	    /* [units] */
	double *x, *y;	    /* points of all series made */
	struct cli_series *series;
	int *order; /* [units] those in colours first */
	int *drawn; /* [coloured] ranks in that order, from the back to the front */
};

/* 0 or -ENOMEM. Freed by the other call. */
int cli_lines_make(struct cli_lines *lines, int64_t steps, int units);
void cli_lines_free(struct cli_lines *lines);
void cli_lines_add(struct cli_lines *lines, int64_t step, int unit, double value);
/*
 * Makes series[units] of all units, whose x is the step times `scale`: the `coloured` ones with the
 * largest sums in colours 0, 1, ..., by their numbers, in front of the others, which are grey. Sets
 * how many are in colours; order[i] is the unit of colour i.
 */
void cli_lines_series(struct cli_lines *lines, const char *name, double scale, int *coloured);

#endif
