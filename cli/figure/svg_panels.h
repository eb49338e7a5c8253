/* SPDX-License-Identifier: Apache-2.0 */
/*
 * svg_panels.h: figures as SVG: panels above each other that share the axis to the right, of series
 * in colours that colour-blind readers tell apart (Okabe and Ito), solid or dashed, or of a grid of
 * cells, with a legend. A panel carries class "panel", a series class "series" and its name, a
 * label of an axis "tick-x" or "tick-y", so that programs can read a figure back.
 */
#ifndef NEAP_CLI_SVG_PANELS_H
#define NEAP_CLI_SVG_PANELS_H

#include "cell_grid.h"
#include "base/text.h"
#include <stddef.h>

enum { CLI_GREY = 7 }; /* a colour for what is not told apart */

struct cli_series {
	const char *name;    /* of what is drawn: "train_loss" */
	int colour;	     /* 0, 1, ...: the same for all series of one run; CLI_GREY */
	int dashed;	     /* 1: dashed, with rings; else solid, with discs */
	const double *x, *y; /* borrowed; pairs that are not finite are left out */
	size_t count;
	int plain; /* 1: a thinner line, and no marks */
};

struct cli_panel {
	const char *title; /* of the axis upwards, with its unit */
	int log;	   /* 1: logarithmic; values that are not above 0 are left out */
	int zero;	   /* 1: the axis begins at 0 */
	const struct cli_series *series;
	int count;
	/* Not NULL: a grid in place of series, from unit 0 up, from one x to the other. */
	const struct cli_grid *grid;
	double grid_from, grid_end;
};

enum { CLI_SCALE = -2 };

/* A line of the legend. */
struct cli_legend {
	const char *label;
	int colour; /* below 0: black, for what dashes mean; CLI_SCALE: colours of a grid */
	int dashed;
};

/*
 * Writes the figure. A panel without a point is left out. The axis to the right fits points and
 * grids. 0, or the error of the text.
 */
int cli_svg_panels(struct neap__text *out, const char *title, const char *x_title,
	const struct cli_panel *panels, int npanels, const struct cli_legend *legend, int nlegend);

#endif
