/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cell_grid.h: what many units do over many steps, gathered in a grid of cells that a figure has
 * room for: memory grows neither with the steps nor with the units. A cell is one step of one unit
 * where there are few, else some of them.
 */
#ifndef NEAP_CLI_CELL_GRID_H
#define NEAP_CLI_CELL_GRID_H

#include "base/text.h"
#include <stdint.h>

struct cli_grid {
	int64_t steps;
	int units, columns, rows; /* rows from unit 0 up */
	int heat;		  /* 1: cells are means of numbers, 0: counts of spikes */
	double *sum;		  /* [rows][columns] */
	double *of;		  /* the same shape, where heat: numbers in the sum */
};

/* Where a figure draws, in pixels. */
struct cli_box {
	double left, top, width, height;
};

/* 0 or -ENOMEM. Freed by the other call. */
int cli_grid_make(struct cli_grid *grid, int64_t steps, int units, int heat);
void cli_grid_free(struct cli_grid *grid);
/* Adds a number, of a spike 1, of a unit in a step. */
void cli_grid_add(struct cli_grid *grid, int64_t step, int unit, double value);
/* The largest mean of a cell, either side of 0. */
double cli_grid_reach(const struct cli_grid *grid);
/*
 * Draws marks of spikes, darker where a cell has more; or cells in blue below 0 and in orange
 * above.
 */
void cli_grid_draw(struct neap__text *out, const struct cli_grid *grid, const struct cli_box *box);
/* The colours of a share of the reach, from -1 to 1, for a legend. */
const char *cli_grid_colour(char room[8], double share);

#endif
