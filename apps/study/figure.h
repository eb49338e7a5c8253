/* SPDX-License-Identifier: Apache-2.0 */
/*
 * figure.h: figures as gnuplot scripts with their data inside, drawn to SVG. Every
 * strategy has one colour and one mark in all of them (palette.c).
 *
 *     neap__figure_begin(&f, "memory");
 *     neap__figure_panel(&f, "Peak", "steps", "MiB", NEAP__LOG_X | NEAP__LOG_Y);
 *     neap__figure_series(&f, "double", 0, NULL, NEAP__MARKS);
 *     neap__figure_xy(&f, x, y);
 *     neap__figure_end(&f, folder, png);
 */
#ifndef NEAP_STUDY_FIGURE_H
#define NEAP_STUDY_FIGURE_H

#include "base/text.h"

enum { NEAP__LOG_X = 1, NEAP__LOG_Y = 2, NEAP__ZERO_Y = 4 /* the axis begins at 0 */ };

/* How a series looks: marks, a line, or both. */
enum { NEAP__MARKS = 1, NEAP__LINE = 2, NEAP__DASHED = 4, NEAP__RING = 8 /* around a mark */ };

struct neap__panel_range {
	double x0, x1, y0, y1;
};

struct neap__figure {
	char name[64];
	struct neap__text data, plots; /* data blocks; plot commands */
	struct neap__text clauses;     /* of the panel at hand */
	struct neap__panel_range range;
	int panels, series, points; /* points: of the series at hand */
	int flags;
	char pending[240]; /* the clause of the series at hand, till it has a point */
};

struct neap__shade {
	const char *color; /* "#rrggbb" */
	int mark;	   /* gnuplot's number of a point type */
};
/* Of the strategy or other series `name`; without one (NULL) the one of number `index`. */
struct neap__shade neap__shade_of(const char *name, int index);

void neap__figure_begin(struct neap__figure *figure, const char *name);
/* Ends the panel before. */
void neap__figure_panel(
	struct neap__figure *figure, const char *title, const char *x, const char *y, int flags);
/*
 * A series in its strategy's shade; label NULL: the strategy's name, "": not in the
 * key. strategy NULL: shade number `shade` of those that are no strategy's.
 */
void neap__figure_series(
	struct neap__figure *figure, const char *strategy, int shade, const char *label, int look);
/* Points that are not finite are left out. */
void neap__figure_xy(struct neap__figure *figure, double x, double y);

/*
 * Writes FOLDER/NAME.gp and draws NAME.svg (and NAME.png). Frees the figure. 1 where it
 * was drawn, 0 where there is no gnuplot, or a negative code.
 */
int neap__figure_end(struct neap__figure *figure, const char *folder, int png);

/* FOLDER/NAME.png from FOLDER/NAME.svg; 0 where there is no rsvg-convert, 1 where it is drawn. */
int neap__figure_png(const char *folder, const char *name);

#endif
