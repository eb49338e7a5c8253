/* SPDX-License-Identifier: Apache-2.0 */
/*
 * figure.h: figures of measured and planned points as SVG: panels above each other, each with a
 * legend. Every strategy has one colour and one mark in all of them (palette.c). A panel with more
 * than five strategies is drawn as several with the same axes, so that lines can be told apart.
 *
 *     neap__figure_begin(&f, "memory");
 *     neap__figure_panel(&f, "Peak", "steps", "MiB", NEAP__LOG_X | NEAP__LOG_Y);
 *     neap__figure_series(&f, "double", 0, NULL, NEAP__MARKS);
 *     neap__figure_xy(&f, x, y);
 *     neap__figure_end(&f, folder, png);
 */
#ifndef NEAP_STUDY_FIGURE_H
#define NEAP_STUDY_FIGURE_H

#include <stddef.h>
#include "base/text.h"

enum { NEAP__LOG_X = 1, NEAP__LOG_Y = 2, NEAP__ZERO_Y = 4 /* the axis begins at 0 */ };

/* How a series looks: marks, a line, or both. */
enum { NEAP__MARKS = 1, NEAP__LINE = 2, NEAP__DASHED = 4, NEAP__RING = 8 /* around a mark */ };

struct neap__shade {
	const char *color; /* "#rrggbb" */
	int mark;	   /* row of the table in marks.c */
};
/* Of the strategy or other series `name`; without one (NULL) the one of number `index`. */
struct neap__shade neap__shade_of(const char *name, int index);
/* A mark at a place, with so many pixels from its middle to its rim. */
void neap__mark_draw(
	struct neap__text *out, struct neap__shade shade, double x, double y, double size);

struct neap__figure_line {
	struct neap__shade shade;
	char label[48]; /* "": not in the legend */
	int look, panel;
	size_t first, count; /* points */
};

struct neap__figure_panel {
	char title[120], x[48], y[48];
	int flags;
};

enum { NEAP__PANELS_MOST = 8, NEAP__LINES_MOST = 256 };

struct neap__figure {
	char name[64];
	char title[600]; /* the finding, above the panels; "": none */
	struct neap__figure_panel panels[NEAP__PANELS_MOST];
	int npanels;
	struct neap__figure_line lines[NEAP__LINES_MOST]; /* that have points */
	int nlines;
	struct neap__figure_line pending; /* the series that points are added to */
	double *xy;			  /* [2 * npoints] */
	size_t npoints, room;
	int error;
};

void neap__figure_begin(struct neap__figure *figure, const char *name);
void neap__figure_panel(
	struct neap__figure *figure, const char *title, const char *x, const char *y, int flags);
/*
 * A series in its strategy's shade; label NULL: the strategy's name, "": not in the
 * legend. strategy NULL: shade number `shade` of those that are no strategy's.
 */
void neap__figure_series(
	struct neap__figure *figure, const char *strategy, int shade, const char *label, int look);
/* Points that are not finite are left out. */
void neap__figure_xy(struct neap__figure *figure, double x, double y);

/*
 * Writes FOLDER/NAME.svg (and NAME.png) and frees the figure. 0, or a negative code; a figure
 * without points is not written.
 */
int neap__figure_end(struct neap__figure *figure, const char *folder, int png);

/* FOLDER/NAME.png from FOLDER/NAME.svg; 0 where there is no rsvg-convert, 1 where it is drawn. */
int neap__figure_png(const char *folder, const char *name);

#endif
