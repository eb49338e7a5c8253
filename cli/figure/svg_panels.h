/* SPDX-License-Identifier: Apache-2.0 */
/*
 * svg_panels.h: line figures as SVG: panels above each other that share the axis to the right,
 * series in colours that colour-blind readers tell apart (Okabe and Ito), solid or dashed, with a
 * legend. A panel carries class "panel", a series class "series" and its name, a label of an axis
 * "tick-x" or "tick-y", so that programs can read a figure back.
 */
#ifndef NEAP_CLI_SVG_PANELS_H
#define NEAP_CLI_SVG_PANELS_H

#include "base/text.h"
#include <stddef.h>

struct cli_series {
	const char *name;    /* of what is drawn: "train_loss" */
	int colour;	     /* 0, 1, ...: the same for all series of one run */
	int dashed;	     /* 1: dashed, with rings; else solid, with discs */
	const double *x, *y; /* borrowed; pairs that are not finite are left out */
	size_t count;
};

struct cli_panel {
	const char *title; /* of the axis upwards, with its unit */
	int log;	   /* 1: logarithmic; values that are not above 0 are left out */
	int zero;	   /* 1: the axis begins at 0 */
	const struct cli_series *series;
	int count;
};

/* A line of the legend. */
struct cli_legend {
	const char *label;
	int colour; /* below 0: black, for what dashes mean */
	int dashed;
};

/* Writes the figure. A panel without a point is left out. 0, or the error of the text. */
int cli_svg_panels(struct neap__text *out, const char *title, const char *x_title,
	const struct cli_panel *panels, int npanels, const struct cli_legend *legend, int nlegend);

#endif
