/* SPDX-License-Identifier: Apache-2.0 */
/* trace_lines.c: least and largest numbers at each place of a line (trace_lines.h). */
#include "trace_lines.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { PLACES = 320 };

int cli_lines_make(struct cli_lines *l, int64_t steps, int units)
{
	*l = (struct cli_lines){.steps = steps, .units = units};
	l->places = steps > 2 * PLACES ? PLACES : (int)steps;
	size_t n = (size_t)units, points = n * (size_t)l->places;
	l->low = calloc(points ? points : 1, sizeof *l->low);
	l->high = calloc(points ? points : 1, sizeof *l->high);
	l->x = calloc(points ? 2 * points : 1, sizeof *l->x);
	l->y = calloc(points ? 2 * points : 1, sizeof *l->y);
	l->sum = calloc(n ? n : 1, sizeof *l->sum);
	l->series = calloc(n ? n : 1, sizeof *l->series);
	l->order = calloc(n ? n : 1, sizeof *l->order);
	l->drawn = calloc(n ? n : 1, sizeof *l->drawn);
	if (!l->low || !l->high || !l->x || !l->y || !l->sum || !l->series || !l->order ||
		!l->drawn)
		return -ENOMEM;
	for (size_t i = 0; i < points; i++) {
		l->low[i] = INFINITY;
		l->high[i] = -INFINITY;
	}
	return 0;
}

void cli_lines_free(struct cli_lines *l)
{
	free(l->low);
	free(l->high);
	free(l->x);
	free(l->y);
	free(l->sum);
	free(l->series);
	free(l->order);
	free(l->drawn);
	*l = (struct cli_lines){0};
}

void cli_lines_add(struct cli_lines *l, int64_t step, int unit, double value)
{
	int place = (int)(step * l->places / l->steps);

	if (place < 0 || place >= l->places || unit < 0 || unit >= l->units)
		return;
	size_t at = (size_t)unit * (size_t)l->places + (size_t)place;
	l->low[at] = fmin(l->low[at], value);
	l->high[at] = fmax(l->high[at], value);
	l->sum[unit] += value;
}

/* Orders units by falling sums, then those in front by their numbers. */
static void put_in_order(struct cli_lines *l, int coloured)
{
	for (int i = 0; i < l->units; i++) {
		int k = i;
		for (; k > 0 && l->sum[l->order[k - 1]] < l->sum[i]; k--)
			l->order[k] = l->order[k - 1];
		l->order[k] = i;
	}
	for (int i = 1; i < coloured; i++) {
		int unit = l->order[i], k = i;
		for (; k > 0 && l->order[k - 1] > unit; k--)
			l->order[k] = l->order[k - 1];
		l->order[k] = unit;
	}
}

/* The points of a unit; returns how many. */
static size_t points_of(const struct cli_lines *l, int unit, double scale, double *x, double *y)
{
	double wide = (double)l->steps / l->places; /* steps of a place */
	size_t n = 0;

	for (int place = 0; place < l->places; place++) {
		size_t at = (size_t)unit * (size_t)l->places + (size_t)place;
		if (l->low[at] > l->high[at])
			continue;
		x[n] = place * wide * scale;
		y[n++] = l->low[at];
		if (wide <= 1)
			continue;
		x[n] = (place + 0.5) * wide * scale;
		y[n++] = l->high[at];
	}
	return n;
}

/* How far the numbers of a unit reach. */
static double reach_of(const struct cli_lines *l, int unit)
{
	double low = INFINITY, high = -INFINITY;

	for (int place = 0; place < l->places; place++) {
		size_t at = (size_t)unit * (size_t)l->places + (size_t)place;
		low = fmin(low, l->low[at]);
		high = fmax(high, l->high[at]);
	}
	return high - low;
}

/* Orders the first ranks by falling reach: what reaches far lies behind. */
static void put_behind(const struct cli_lines *l, int *rank, int count)
{
	for (int i = 0; i < count; i++) {
		int k = i;
		for (; k > 0 && reach_of(l, l->order[rank[k - 1]]) < reach_of(l, l->order[i]); k--)
			rank[k] = rank[k - 1];
		rank[k] = i;
	}
}

void cli_lines_series(struct cli_lines *l, const char *name, double scale, int *coloured)
{
	size_t at = 0;

	*coloured = l->units < *coloured ? l->units : *coloured;
	put_in_order(l, *coloured);
	put_behind(l, l->drawn, *coloured);
	for (int i = 0; i < l->units; i++) {
		int grey = i < l->units - *coloured;
		int rank = grey ? *coloured + i : l->drawn[i - (l->units - *coloured)];
		size_t n = points_of(l, l->order[rank], scale, l->x + at, l->y + at);
		l->series[i] = (struct cli_series){.name = name,
			.colour = grey ? CLI_GREY : rank,
			.x = l->x + at,
			.y = l->y + at,
			.count = n,
			.plain = 1};
		at += n;
	}
}
