/* SPDX-License-Identifier: Apache-2.0 */
/* cell_grid.c: cells of a grid, and their marks in SVG (cell_grid.h). */
#include "cell_grid.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Steps and units that have cells of their own; of more, cells of this size at least in pixels. */
enum { STEPS_MOST = 640, UNITS_MOST = 220, COLUMNS = 320, ROWS = 110 };
enum { SHADES = 6 }; /* of a colour */

int cli_grid_make(struct cli_grid *g, int64_t steps, int units, int heat)
{
	*g = (struct cli_grid){.steps = steps, .units = units, .heat = heat};
	g->columns = steps > (heat ? COLUMNS : STEPS_MOST) ? COLUMNS : (int)steps;
	g->rows = units > (heat ? ROWS : UNITS_MOST) ? ROWS : units;
	size_t cells = (size_t)g->columns * (size_t)g->rows;
	g->sum = calloc(cells ? cells : 1, sizeof *g->sum);
	g->of = heat ? calloc(cells ? cells : 1, sizeof *g->of) : NULL;
	return g->sum && (g->of || !heat) ? 0 : -ENOMEM;
}

void cli_grid_free(struct cli_grid *g)
{
	free(g->sum);
	free(g->of);
	*g = (struct cli_grid){0};
}

void cli_grid_add(struct cli_grid *g, int64_t step, int unit, double value)
{
	int column = (int)(step * g->columns / g->steps);
	int row = (int)((int64_t)unit * g->rows / g->units);

	if (column < 0 || column >= g->columns || row < 0 || row >= g->rows)
		return;
	g->sum[(size_t)row * (size_t)g->columns + (size_t)column] += value;
	if (g->heat)
		g->of[(size_t)row * (size_t)g->columns + (size_t)column]++;
}

static double cell_of(const struct cli_grid *g, int row, int column)
{
	size_t at = (size_t)row * (size_t)g->columns + (size_t)column;
	return g->heat && g->of[at] > 0 ? g->sum[at] / g->of[at] : g->sum[at];
}

double cli_grid_reach(const struct cli_grid *g)
{
	double reach = 0;

	for (int row = 0; row < g->rows; row++)
		for (int column = 0; column < g->columns; column++)
			if (isfinite(cell_of(g, row, column)))
				reach = fmax(reach, fabs(cell_of(g, row, column)));
	return reach;
}

/* From -SHADES to SHADES; of spikes the root, so that single ones are seen beside many. */
static int shade_of(const struct cli_grid *g, double value, double reach)
{
	if (!(reach > 0) || !isfinite(value))
		return 0;
	double share = value / reach;
	return g->heat ? (int)lround(SHADES * share) : (int)ceil(SHADES * sqrt(share));
}

static int mix(int colour, double share)
{
	return (int)lround(255 + (colour - 255) * share);
}

const char *cli_grid_colour(char room[8], double share)
{
	int below = share < 0;

	share = fmin(1, fabs(share));
	snprintf(room, 8, "#%02x%02x%02x", (unsigned)mix(below ? 0x00 : 0xD5, share) & 0xff,
		(unsigned)mix(below ? 0x72 : 0x5E, share) & 0xff,
		(unsigned)mix(below ? 0xB2 : 0x00, share) & 0xff);
	return room;
}

/* Adds the cells of one shade to a path in units of cells, neighbours in a row as one. */
static void add_cells(struct neap__text *out, const struct cli_grid *g, double reach, int shade)
{
	for (int row = 0; row < g->rows; row++)
		for (int from = 0, to; from < g->columns; from = to) {
			to = from + 1;
			if (shade_of(g, cell_of(g, row, from), reach) != shade)
				continue;
			while (to < g->columns && shade_of(g, cell_of(g, row, to), reach) == shade)
				to++;
			neap__text_add(out, "M%d %dh%dv1h-%dz", from, g->rows - 1 - row, to - from,
				to - from);
		}
}

/* A stroke a spike, upright, where steps and units have cells of their own. */
static void add_strokes(struct neap__text *out, const struct cli_grid *g, const struct cli_box *box)
{
	double w = box->width / g->columns, h = box->height / g->rows;
	double high = fmin(9, fmax(2, 0.8 * h));

	neap__text_add(out,
		"<path class=\"spikes\" fill=\"none\" stroke=\"#000000\" stroke-width=\"%.2f\" "
		"d=\"",
		fmin(2, fmax(1, 0.7 * w)));
	for (int row = 0; row < g->rows; row++)
		for (int column = 0; column < g->columns; column++)
			if (cell_of(g, row, column) > 0)
				neap__text_add(out, "M%.2f %.2fv%.2f",
					box->left + (column + 0.5) * w,
					box->top + (g->rows - row - 0.5) * h - high / 2, high);
	neap__text_add(out, "\"/>\n");
}

void cli_grid_draw(struct neap__text *out, const struct cli_grid *g, const struct cli_box *box)
{
	double reach = cli_grid_reach(g);
	char room[8];

	if (!g->heat && g->columns == g->steps && g->rows == g->units) {
		add_strokes(out, g, box);
		return;
	}
	neap__text_add(out,
		"<g transform=\"translate(%.2f %.2f) scale(%.5f %.5f)\" "
		"shape-rendering=\"crispEdges\">\n",
		box->left, box->top, box->width / g->columns, box->height / g->rows);
	for (int shade = g->heat ? -SHADES : 1; shade <= SHADES; shade++) {
		double share = (double)shade / SHADES;
		if (shade == 0)
			continue;
		neap__text_add(out, "<path class=\"%s\" fill=\"%s\"",
			g->heat ? "numbers" : "spikes",
			g->heat ? cli_grid_colour(room, share) : "#000000");
		if (!g->heat)
			neap__text_add(out, " fill-opacity=\"%.2f\"", share);
		neap__text_add(out, " d=\"");
		add_cells(out, g, reach, shade);
		neap__text_add(out, "\"/>\n");
	}
	neap__text_add(out, "</g>\n");
}
