/* SPDX-License-Identifier: Apache-2.0 */
/*
 * level_dp.c: the recurrences of level_solver.h bottom up, row by row, with rising l. Only the
 * parts are computed that a schedule cheaper than a known one can meet.
 *
 *     F          O or P of a row; F* is its conjugate (convex_hull.h)
 *     D(l; s)    F(l) - s l + F*(s), the deficiency of a part at slope s; 0 or more
 *     Delta      known cost - ( s l - O*(s) ) for the whole chain, at its slope s
 *
 * The deficiencies of the parts of a split add up to that of the whole, where s falls by one
 * with each sweep over the steps. So every part of a cheaper schedule has D <= Delta at one of
 * s, s-1, ...; those lengths form one window for each slope. The hull stands for F in D, which
 * makes the windows no smaller. In a part, splits are tried while their bound by the hulls,
 *
 *     O(l-x) + x + r + P(x-1),
 *
 * which is convex in x and least at the centre, is below the best cost found. Ours.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "base/grow.h"
#include "plan/levels/level_tables.h"

#define LENGTH_MOST 4000000 /* four columns of doubles: 128 MB */
#define CELLS_MOST 4000000  /* decisions of 8 bytes: 32 MB */
#define EXHAUSTIVE_MOST 64  /* lengths whose splits are all tried: cheaper than bounds */
#define BOUND_WORK 100	    /* look-ups that the search for a window or interval counts as */
#define CELL_WORK 4	    /* and a part without that search */
#define ROUNDING 1e-14	    /* relative; two costs that differ by less are equal */

/* Lengths, or splits, from..to. */
struct window {
	int64_t from, to;
};

struct row {
	struct neap__levels *x;
	int k;
	int64_t m;
	const struct neap__hull *right, *own; /* hulls of O_k,m-1 and P_k,m */
	const double *f, *before;	      /* f_k, O_k,m-1 */
	double *p, *o;			      /* P_k,m, O_k,m */
	double read, write;
	struct window *windows;
	int64_t count;
	struct neap__level_cells *cells;
};

struct level_job {
	struct neap__levels *x;
	int64_t length, cells, work;
	double slope, delta; /* s of the whole chain; Delta */
	struct window *windows;
	int64_t room;
	double *column[4];
};

static int cell_add(struct neap__level_cells *c, int64_t l, int64_t choice, int writes)
{
	if (neap__grow(&c->cell, &c->room, c->count + 1, sizeof *c->cell) < 0)
		return neap__fail(-ENOMEM, "plan: out of memory");
	c->cell[c->count++] =
		(struct neap__level_cell){(int32_t)l, writes ? (int32_t)choice : ~(int32_t)choice};
	return 0;
}

int64_t neap__level_dp_choice(const struct neap__levels *x, struct neap__level_part s)
{
	if (s.k < x->closed || s.m < 1)
		return -1;
	int64_t rows = x->tables->rows[s.k];
	const struct neap__level_cells *c = &x->tables->row[s.k][(s.m > rows ? rows : s.m) - 1];
	int64_t low = 0, high = c->count;
	while (low < high) {
		int64_t i = low + (high - low) / 2;
		if (c->cell[i].l < s.l)
			low = i + 1;
		else
			high = i;
	}
	if (low == c->count || c->cell[low].l != s.l)
		return -1;
	int32_t choice = c->cell[low].choice;
	if (s.side == NEAP__LEVEL_LIVE)
		return choice >= 0;
	return choice >= 0 ? choice : ~choice;
}

void neap__level_dp_free(struct neap__level_tables *t)
{
	if (!t)
		return;
	for (int k = 0; k < NEAP__LEVELS_MOST; k++) {
		for (int64_t m = 0; t->row[k] && m < t->rows[k]; m++)
			free(t->row[k][m].cell);
		free(t->row[k]);
	}
	free(t);
}

/* D(l; slope) of a hull whose conjugate at the slope is given. */
static double excess(
	const struct neap__hull *h, double l, double slope, double conjugate, double steepest)
{
	return neap__hull_at(h, l, steepest) - slope * l + conjugate;
}

/* The lengths with D <= Delta at a slope. */
static struct window window_around(
	const struct level_job *j, const struct neap__hull *h, double slope)
{
	double at = neap__hull_below(h, slope), steepest = j->x->steepest;
	double conjugate = slope * at - neap__hull_at(h, at, steepest);
	int64_t most = j->length, centre = at < (double)most ? (int64_t)at : most;
	int64_t low = 0, high = centre;
	if (excess(h, (double)centre, slope, conjugate, steepest) > j->delta)
		return (struct window){1, 0};
	while (low < high) { /* finds the first */
		int64_t i = low + (high - low) / 2;
		if (excess(h, (double)i, slope, conjugate, steepest) <= j->delta)
			high = i;
		else
			low = i + 1;
	}
	struct window w = {low, centre};
	low = centre, high = most;
	while (low < high) { /* finds the last */
		int64_t i = low + (high - low + 1) / 2;
		if (excess(h, (double)i, slope, conjugate, steepest) <= j->delta)
			low = i;
		else
			high = i - 1;
	}
	w.to = low;
	return w;
}

static int by_from(const void *a, const void *b)
{
	const struct window *x = a, *y = b;
	return x->from < y->from ? -1 : x->from > y->from;
}

/* The windows of a row, disjoint and ascending, from length 1 on. */
static int windows(struct level_job *j, const struct neap__hull *h, int64_t *count)
{
	int64_t n = 0;
	for (double s = j->slope; s > -1 && j->work >= 0; s--) {
		j->work -= BOUND_WORK;
		if (neap__grow(&j->windows, &j->room, n + 1, sizeof *j->windows) < 0)
			return neap__fail(-ENOMEM, "plan: out of memory");
		struct window w = window_around(j, h, s);
		if (w.from < 1)
			w.from = 1;
		if (w.from <= w.to)
			j->windows[n++] = w;
	}
	qsort(j->windows, (size_t)n, sizeof *j->windows, by_from);
	*count = 0;
	for (int64_t i = 0; i < n; i++) {
		struct window *last = &j->windows[*count - 1], w = j->windows[i];
		if (*count > 0 && w.from <= last->to + 1)
			last->to = w.to > last->to ? w.to : last->to;
		else
			j->windows[(*count)++] = w;
	}
	return 0;
}

/* The least cost of the split x by the hulls. */
static double bound(const struct row *r, int64_t l, int64_t x)
{
	double steepest = r->x->steepest;
	return neap__hull_at(r->right, (double)(l - x), steepest) + (double)x + r->read +
	       neap__hull_at(r->own, (double)(x - 1), steepest);
}

/* The splits whose bound is `limit` or less: an interval around the centre. */
static struct window splits_below(const struct row *r, int64_t l, int64_t centre, double limit)
{
	int64_t low = 1, high = centre;
	while (low < high) {
		int64_t i = low + (high - low) / 2;
		if (bound(r, l, i) <= limit)
			high = i;
		else
			low = i + 1;
	}
	struct window w = {low, centre};
	low = centre, high = l;
	while (low < high) {
		int64_t i = low + (high - low + 1) / 2;
		if (bound(r, l, i) <= limit)
			low = i;
		else
			high = i - 1;
	}
	w.to = low;
	return w;
}

/* Computes P and O of one length; returns the work. */
static int64_t compute_cell(struct row *r, int64_t l, int64_t *choice)
{
	double best = r->f[l];
	struct window w = {1, l};
	*choice = 0;
	if (l > EXHAUSTIVE_MOST) {
		int64_t x = neap__hull_centre(r->right, r->own, l);
		double cost = (double)x + r->before[l - x] + r->read + r->p[x - 1];
		if (cost < best)
			best = cost, *choice = x;
		w = splits_below(r, l, x, best * (1 - ROUNDING));
	}
	for (int64_t x = w.from; x <= w.to; x++) {
		double cost = (double)x + r->before[l - x] + r->read + r->p[x - 1];
		if (cost < best)
			best = cost, *choice = x;
	}
	r->p[l] = best;
	double saved = best + r->write;
	r->o[l] = saved < r->f[l] ? saved : r->f[l];
	return w.to - w.from + (l > EXHAUSTIVE_MOST ? BOUND_WORK : CELL_WORK);
}

/* Computes all windows of a row. Returns 1, 0 where the work is too little, or -ENOMEM. */
static int compute(struct level_job *j, struct row *r)
{
	for (int64_t i = 0; i < r->count; i++)
		for (int64_t l = r->windows[i].from; l <= r->windows[i].to; l++) {
			int64_t choice;
			j->work -= compute_cell(r, l, &choice);
			if (j->work < 0 || ++j->cells > CELLS_MOST)
				return 0;
			if (isinf(r->o[l]))
				continue;
			NEAP_TRY(cell_add(r->cells, l, choice, r->o[l] < r->f[l]));
		}
	return 1;
}

static void clear(double *column, int64_t length)
{
	column[0] = 0;
	for (int64_t l = 1; l <= length; l++)
		column[l] = INFINITY;
}

/* All rows of a level; column[0] holds f_k before and O_k,c_k afterwards. Same returns. */
static int level(struct level_job *j, int k)
{
	struct neap__levels *x = j->x;
	struct neap__level_tables *t = x->tables;
	int unlimited = x->rows[k].unlimited;
	int64_t slots = unlimited ? 1 : x->problem.level[k].slots;
	size_t bytes = (size_t)(j->length + 1) * sizeof(double);
	double *f = j->column[0], *before = j->column[1], *p = j->column[2], *o = j->column[3];
	t->row[k] = calloc((size_t)slots, sizeof *t->row[k]);
	if (!t->row[k])
		return neap__fail(-ENOMEM, "plan: out of memory");
	memcpy(before, f, bytes);
	for (int64_t m = 1; m <= slots; m++) {
		struct row r = {.x = x,
			.k = k,
			.m = m,
			.right = neap__levels_o(x, k, unlimited ? 1 : m - 1),
			.own = neap__levels_p(x, k, m),
			.f = f,
			.before = unlimited ? o : before,
			.p = p,
			.o = o,
			.read = x->problem.level[k].read,
			.write = x->problem.level[k].write,
			.cells = &t->row[k][m - 1]};
		t->rows[k] = m;
		j->work -= j->length / 4;
		if (j->work < 0)
			return 0;
		clear(p, j->length);
		memcpy(o, f, bytes);
		NEAP_TRY(windows(j, r.own, &r.count));
		r.windows = j->windows;
		int rc = compute(j, &r);
		if (rc != 1)
			return rc;
		/* One place more changed no length at all, so none of the later rows will. */
		if (r.count == 1 && r.windows[0].from == 1 && r.windows[0].to == j->length &&
			memcmp(o, before, bytes) == 0)
			break;
		memcpy(before, o, bytes);
	}
	memcpy(f, before, bytes);
	return 1;
}

/* f of the first level that is computed: Revolve's cost where level 0 is closed. */
static void first_column(const struct neap__levels *x, double *f, int64_t length)
{
	clear(f, length);
	if (!x->closed)
		return;
	long double c = (long double)x->problem.level[0].slots, beta = 1;
	double t = 0;
	for (int64_t l = 1; l <= length; l++) {
		while (beta < (long double)(l + 1)) {
			t++;
			beta = roundl(beta * (c + (long double)t) / (long double)t);
		}
		f[l] = f[l - 1] + t;
	}
}

int neap__level_dp(struct neap__levels *x, double most, int64_t work, double *cost)
{
	int64_t length = x->problem.length;
	int top = x->problem.count - 1, rc = 1;
	const struct neap__hull *h = neap__levels_o(x, top, INT64_MAX);
	struct level_job j = {.x = x, .length = length, .work = work};
	double *room = NULL;

	*cost = INFINITY;
	if (length > LENGTH_MOST || work < length)
		return 0;
	j.slope = neap__hull_slope(h, (double)length, x->steepest);
	j.delta = most - neap__hull_at(h, (double)length, x->steepest) + 1e-11 * most;
	x->tables = calloc(1, sizeof *x->tables);
	room = malloc(4 * (size_t)(length + 1) * sizeof *room);
	if (!x->tables || !room)
		rc = neap__fail(-ENOMEM, "plan: out of memory");
	for (int i = 0; i < 4 && rc == 1; i++)
		j.column[i] = room + i * (length + 1);
	if (rc == 1)
		first_column(x, j.column[0], length);
	for (int k = x->closed; k <= top && rc == 1; k++)
		rc = level(&j, k);
	if (rc == 1 && j.column[0][length] < most)
		*cost = j.column[0][length];
	free(room);
	free(j.windows);
	return rc;
}
