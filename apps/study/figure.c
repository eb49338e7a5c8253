/* SPDX-License-Identifier: Apache-2.0 */
/* figure.c: writes the gnuplot script of a figure and runs gnuplot and rsvg-convert. */
#include "study/figure.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>
#include "base/fail.h"
#include "sys/command.h"
#include "sys/atomic_file.h"

#define WIDTH 820  /* pixels of a figure */
#define HEIGHT 400 /* pixels of a panel */
#define PATH 4200

void neap__figure_begin(struct neap__figure *figure, const char *name)
{
	*figure = (struct neap__figure){.panels = 0};
	snprintf(figure->name, sizeof figure->name, "%s", name);
}

/* Ticks of a logarithmic axis of about a decade: doublings, or both ends. */
static void x_ticks(struct neap__text *out, double low, double high)
{
	double doublings = log2(high / low);
	if (fabs(doublings - round(doublings)) > 1e-6 || doublings < 1) {
		neap__text_add(out, "set xtics add (%g, %g)\n", low, high);
		return;
	}
	neap__text_add(out, "set xtics (%g", low);
	for (double x = 2 * low; x <= high * 1.001; x *= 2)
		neap__text_add(out, ", %g", x);
	neap__text_add(out, ")\n");
}

/* Ticks are plain numbers, or powers of ten on a logarithmic axis of large or small numbers. */
static void axis(struct neap__text *out, char which, int log, double low, double high)
{
	int narrow = log && high > 0 && low > 0 && high / low < 12;
	neap__text_add(out, "%sset logscale %c\n", log ? "" : "un", which);
	neap__text_add(out, "set format %c '%s'\n", which,
		log && !narrow && (high > 2e4 || low < 1e-3) ? "10^{%L}" : "%g");
	if (!narrow)
		return;
	if (which == 'x')
		x_ticks(out, low, high);
	for (double ten = pow(10, floor(log10(low))); which == 'y' && ten <= high; ten *= 10)
		neap__text_add(out, "set ytics add (%g, %g)\n", 2 * ten, 5 * ten);
}

static void end_panel(struct neap__figure *f)
{
	const struct neap__panel_range *r = &f->range;
	if (f->clauses.length == 0)
		return;
	neap__text_add(&f->plots, "set xtics auto\nset ytics auto\n");
	axis(&f->plots, 'x', f->flags & NEAP__LOG_X, r->x0, r->x1);
	axis(&f->plots, 'y', f->flags & NEAP__LOG_Y, r->y0, r->y1);
	if ((f->flags & NEAP__LOG_X) || (r->x0 == r->x1 && r->x0 > 0))
		neap__text_add(&f->plots, "set xrange [%g:%g]\n", r->x0 / 1.4, r->x1 * 1.4);
	else
		neap__text_add(&f->plots, "set xrange [*:*]\n");
	if (f->flags & NEAP__LOG_Y) /* marks off the frame */
		neap__text_add(&f->plots, "set yrange [%g:%g]\n", r->y0 / 1.6, r->y1 * 1.6);
	else
		neap__text_add(
			&f->plots, "set yrange [%s:*]\n", f->flags & NEAP__ZERO_Y ? "0" : "*");
	neap__text_add(&f->plots, "plot %s\n", f->clauses.data);
	neap__text_free(&f->clauses);
	f->clauses = (struct neap__text){0};
	f->panels++;
}

static void end_series(struct neap__figure *f)
{
	if (f->points == 0)
		return;
	neap__text_add(&f->data, "EOD\n");
	neap__text_add(&f->clauses, "%s%s", f->clauses.length ? ", \\\n     " : "", f->pending);
	f->points = 0;
}

void neap__figure_panel(
	struct neap__figure *figure, const char *title, const char *x, const char *y, int flags)
{
	end_series(figure);
	end_panel(figure);
	figure->flags = flags;
	figure->range = (struct neap__panel_range){INFINITY, -INFINITY, INFINITY, -INFINITY};
	/* Inside single quotes: texts have none. */
	neap__text_add(
		&figure->plots, "set title '%s'\nset xlabel '%s'\nset ylabel '%s'\n", title, x, y);
}

void neap__figure_series(
	struct neap__figure *figure, const char *strategy, int shade, const char *label, int look)
{
	const struct neap__shade s = neap__shade_of(strategy, shade);
	char title[80];
	end_series(figure);
	if (!label)
		label = strategy ? strategy : "";
	if (label[0])
		snprintf(title, sizeof title, "title '%s'", label);
	else
		snprintf(title, sizeof title, "notitle");
	const char *with = (look & NEAP__MARKS) && (look & NEAP__LINE) ? "linespoints"
			   : look & (NEAP__MARKS | NEAP__RING)	       ? "points"
								       : "lines";
	char mark[32] = "";
	if (look & NEAP__MARKS)
		snprintf(mark, sizeof mark, " pt %d ps 0.9", s.mark);
	if (look & NEAP__RING)
		snprintf(mark, sizeof mark, " pt %d ps 2", s.mark);
	snprintf(figure->pending, sizeof figure->pending,
		"$s%d with %s lc rgb '%s' lw 1.8 dt %d%s %s", figure->series, with, s.color,
		look & NEAP__DASHED ? 2 : 1, mark, title);
}

static void widen(struct neap__panel_range *r, double x, double y)
{
	r->x0 = fmin(r->x0, x);
	r->x1 = fmax(r->x1, x);
	r->y0 = fmin(r->y0, y);
	r->y1 = fmax(r->y1, y);
}

void neap__figure_xy(struct neap__figure *figure, double x, double y)
{
	if (!isfinite(x) || !isfinite(y))
		return;
	if (figure->points++ == 0)
		neap__text_add(&figure->data, "$s%d << EOD\n", figure->series++);
	neap__text_add(&figure->data, "%.10g %.10g\n", x, y);
	widen(&figure->range, x, y);
}

static int write_script(struct neap__figure *f, const char *folder)
{
	struct neap__text out = {0};
	char path[PATH];
	neap__text_add(&out,
		"# Drawn by: gnuplot %s.gp\n"
		"if (!exists('out')) out = '%s.svg'\n"
		"set terminal svg size %d,%d font 'sans-serif,14' background '#ffffff'\n"
		"set output out\n"
		"set key outside right top spacing 1.15 samplen 2.5\n"
		"set grid lc rgb '#dddddd' lw 1 dt 1\nset border lw 1\n"
		"set lmargin 11\nset rmargin 22\n"
		"%sset multiplot layout %d,1\n%sunset multiplot\nset output\n",
		f->name, f->name, WIDTH, HEIGHT * f->panels, f->data.data, f->panels,
		f->plots.data);
	snprintf(path, sizeof path, "%s/%s.gp", folder, f->name);
	int rc = out.error ? out.error : neap__write_file(path, out.data, out.length);
	neap__text_free(&out);
	return rc;
}

/* gnuplot's quotes are doubled inside a text. */
static void set_folder(char *command, size_t size, const char *folder, const char *name)
{
	size_t n = (size_t)snprintf(command, size, "cd '");
	for (const char *c = folder; *c && n + 8 < size; c++) {
		if (*c == '\'')
			command[n++] = '\'';
		command[n++] = *c;
	}
	snprintf(command + n, size - n, "'; out = '%s.svg.part'; load '%s.gp'", name, name);
}

static int draw(const struct neap__figure *f, const char *folder)
{
	char command[2 * PATH], part[PATH], path[PATH], unused[16];
	set_folder(command, sizeof command, folder, f->name);
	const char *const argv[] = {"gnuplot", "-e", command, NULL};
	int rc = neap__command(argv, unused, sizeof unused);
	if (rc == -ENOENT)
		return 0;
	snprintf(part, sizeof part, "%s/%s.svg.part", folder, f->name);
	snprintf(path, sizeof path, "%s/%s.svg", folder, f->name);
	if (rc != 0) {
		unlink(part);
		return neap__fail(NEAP_EFORMAT,
			"gnuplot could not draw %s/%s.gp. Check that gnuplot is installed", folder,
			f->name);
	}
	if (rename(part, path) < 0)
		return neap__fail_errno(errno, "%s", path);
	return 1;
}

int neap__figure_png(const char *folder, const char *name)
{
	char svg[PATH], part[PATH], path[PATH], unused[16];
	snprintf(svg, sizeof svg, "%s/%s.svg", folder, name);
	snprintf(part, sizeof part, "%s/%s.png.part", folder, name);
	snprintf(path, sizeof path, "%s/%s.png", folder, name);
	const char *const argv[] = {"rsvg-convert", "-o", part, svg, NULL};
	int rc = neap__command(argv, unused, sizeof unused);
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
	int rc = 0;
	end_series(figure);
	end_panel(figure);
	if (figure->data.error || figure->plots.error)
		rc = neap__fail_errno(ENOMEM, "a figure");
	else if (figure->panels > 0)
		rc = write_script(figure, folder);
	if (rc == 0 && figure->panels > 0)
		rc = draw(figure, folder);
	if (rc == 1 && png)
		rc = neap__figure_png(folder, figure->name) < 0 ? NEAP_EFORMAT : 1;
	neap__text_free(&figure->data);
	neap__text_free(&figure->plots);
	neap__text_free(&figure->clauses);
	return rc;
}
