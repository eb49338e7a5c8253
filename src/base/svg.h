/* SPDX-License-Identifier: Apache-2.0 */
/*
 * svg.h: the look of every figure of the project, in one place: font, colours, line widths, axes
 * with their ticks. bench/figure.py reads the table of colours from here.
 *
 * Colours are written for a light page. A style in each figure replaces them where the reader
 * prefers a dark one (prefers-color-scheme, which an image on a page takes from the color-scheme of
 * that page).
 */
#ifndef NEAP_BASE_SVG_H
#define NEAP_BASE_SVG_H

#include "base/text.h"

/* Text and frames, background, lines behind data, what is secondary, bands behind marks. */
#define NEAP__SVG_INK "#222222"
#define NEAP__SVG_PAPER "#ffffff"
#define NEAP__SVG_GRID "#dddddd"
#define NEAP__SVG_FAINT "#999999"
#define NEAP__SVG_BAND "#f2f2f2"
/* Series: hues of Okabe and Ito, which colour-blind readers tell apart. */
#define NEAP__SVG_BLUE "#0072b2"
#define NEAP__SVG_RED "#d55e00"
#define NEAP__SVG_GREEN "#009e73"
#define NEAP__SVG_PINK "#cc79a7"
#define NEAP__SVG_ORANGE "#e69f00"
#define NEAP__SVG_SKY "#56b4e9"

/*
 * X(light, dark): every colour that is too dark, or too light, for the other kind of page. Those of
 * strategies (core/strategy.h) are Paul Tol's "muted" scheme.
 */
#define NEAP__SVG_DARK_TABLE(X)                                                                    \
	X(NEAP__SVG_INK, "#e2e4ea")                                                                \
	X(NEAP__SVG_PAPER, "#2e303e")                                                              \
	X(NEAP__SVG_GRID, "#4a4d5e")                                                               \
	X(NEAP__SVG_BAND, "#3a3d4d")                                                               \
	X(NEAP__SVG_BLUE, "#5aaef0")                                                               \
	X(NEAP__SVG_RED, "#ff8a47")                                                                \
	X(NEAP__SVG_GREEN, "#35c79b")                                                              \
	X("#000000", "#e2e4ea")                                                                    \
	X("#332288", "#9d8df1")                                                                    \
	X("#117733", "#5ccb7f")                                                                    \
	X("#882255", "#e86ba8")                                                                    \
	X("#aa4499", "#d97fcc")                                                                    \
	X("#cc6677", "#f0899a")                                                                    \
	X("#777777", "#a5a8b5")

#define NEAP__SVG_FONT                                                                             \
	15.0 /* px; figures are at most 560 px wide, so that it is legible on a phone */
#define NEAP__SVG_LINE 2.0 /* width of a series */
#define NEAP__SVG_CHAR 8.0 /* px that a character takes, about: for wrapping and legends */

/* The head of a figure, its style and background; to be closed by neap__svg_end. */
void neap__svg_begin(struct neap__text *out, double width, double height, const char *title);
void neap__svg_end(struct neap__text *out);

/* Text of a document: control characters as '?', marks of XML as entities. */
void neap__svg_escaped(struct neap__text *out, const char *text);
/* A text at (x, y) whose lines have at most so many characters; the y below it. out NULL: measures
 * only. */
double neap__svg_wrapped(
	struct neap__text *out, double x, double y, double size, int characters, const char *text);

/* An axis in pixels. `turned`: larger values have smaller pixels, as upwards. */
struct neap__svg_axis {
	double low, high; /* values, or powers of ten where log */
	double from, size;
	int log, turned;
	int whole; /* 1: ticks are whole numbers */
};

double neap__svg_place(const struct neap__svg_axis *axis, double value);
/*
 * Ticks with their numbers at the low end of `other`, and lines over the figure from those of an
 * axis that is turned. They carry class "tick-x" or "tick-y", so that programs can read a figure
 * back.
 */
void neap__svg_ticks(struct neap__text *out, const struct neap__svg_axis *axis,
	const struct neap__svg_axis *other);

#endif
