/* SPDX-License-Identifier: Apache-2.0 */
/* figure.c: collects the points of a figure, cuts crowded panels and draws them (figure.h). */
#include "study/figure.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "base/fail.h"
#include "base/svg.h"
#include "sys/atomic_file.h"
#include "sys/command.h"

#define WIDTH 480.0 /* px of a figure */
#define LEFT 66.0
#define RIGHT 18.0
#define HEIGHT 230.0 /* px of the frame of a panel */
#define TITLE 17.0   /* font size of the finding */
#define HEADING 15.0 /* and of a panel's title */
#define ROW 22.0     /* px of a row of the legend, and of a line of text */
#define MARK 4.0     /* px from the middle of a mark to its rim */
#define CROWD 5	     /* shades of a panel at most */
#define PATH 4200

void neap__figure_begin(struct neap__figure *figure, const char *name)
{
	*figure = (struct neap__figure){.error = 0};
	snprintf(figure->name, sizeof figure->name, "%s", name);
}

static void end_series(struct neap__figure *f)
{
	if (f->pending.count == 0 || f->error)
		return;
	if (f->nlines == NEAP__LINES_MOST)
		f->error = neap__fail(NEAP_EUSAGE, "figure %s has too many lines", f->name);
	else
		f->lines[f->nlines++] = f->pending;
	f->pending.count = 0;
}

void neap__figure_panel(
	struct neap__figure *figure, const char *title, const char *x, const char *y, int flags)
{
	end_series(figure);
	if (figure->npanels == NEAP__PANELS_MOST)
		figure->error =
			neap__fail(NEAP_EUSAGE, "figure %s has too many panels", figure->name);
	if (figure->error)
		return;
	struct neap__figure_panel *panel = &figure->panels[figure->npanels++];
	panel->flags = flags;
	snprintf(panel->title, sizeof panel->title, "%s", title);
	snprintf(panel->x, sizeof panel->x, "%s", x);
	snprintf(panel->y, sizeof panel->y, "%s", y);
}

void neap__figure_series(
	struct neap__figure *figure, const char *strategy, int shade, const char *label, int look)
{
	end_series(figure);
	struct neap__figure_line *line = &figure->pending;
	*line = (struct neap__figure_line){.shade = neap__shade_of(strategy, shade),
		.look = look,
		.panel = figure->npanels - 1,
		.first = figure->npoints};
	if (!label)
		label = strategy ? strategy : "";
	snprintf(line->label, sizeof line->label, "%s", label);
}

void neap__figure_xy(struct neap__figure *figure, double x, double y)
{
	if (!isfinite(x) || !isfinite(y) || figure->error)
		return;
	if (figure->npoints == figure->room) {
		size_t room = 2 * (figure->npoints + 32);
		double *more = realloc(figure->xy, room * 2 * sizeof *more);
		if (!more) {
			figure->error = neap__fail_errno(ENOMEM, "a figure");
			return;
		}
		figure->xy = more;
		figure->room = room;
	}
	figure->xy[2 * figure->npoints] = x;
	figure->xy[2 * figure->npoints++ + 1] = y;
	figure->pending.count++;
}

enum { NONE = -1, EVERY = -2 };

/* A part of a panel: the lines of some of its shades. */
struct panel_part {
	const struct neap__figure *figure;
	int panel, number, of;
	int part_of[NEAP__LINES_MOST]; /* by line: its part, EVERY, or NONE: of another panel */
};

static int same(struct neap__shade a, struct neap__shade b)
{
	return strcmp(a.color, b.color) == 0 && a.mark == b.mark;
}

/*
 * Deals the shades of a panel out over parts, CROWD at most in each, in their order. Rings alone
 * are in every part, around the marks that are there.
 */
static void divide(struct panel_part *p)
{
	const struct neap__figure *f = p->figure;
	struct neap__shade seen[NEAP__LINES_MOST];
	int shades = 0, own[NEAP__LINES_MOST];

	for (int i = 0; i < f->nlines; i++) {
		p->part_of[i] = own[i] = NONE;
		if (f->lines[i].panel != p->panel)
			continue;
		if (f->lines[i].look == NEAP__RING) {
			p->part_of[i] = EVERY;
			continue;
		}
		for (int s = 0; s <= shades && own[i] < 0; s++)
			if (s == shades || same(seen[s], f->lines[i].shade))
				own[i] = s;
		if (own[i] == shades)
			seen[shades++] = f->lines[i].shade;
	}
	p->of = (shades + CROWD - 1) / CROWD;
	for (int i = 0; i < f->nlines; i++)
		if (own[i] >= 0)
			p->part_of[i] = own[i] * p->of / shades;
}

static int shown(const struct panel_part *p, int line)
{
	return p->part_of[line] == p->number || p->part_of[line] == EVERY;
}

/* The range of all points of a panel, with some room around it, in all its parts. */
static void fit(const struct panel_part *p, struct neap__svg_axis *x, struct neap__svg_axis *y)
{
	const struct neap__figure *f = p->figure;
	struct neap__svg_axis *axes[2] = {x, y};

	for (int k = 0; k < 2; k++) {
		struct neap__svg_axis *a = axes[k];
		a->low = INFINITY;
		a->high = -INFINITY;
		for (int i = 0; i < f->nlines; i++)
			for (size_t j = 0; p->part_of[i] != NONE && j < f->lines[i].count; j++) {
				double v = f->xy[2 * (f->lines[i].first + j) + (size_t)k];
				if (a->log && v <= 0)
					continue;
				v = a->log ? log10(v) : v;
				a->low = fmin(a->low, v);
				a->high = fmax(a->high, v);
			}
		if (!(a->low <= a->high))
			a->low = 0, a->high = 1;
		double room = a->high > a->low ? 0.05 * (a->high - a->low) : 0.2;
		a->high += room;
		a->low -= room;
		if (!a->log && a->low < 0 && a->low + room >= 0)
			a->low = 0; /* nothing below 0 is shown where nothing is */
	}
	if (f->panels[p->panel].flags & NEAP__ZERO_Y)
		y->low = 0;
}

static void draw_line(struct neap__text *out, const struct neap__figure *f,
	const struct neap__figure_line *line, const struct neap__svg_axis *x,
	const struct neap__svg_axis *y)
{
	const double *xy = &f->xy[2 * line->first];

	if (line->look & NEAP__LINE) {
		neap__text_add(out,
			"<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"%g\"%s points=\"",
			line->shade.color, NEAP__SVG_LINE,
			line->look & NEAP__DASHED ? " stroke-dasharray=\"6 4\"" : "");
		for (size_t j = 0; j < line->count; j++)
			neap__text_add(out, "%s%.2f,%.2f", j ? " " : "",
				neap__svg_place(x, xy[2 * j]), neap__svg_place(y, xy[2 * j + 1]));
		neap__text_add(out, "\"/>\n");
	}
	for (size_t j = 0; line->look & (NEAP__MARKS | NEAP__RING) && j < line->count; j++)
		neap__mark_draw(out, line->shade, neap__svg_place(x, xy[2 * j]),
			neap__svg_place(y, xy[2 * j + 1]),
			line->look & NEAP__RING ? 2.2 * MARK : MARK);
}

/* The legend of a part from `top` on; the y below it. out NULL: measures only. */
static double draw_legend(struct neap__text *out, const struct panel_part *p, double top)
{
	const struct neap__figure *f = p->figure;
	double x = LEFT, y = top;
	int any = 0;

	for (int i = 0; i < f->nlines; i++) {
		const struct neap__figure_line *line = &f->lines[i];
		if (!shown(p, i) || !line->label[0])
			continue;
		double width = 44 + NEAP__SVG_CHAR * (double)strlen(line->label);
		if (any++ && x + width > WIDTH) {
			x = LEFT;
			y += ROW;
		}
		if (out) {
			if (line->look & NEAP__LINE)
				neap__text_add(out,
					"<line x1=\"%.2f\" y1=\"%.2f\" x2=\"%.2f\" y2=\"%.2f\" "
					"stroke=\"%s\" stroke-width=\"%g\"%s/>\n",
					x, y - 5, x + 24, y - 5, line->shade.color, NEAP__SVG_LINE,
					line->look & NEAP__DASHED ? " stroke-dasharray=\"6 4\""
								  : "");
			if (line->look & (NEAP__MARKS | NEAP__RING))
				neap__mark_draw(out, line->shade, x + 12, y - 5,
					line->look & NEAP__RING ? 1.6 * MARK : MARK);
			neap__text_add(out, "<text x=\"%.2f\" y=\"%.2f\">", x + 30, y);
			neap__svg_escaped(out, line->label);
			neap__text_add(out, "</text>\n");
		}
		x += width;
	}
	return any ? y + ROW : y;
}

/* One part of a panel from `top` on; the y below it. out NULL: measures only. */
static double draw_part(struct neap__text *out, const struct panel_part *p, double top)
{
	const struct neap__figure *f = p->figure;
	const struct neap__figure_panel *panel = &f->panels[p->panel];
	char title[160];

	snprintf(title, sizeof title, p->of > 1 ? "%s (%d of %d)" : "%s", panel->title,
		p->number + 1, p->of);
	top = neap__svg_wrapped(out, 12, top + HEADING, HEADING, 56, title);
	top = neap__svg_wrapped(out, 12, top + 2, NEAP__SVG_FONT, 56, panel->y) - 4;
	struct neap__svg_axis x = {
		.from = LEFT, .size = WIDTH - LEFT - RIGHT, .log = panel->flags & NEAP__LOG_X};
	struct neap__svg_axis y = {
		.from = top, .size = HEIGHT, .log = panel->flags & NEAP__LOG_Y, .turned = 1};
	fit(p, &x, &y);
	if (out) {
		neap__svg_ticks(out, &y, &x);
		neap__svg_ticks(out, &x, &y);
		neap__text_add(out,
			"<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"none\" "
			"stroke=\"" NEAP__SVG_INK
			"\"/>\n<text x=\"%.2f\" y=\"%.2f\" text-anchor=\"middle\">",
			x.from, y.from, x.size, y.size, x.from + x.size / 2, top + HEIGHT + 40);
		neap__svg_escaped(out, panel->x);
		neap__text_add(out, "</text>\n");
		for (int i = 0; i < f->nlines; i++)
			if (shown(p, i))
				draw_line(out, f, &f->lines[i], &x, &y);
	}
	return draw_legend(out, p, top + HEIGHT + 66) + 14;
}

/* All panels; the height of the figure. */
static double draw_panels(struct neap__text *out, const struct neap__figure *f)
{
	double top = 4;
	if (f->title[0])
		top = neap__svg_wrapped(out, 12, top + TITLE, TITLE, 50, f->title) + 6;
	for (int i = 0; i < f->npanels; i++) {
		struct panel_part p = {.figure = f, .panel = i};
		divide(&p);
		for (p.number = 0; p.number < p.of; p.number++)
			top = draw_part(out, &p, top);
	}
	return top;
}

static int write_svg(const struct neap__figure *f, const char *folder)
{
	struct neap__text out = {0};
	char path[PATH];

	neap__svg_begin(&out, WIDTH, draw_panels(NULL, f), f->title[0] ? f->title : f->name);
	draw_panels(&out, f);
	neap__svg_end(&out);
	snprintf(path, sizeof path, "%s/%s.svg", folder, f->name);
	int rc = out.error ? neap__fail_errno(ENOMEM, "%s", path)
			   : neap__write_file(path, out.data, out.length);
	neap__text_free(&out);
	return rc;
}

int neap__figure_png(const char *folder, const char *name)
{
	char svg[PATH], part[PATH], path[PATH], unused[16];
	snprintf(svg, sizeof svg, "%s/%s.svg", folder, name);
	snprintf(part, sizeof part, "%s/%s.png.part", folder, name);
	snprintf(path, sizeof path, "%s/%s.png", folder, name);
	const char *const argv[] = {"rsvg-convert", "-o", part, svg, NULL};
	int rc = neap__command(argv, 1, unused, sizeof unused);
	if (rc == -ENOENT)
		return 0;
	if (rc != 0 || rename(part, path) < 0) {
		unlink(part);
		return neap__fail(NEAP_EFORMAT, "rsvg-convert could not draw %s", path);
	}
	return 1;
}

int neap__figure_end(struct neap__figure *figure, const char *folder, int png)
{
	end_series(figure);
	int rc = figure->error;
	if (rc == 0 && figure->nlines > 0)
		rc = write_svg(figure, folder);
	if (rc == 0 && figure->nlines > 0 && png && neap__figure_png(folder, figure->name) < 0)
		rc = NEAP_EFORMAT;
	free(figure->xy);
	return rc;
}
