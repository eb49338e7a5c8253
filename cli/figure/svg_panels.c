/* SPDX-License-Identifier: Apache-2.0 */
/* svg_panels.c: ranges, panels, series, legend (svg_panels.h). */
#include "svg_panels.h"

#include <math.h>
#include "base/svg.h"

#define WIDTH 640.0  /* pixels of a panel */
#define HEIGHT 220.0 /* of a panel */
#define LEFT 84.0
#define TOP 44.0
#define TITLE 17.0    /* font size */
#define TITLE_LINE 72 /* characters of a title that fit in one line */
#define GAP 22.0      /* between panels */
#define RIGHT 24.0
#define ROW 20.0     /* of the legend */
#define FEW 60	     /* points of a series that get marks */
#define MOST 1e300   /* larger numbers are not drawn: ranges stay finite */
#define LEAST 1e-290 /* smaller ranges are none */

static const char *const colours[] = {NEAP__SVG_BLUE, NEAP__SVG_RED, NEAP__SVG_GREEN,
	NEAP__SVG_PINK, NEAP__SVG_ORANGE, NEAP__SVG_SKY, NEAP__SVG_INK, NEAP__SVG_FAINT};
#define COLOURS (sizeof colours / sizeof colours[0])

static const char *colour_of(int number)
{
	return number < 0 ? NEAP__SVG_INK : colours[(size_t)number % COLOURS];
}

static int finite_at(const struct cli_series *s, size_t i, int log)
{
	return fabs(s->x[i]) < MOST && fabs(s->y[i]) < MOST && (!log || s->y[i] > 0);
}

/* The range of all points, with some room at its ends. 0 where there is no point. */
static int fit(struct neap__svg_axis *y, const struct cli_panel *panel)
{
	double low = INFINITY, high = -INFINITY;

	for (int s = 0; s < panel->count; s++)
		for (size_t i = 0; i < panel->series[s].count; i++) {
			double v = panel->series[s].y[i];
			if (!finite_at(&panel->series[s], i, panel->log))
				continue;
			v = panel->log ? log10(v) : v;
			low = fmin(low, v);
			high = fmax(high, v);
		}
	if (panel->grid) {
		y->low = -0.5;
		y->high = panel->grid->units - 0.5;
		return panel->grid->units > 0;
	}
	if (low > high)
		return 0;
	/* What differs by rounding alone is one value. */
	double span = high - low, size = fmax(fabs(low), fabs(high));
	double room = span > 1e-9 * size ? 0.06 * span : panel->log ? 0.1 : 0.1 * size;
	if (room < LEAST)
		room = 1;
	y->log = panel->log;
	y->low = panel->zero && !panel->log ? fmin(0, low) : low - room;
	y->high = high + room;
	return 1;
}

static void add_series(struct neap__text *out, const struct cli_series *s,
	const struct neap__svg_axis *x, const struct neap__svg_axis *y)
{
	const char *colour = colour_of(s->colour);
	int open = 0;

	neap__text_add(out,
		"<g class=\"series\" id=\"%s-%d\" stroke=\"%s\" stroke-width=\"%s\"%s>\n", s->name,
		s->colour, colour, s->plain ? "1.2" : "1.8",
		s->dashed ? " stroke-dasharray=\"5 3\"" : "");
	for (size_t i = 0; i < s->count; i++) {
		if (finite_at(s, i, y->log))
			neap__text_add(out, "%s%.3f,%.3f",
				open++ ? " " : "<polyline fill=\"none\" points=\"",
				neap__svg_place(x, s->x[i]), neap__svg_place(y, s->y[i]));
		else if (open) {
			neap__text_add(out, "\"/>\n");
			open = 0;
		}
	}
	if (open)
		neap__text_add(out, "\"/>\n");
	neap__text_add(out, "</g>\n");
	for (size_t i = 0; s->count <= FEW && !s->plain && i < s->count; i++)
		if (finite_at(s, i, y->log))
			neap__text_add(out,
				"<circle cx=\"%.2f\" cy=\"%.2f\" r=\"2.6\" fill=\"%s\" "
				"stroke=\"%s\"/>\n",
				neap__svg_place(x, s->x[i]), neap__svg_place(y, s->y[i]),
				s->dashed ? NEAP__SVG_PAPER : colour, colour);
}

static void add_panel(struct neap__text *out, const struct cli_panel *panel,
	const struct neap__svg_axis *x, const struct neap__svg_axis *y)
{
	neap__text_add(out, "<g class=\"panel\">\n");
	neap__svg_ticks(out, y, x);
	if (panel->grid)
		cli_grid_draw(out, panel->grid,
			&(struct cli_box){neap__svg_place(x, panel->grid_from), y->from,
				neap__svg_place(x, panel->grid_end) -
					neap__svg_place(x, panel->grid_from),
				y->size});
	for (int s = 0; s < panel->count; s++)
		add_series(out, &panel->series[s], x, y);
	neap__text_add(out,
		"<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"none\" "
		"stroke=\"" NEAP__SVG_INK "\"/>\n<text x=\"22\" y=\"%.2f\" text-anchor=\"middle\" "
		"transform=\"rotate(-90 22 %.2f)\">",
		x->from, y->from, x->size, y->size, y->from + y->size / 2, y->from + y->size / 2);
	neap__svg_escaped(out, panel->title);
	neap__text_add(out, "</text>\n");
}

/* Colours from the least to the largest number of a grid, in place of a line. */
static void add_scale(struct neap__text *out, double y)
{
	char room[8];

	for (int i = 0; i < 5; i++)
		neap__text_add(out,
			"<rect x=\"%.2f\" y=\"%.2f\" width=\"6\" height=\"10\" fill=\"%s\" "
			"stroke=\"" NEAP__SVG_FAINT "\" stroke-width=\"0.5\"/>",
			LEFT + 6 * i, y - 5, cli_grid_colour(room, (i - 2) / 2.0));
}

static void add_legend(struct neap__text *out, const struct cli_legend *legend, int count, double y)
{
	for (int i = 0; i < count; i++, y += ROW) {
		if (legend[i].colour == CLI_SCALE)
			add_scale(out, y);
		else
			neap__text_add(out,
				"<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" "
				"stroke=\"%s\" "
				"stroke-width=\"2\"%s/>",
				LEFT, y, LEFT + 30, y, colour_of(legend[i].colour),
				legend[i].dashed ? " stroke-dasharray=\"5 3\"" : "");
		neap__text_add(
			out, "<text class=\"legend\" x=\"%.2f\" y=\"%.2f\">", LEFT + 38, y + 4);
		neap__svg_escaped(out, legend[i].label);
		neap__text_add(out, "</text>\n");
	}
}

/* The range of all panels to the right. */
static void fit_x(struct neap__svg_axis *x, const struct cli_panel *panels, int npanels)
{
	for (int p = 0; p < npanels; p++)
		for (int s = 0; s < panels[p].count; s++)
			for (size_t i = 0; i < panels[p].series[s].count; i++) {
				if (!finite_at(&panels[p].series[s], i, 0))
					continue;
				x->low = fmin(x->low, panels[p].series[s].x[i]);
				x->high = fmax(x->high, panels[p].series[s].x[i]);
			}
	for (int p = 0; p < npanels; p++)
		if (panels[p].grid) {
			x->low = fmin(x->low, panels[p].grid_from);
			x->high = fmax(x->high, panels[p].grid_end);
		}
	if (!(x->low < x->high)) /* one point, or none */
		x->high = (x->low = isfinite(x->low) ? x->low - 1 : 0) + 2;
}

int cli_svg_panels(struct neap__text *out, const char *title, const char *x_title,
	const struct cli_panel *panels, int npanels, const struct cli_legend *legend, int nlegend)
{
	struct neap__svg_axis x = {
		.low = INFINITY, .high = -INFINITY, .from = LEFT, .size = WIDTH, .whole = 1};
	int shown = 0;

	for (int p = 0; p < npanels; p++) {
		struct neap__svg_axis y;
		shown += fit(&y, &panels[p]);
	}
	fit_x(&x, panels, npanels);
	/* A title of several lines moves the panels down. */
	double one = neap__svg_wrapped(NULL, LEFT, 26, TITLE, TITLE_LINE, "x");
	double top = TOP + neap__svg_wrapped(NULL, LEFT, 26, TITLE, TITLE_LINE, title) - one;
	double bottom = top + shown * (HEIGHT + GAP) - GAP + 44;
	neap__svg_begin(out, LEFT + WIDTH + RIGHT, bottom + 14 + nlegend * ROW, title);
	neap__svg_wrapped(out, LEFT, 26, TITLE, TITLE_LINE, title);
	for (int p = 0, at = 0; p < npanels; p++) {
		struct neap__svg_axis y = {.turned = 1, .whole = panels[p].grid != NULL};
		if (!fit(&y, &panels[p]))
			continue;
		y.from = top + at++ * (HEIGHT + GAP);
		y.size = HEIGHT;
		add_panel(out, &panels[p], &x, &y);
		if (at == shown)
			neap__svg_ticks(out, &x, &y);
		neap__text_add(out, "</g>\n");
	}
	neap__text_add(out, "<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"middle\">", LEFT + WIDTH / 2,
		bottom - 6);
	neap__svg_escaped(out, x_title);
	neap__text_add(out, "</text>\n");
	add_legend(out, legend, nlegend, bottom + 12);
	neap__svg_end(out);
	return out->error;
}
