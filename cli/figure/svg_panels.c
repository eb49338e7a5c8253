/* SPDX-License-Identifier: Apache-2.0 */
/* svg_panels.c: ranges, ticks at 1, 2 or 5 times powers of ten, panels, series, legend
 * (svg_panels.h). */
#include "svg_panels.h"

#include <math.h>

#define WIDTH 640.0  /* pixels of a panel */
#define HEIGHT 220.0 /* of a panel */
#define LEFT 84.0
#define TOP 44.0
#define GAP 22.0 /* between panels */
#define RIGHT 24.0
#define ROW 18.0 /* of the legend */
#define FEW 60	 /* points of a series that get marks */
#define TICKS_MOST 12
#define MOST 1e300   /* larger numbers are not drawn: ranges stay finite */
#define LEAST 1e-290 /* smaller ranges are none */

static const char *const colours[] = {
	"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999"};
#define COLOURS (sizeof colours / sizeof colours[0])

static const char *colour_of(int number)
{
	return number < 0 ? "#000000" : colours[(size_t)number % COLOURS];
}

struct axis {
	double low, high;  /* in values, or in powers of ten where log */
	double from, size; /* pixels */
	int log, turned;   /* turned: larger values have smaller pixels */
};

static int finite_at(const struct cli_series *s, size_t i, int log)
{
	return fabs(s->x[i]) < MOST && fabs(s->y[i]) < MOST && (!log || s->y[i] > 0);
}

static double place(const struct axis *a, double value)
{
	double v = a->log ? log10(value) : value;
	double share = (v - a->low) / (a->high - a->low);
	return a->from + a->size * (a->turned ? 1 - share : share);
}

static void escaped(struct neap__text *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '&')
			neap__text_add(out, "&amp;");
		else if (*text == '<')
			neap__text_add(out, "&lt;");
		else if (*text == '>')
			neap__text_add(out, "&gt;");
		else
			neap__text_add(out, "%c", *text);
	}
}

/* The step between ticks: 1, 2 or 5 times a power of ten, at most `most` in `range`. */
static double tick_step(double range, int most)
{
	double ten = pow(10, floor(log10(range / most)));
	double part = range / most / ten;
	return ten * (part <= 1 ? 1 : part <= 2 ? 2 : part <= 5 ? 5 : 10);
}

/* As few digits as tell ticks apart, without an exponent. */
static void add_number(struct neap__text *out, double value, double step)
{
	int digits = (int)fmin(12, fmax(0, -floor(log10(step) + 1e-9)));
	neap__text_add(out, "%.*f", digits, fabs(value) < step / 2 ? 0.0 : value);
}

static void add_tick(struct neap__text *out, const struct axis *a, double value, double step,
	const struct axis *other)
{
	double at = place(a, value);

	if (a->turned)
		neap__text_add(out,
			"<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" stroke=\"#dddddd\"/>"
			"<text class=\"tick-y\" x=\"%.2f\" y=\"%.2f\" dy=\"4\" "
			"text-anchor=\"end\">",
			other->from, at, other->from + other->size, at, other->from - 8, at);
	else
		neap__text_add(out,
			"<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" stroke=\"#000000\"/>"
			"<text class=\"tick-x\" x=\"%.2f\" y=\"%.2f\" text-anchor=\"middle\">",
			at, other->from + other->size, at, other->from + other->size + 5, at,
			other->from + other->size + 19);
	add_number(out, value, step);
	neap__text_add(out, "</text>\n");
}

/* Ticks every `step` from value `low` to `high`; a step that is lost in the value ends. */
static void add_even_ticks(struct neap__text *out, const struct axis *a, const struct axis *other,
	double low, double high, double step)
{
	double first = ceil(low / step - 1e-9);
	for (int i = 0; i <= TICKS_MOST && (first + i) * step <= high + 1e-9 * step; i++)
		add_tick(out, a, (first + i) * step, step, other);
}

static void add_ticks(
	struct neap__text *out, const struct axis *a, const struct axis *other, int whole)
{
	static const double parts[] = {1, 2, 5};

	if (!a->log) {
		double step = tick_step(a->high - a->low, whole && !a->turned ? TICKS_MOST : 6);
		add_even_ticks(out, a, other, a->low, a->high, whole ? fmax(1, step) : step);
		return;
	}
	double decades = a->high - a->low;
	if (decades < 0.7) { /* hardly two of the others */
		double low = pow(10, a->low), high = pow(10, a->high);
		add_even_ticks(out, a, other, low, high, tick_step(high - low, 6));
		return;
	}
	/* 1, 2 and 5 of each decade; of many decades the first alone. */
	int few = decades < 3, every = 1 + (int)(decades / 8);
	for (double ten = floor(a->low); ten <= a->high; ten += few ? 1 : every)
		for (int i = 0; i < (few ? 3 : 1); i++) {
			double v = parts[i] * pow(10, ten);
			if (log10(v) >= a->low - 1e-9 && log10(v) <= a->high + 1e-9)
				add_tick(out, a, v, v, other);
		}
}

/* The range of all points, with some room at its ends. 0 where there is no point. */
static int fit(struct axis *y, const struct cli_panel *panel)
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

static void add_series(struct neap__text *out, const struct cli_series *s, const struct axis *x,
	const struct axis *y)
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
				place(x, s->x[i]), place(y, s->y[i]));
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
				place(x, s->x[i]), place(y, s->y[i]),
				s->dashed ? "#ffffff" : colour, colour);
}

static void add_panel(struct neap__text *out, const struct cli_panel *panel, const struct axis *x,
	const struct axis *y)
{
	neap__text_add(out, "<g class=\"panel\">\n");
	add_ticks(out, y, x, panel->grid != NULL);
	if (panel->grid)
		cli_grid_draw(out, panel->grid,
			&(struct cli_box){place(x, panel->grid_from), y->from,
				place(x, panel->grid_end) - place(x, panel->grid_from), y->size});
	for (int s = 0; s < panel->count; s++)
		add_series(out, &panel->series[s], x, y);
	neap__text_add(out,
		"<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"none\" "
		"stroke=\"#000000\"/>\n<text x=\"22\" y=\"%.2f\" text-anchor=\"middle\" "
		"transform=\"rotate(-90 22 %.2f)\">",
		x->from, y->from, x->size, y->size, y->from + y->size / 2, y->from + y->size / 2);
	escaped(out, panel->title);
	neap__text_add(out, "</text>\n");
}

/* Colours from the least to the largest number of a grid, in place of a line. */
static void add_scale(struct neap__text *out, double y)
{
	char room[8];

	for (int i = 0; i < 5; i++)
		neap__text_add(out,
			"<rect x=\"%.2f\" y=\"%.2f\" width=\"6\" height=\"10\" fill=\"%s\" "
			"stroke=\"#999999\" stroke-width=\"0.5\"/>",
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
		escaped(out, legend[i].label);
		neap__text_add(out, "</text>\n");
	}
}

/* The range of all panels to the right. */
static void fit_x(struct axis *x, const struct cli_panel *panels, int npanels)
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
	struct axis x = {.low = INFINITY, .high = -INFINITY, .from = LEFT, .size = WIDTH};
	int shown = 0;

	for (int p = 0; p < npanels; p++) {
		struct axis y;
		shown += fit(&y, &panels[p]);
	}
	fit_x(&x, panels, npanels);
	double bottom = TOP + shown * (HEIGHT + GAP) - GAP + 44;
	neap__text_add(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
		"font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%%\" "
		"height=\"100%%\" "
		"fill=\"#ffffff\"/>\n<text x=\"%.2f\" y=\"26\" font-size=\"15\">",
		LEFT + WIDTH + RIGHT, bottom + 14 + nlegend * ROW, LEFT);
	escaped(out, title);
	neap__text_add(out, "</text>\n");
	for (int p = 0, at = 0; p < npanels; p++) {
		struct axis y = {.turned = 1};
		if (!fit(&y, &panels[p]))
			continue;
		y.from = TOP + at++ * (HEIGHT + GAP);
		y.size = HEIGHT;
		add_panel(out, &panels[p], &x, &y);
		if (at == shown)
			add_ticks(out, &x, &y, 1);
		neap__text_add(out, "</g>\n");
	}
	neap__text_add(out, "<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"middle\">", LEFT + WIDTH / 2,
		bottom - 6);
	escaped(out, x_title);
	neap__text_add(out, "</text>\n");
	add_legend(out, legend, nlegend, bottom + 12);
	neap__text_add(out, "</svg>\n");
	return out->error;
}
