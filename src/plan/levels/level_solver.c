/* SPDX-License-Identifier: Apache-2.0 */
/*
 * level_solver.c: builds the convex hulls of all rows, then evaluates top down the schedule that
 * follows them. The hull is a lower bound at every length; if the cost of the schedule is above it,
 * the exact dynamic programme tries to prove or improve the schedule. The recurrence is from
 * H-Revolve; the hulls are our own method.
 *
 * An unlimited top level has one row. Its P has the hull of m = 1 up to the slope
 *
 *     s_c = 1 + min over the vertices of ( w + r + value ) / ( at + 1 )
 *
 * and is a straight line from there on; its O has the hull of the levels below up to s_c and is
 * then also straight. s_c is the cost per step of a long chain. A limited top level is first solved
 * as an unlimited one: if the schedule uses no more places than available, it is optimal.
 */
#include "plan/levels/level_solver.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "base/grow.h"
#include "plan/levels/level_tables.h"
#include "plan/recompute/binomial.h"

#define ROWS_MOST 4096 /* rows per level; a level uses at most that number of places; chosen */
#define SEGMENTS_MOST 600000 /* segments of all hulls, 32 bytes each: 19 MB; chosen */
#define SLOTS_MOST 500000    /* m has 19 bits in the keys of level_memo.c */
#define FAR 20000	     /* longer parts of an unlimited level use a fixed split; chosen */
#define STEEPEST_FIRST 8     /* first limit of slopes, doubled until the hulls are long enough */
#define STEEPEST_MOST 1e13   /* last limit: a step would be advanced 10^13 times */
#define STRAIGHT 1e18	     /* length of an infinite segment */

/* The hull of Revolve with c slots: slope t for beta(c,t) - beta(c,t-1) steps (binomial.h). */
static int revolve_hull(struct neap__levels *x)
{
	long double beta = 1, c = (long double)x->problem.level[0].slots;
	double end = (double)x->problem.length * 4 + 1e6;
	for (double t = 1; t <= x->steepest && x->revolve.end < end; t++) {
		long double next = beta * (c + (long double)t) / (long double)t;
		next = roundl(next);
		if (x->revolve.count > SEGMENTS_MOST ||
			neap__hull_push(&x->revolve, t, (double)(next - beta)) < 0)
			return -1;
		beta = next;
	}
	return 0;
}

static void free_rows(struct neap__hull_rows *rows)
{
	for (int64_t m = 0; m < rows->rows; m++) {
		neap__hull_free(&rows->row[m].p);
		neap__hull_free(&rows->row[m].o);
	}
	free(rows->row);
	rows->row = NULL;
	rows->rows = rows->room = 0;
}

static void free_hulls(struct neap__levels *x)
{
	neap__hull_free(&x->revolve);
	for (int k = 0; k < x->problem.count; k++)
		free_rows(&x->rows[k]);
}

/* Returns 1 if two hulls are equal up to a length. */
static int same(const struct neap__hull *a, const struct neap__hull *b, double upto)
{
	for (int64_t i = 0;; i++) {
		double at = i < a->count ? a->s[i].at : a->end;
		if (at >= upto)
			return 1;
		if (i >= a->count || i >= b->count ||
			fabs(a->s[i].slope - b->s[i].slope) >
				NEAP__HULL_TIE * (1 + a->s[i].slope) ||
			(a->s[i].length != b->s[i].length &&
				fmin(a->s[i].length, b->s[i].length) + at < upto))
			return 0;
	}
}

/* Adds the hulls of the next row. Returns 0, or -1 if the hulls become too large. */
static int next_row(struct neap__levels *x, int k, int64_t *segments)
{
	struct neap__hull_rows *rows = &x->rows[k];
	const struct neap__level *level = &x->problem.level[k];
	int64_t m = rows->rows;
	if (neap__grow(&rows->row, &rows->room, m + 1, sizeof *rows->row) < 0)
		return -1;
	struct neap__hull_row *row = &rows->row[m];
	*row = (struct neap__hull_row){0};
	rows->rows++;
	const struct neap__hull *f = neap__levels_o(x, k, 0), *a = m ? &rows->row[m - 1].o : f;
	int64_t most = SEGMENTS_MOST - *segments;
	if (neap__hull_sweep(&row->p, f, a, 1, 1, 1 + level->read, x->steepest, most) < 0 ||
		neap__hull_sweep(&row->o, f, &row->p, 0, 0, level->write, x->steepest, most) < 0)
		return -1;
	*segments += row->p.count + row->o.count;
	return 0;
}

/* Sets *h to the part of a hull below a slope, continued by a straight line. */
static int straighten(struct neap__hull *h, const struct neap__hull *from, double slope)
{
	struct neap__hull cut = {0};
	for (int64_t i = 0;
		i < from->count && from->s[i].slope < slope - NEAP__HULL_TIE * (1 + slope); i++)
		if (neap__hull_push(&cut, from->s[i].slope, from->s[i].length) < 0)
			return -1;
	neap__hull_free(h);
	*h = cut;
	return neap__hull_push(h, slope, STRAIGHT);
}

/* Cuts the row of an unlimited level at s_c. Returns 0, 1 if s_c is not reached yet, or -1. */
static int unlimited_row(struct neap__levels *x, int k)
{
	struct neap__hull_rows *rows = &x->rows[k];
	struct neap__hull *p = &rows->row[0].p, *o = &rows->row[0].o;
	double fixed = x->problem.level[k].write + x->problem.level[k].read;
	double t = fixed;
	for (int64_t i = 0; i < p->count; i++) {
		double at = p->s[i].at + p->s[i].length;
		t = fmin(t, (fixed + p->s[i].value + p->s[i].slope * p->s[i].length) / (at + 1));
	}
	if (t > x->steepest)
		return 1;
	if (straighten(p, p, t + 1) < 0 || straighten(o, neap__levels_o(x, k, 0), t + 1) < 0)
		return -1;
	double base = neap__hull_below(p, t + 1) + neap__hull_below(o, t + 1);
	double stride = 1 + neap__hull_below(p, t);
	double far = fmax(FAR, 4 * (base + stride));
	rows->stride = (int64_t)fmin(stride, 1e15);
	rows->far = (int64_t)fmin(far, 1e15);
	return 0;
}

/* The hull of the result: O with all places of all levels. */
static const struct neap__hull *top_hull(const struct neap__levels *x)
{
	return neap__levels_o(x, x->problem.count - 1, INT64_MAX);
}

/* Builds all rows for slopes up to `steepest`. Returns 0, 1 if that is too flat, -1 too large. */
static int build(struct neap__levels *x)
{
	int64_t segments = 0;
	double l = (double)x->problem.length;
	free_hulls(x);
	if (x->closed && revolve_hull(x) < 0)
		return -1;
	for (int k = x->closed; k < x->problem.count; k++) {
		struct neap__hull_rows *rows = &x->rows[k];
		int64_t slots = rows->unlimited ? 1 : x->problem.level[k].slots;
		for (int64_t m = 1; m <= slots; m++) {
			if (next_row(x, k, &segments) < 0)
				return -1;
			if (m > 1 && rows->row[m - 1].o.end >= l &&
				same(&rows->row[m - 1].o, &rows->row[m - 2].o, l))
				break;
			if (m == ROWS_MOST) {
				x->truncated |= m < slots;
				x->problem.level[k].slots = m;
				break;
			}
		}
		int rc = rows->unlimited ? unlimited_row(x, k) : 0;
		if (rc)
			return rc;
	}
	return top_hull(x)->end < l;
}

/*
 * Builds hulls that reach the length. Then adds slopes that are up to `slack` steeper, unless they
 * become too large: parts whose deficiency (level_dp.c) is not 0 have such slopes.
 */
static int build_all(struct neap__levels *x)
{
	double l = (double)x->problem.length, slack = 3;
	for (int k = 0; k < x->problem.count; k++)
		slack += x->problem.level[k].write + x->problem.level[k].read;
	int rc = 1;
	for (x->steepest = STEEPEST_FIRST; rc == 1 && x->steepest < STEEPEST_MOST; x->steepest *= 2)
		rc = build(x);
	if (rc)
		return neap__fail(NEAP_EINFEASIBLE, "too few places for as many steps");
	double reached = x->steepest / 2;
	x->steepest = neap__hull_slope(top_hull(x), l, reached) + slack;
	if (x->steepest > 64 * reached || build(x) != 0) {
		x->steepest = reached;
		if (build(x) != 0)
			return neap__fail(NEAP_EINFEASIBLE, "too few places for as many steps");
	}
	return 0;
}

/*
 * Copies the problem with costs in units of one advance, without levels that have no places or are
 * above an unlimited level. If an advance costs nothing, it gets 1/1000 of the cost of the cheapest
 * transfer (chosen), so that fewer advances are still preferred.
 */
static void normalise(struct neap__levels *x, const struct neap__levels_problem *levels)
{
	double unit = levels->advance;
	if (unit == 0) {
		unit = INFINITY;
		for (int k = 0; k < levels->count; k++) {
			const struct neap__level *level = &levels->level[k];
			unit = level->write > 0 ? fmin(unit, level->write) : unit;
			unit = level->read > 0 ? fmin(unit, level->read) : unit;
		}
		unit = isinf(unit) ? 1 : unit * 1e-3;
	}
	x->problem = *levels;
	x->problem.advance = unit;
	x->problem.count = 0;
	for (int k = 0; k < levels->count; k++) {
		struct neap__level *level = &x->problem.level[x->problem.count];
		*level = levels->level[k];
		level->write /= unit;
		level->read /= unit;
		int unlimited = level->slots >= levels->length;
		if (level->slots < 1)
			continue;
		x->problem.count++;
		if (unlimited)
			level->slots = levels->length;
		else if (level->slots > SLOTS_MOST && x->problem.count > 1)
			level->slots = SLOTS_MOST, x->truncated = 1;
		if (unlimited)
			break;
	}
}

/* 1/4 if all costs are small multiples of 1/4, so that sums are exact; otherwise 0. */
static double quantum(const struct neap__levels *x, double cost)
{
	for (int k = 0; k < x->problem.count; k++)
		if (x->problem.level[k].write * 4 != floor(x->problem.level[k].write * 4) ||
			x->problem.level[k].read * 4 != floor(x->problem.level[k].read * 4))
			return 0;
	return cost < 1e14 ? 0.25 : 0;
}

static int top_value(struct neap__levels *x, const struct neap__level_value **value)
{
	int k = x->problem.count - 1;
	struct neap__level_part all = {NEAP__LEVEL_LIVE, k,
		x->rows[k].unlimited ? 1 : x->problem.level[k].slots, x->problem.length};
	return neap__level_memo_evaluate(x, all, value);
}

/* If cost and hull differ: runs the dynamic programme and uses its schedule if it is cheaper. */
static int prove(struct neap__levels *x, int64_t work)
{
	const struct neap__level_value *value;
	double cost = x->counts.cost, optimum = cost, q = quantum(x, cost);
	double tolerance = 1e-12 * cost + 1e-12;
	if (x->lower > cost - (q > 0 ? q - tolerance : tolerance)) {
		x->lower = cost;
		return 0;
	}
	int rc = neap__level_dp(x, cost - (q > 0 ? q / 2 : tolerance), work, &optimum);
	if (rc < 0)
		return rc;
	if (rc == 1 && optimum < cost) {
		neap__level_memo_clear(&x->memo);
		NEAP_TRY(top_value(x, &value));
		x->counts = value->c;
	} else {
		neap__level_dp_free(x->tables);
		x->tables = NULL;
	}
	if (rc == 1)
		x->lower = x->counts.cost;
	return 0;
}

static int solve_with(struct neap__levels *x, int64_t work)
{
	const struct neap__level_value *value;
	int top = x->problem.count - 1, guide = 0;
	struct neap__level *first = &x->problem.level[0];
	x->closed = first->write == 0 && first->read == 0;
	if (!x->closed && (x->problem.revolve ||
				  (first->slots > ROWS_MOST && first->slots < x->problem.length)))
		x->closed = guide = 1; /* Revolve's order ignores the cost of copies: not optimal */
	x->rows[top].unlimited =
		x->problem.level[top].slots >= x->problem.length && !(top == 0 && x->closed);
	if (top > 0 || !x->closed)
		NEAP_TRY(build_all(x));
	NEAP_TRY(top_value(x, &value));
	x->counts = value->c;
	if (isinf(value->c.cost))
		return neap__fail(NEAP_EINFEASIBLE, "more than 2^62 steps");
	if (top == 0 && x->closed) {
		x->lower = guide ? 0 : x->counts.cost;
		return 0;
	}
	x->lower = neap__hull_at(
		neap__levels_o(x, top, 1 << 20), (double)x->problem.length, x->steepest);
	if (guide || x->truncated) {
		x->lower = 0;
		return 0;
	}
	return prove(x, work);
}

static int attempt(
	struct neap__levels **solved, const struct neap__levels_problem *levels, int64_t work)
{
	struct neap__levels *x = calloc(1, sizeof *x);
	if (!x)
		return neap__fail(-ENOMEM, "plan: out of memory");
	normalise(x, levels);
	int rc = 0;
	if (levels->length > 0 && x->problem.count == 0)
		rc = neap__fail(NEAP_EINFEASIBLE, "no place for a state");
	else if (levels->length > 0)
		rc = solve_with(x, work);
	if (levels->advance == 0)
		x->lower = 0; /* the cost of an advance was invented, so the bound does not hold */
	if (rc < 0) {
		neap__levels_free(x);
		return rc;
	}
	*solved = x;
	return 0;
}

int neap__levels_solve(
	struct neap__levels **solved, const struct neap__levels_problem *levels, int64_t work)
{
	struct neap__levels_problem unlimited_top = *levels;
	int top = levels->count - 1;
	while (top > 0 && levels->level[top].slots < 1)
		top--;
	if (top < 0 || levels->length < 2 || levels->level[top].slots >= levels->length ||
		levels->level[top].slots < 1)
		return attempt(solved, levels, work);
	unlimited_top.level[top].slots = levels->length;
	int rc = attempt(solved, &unlimited_top, work);
	if (rc == 0) {
		int k = (*solved)->problem.count - 1;
		if ((*solved)->problem.level[k].tier != levels->level[top].tier ||
			(*solved)->counts.peak[k] <= levels->level[top].slots)
			return 0;
		neap__levels_free(*solved);
		*solved = NULL; /* the next attempt may fail */
	} else if (rc != NEAP_EINFEASIBLE) {
		return rc;
	}
	return attempt(solved, levels, work);
}

int64_t neap__levels_period(const struct neap__levels_problem *levels, double fixed)
{
	struct neap__levels x = {0};
	struct neap__levels_problem longest = *levels;
	longest.length = (int64_t)1 << 50;
	normalise(&x, &longest);
	struct neap__level *level = &x.problem.level[0];
	double best = fixed / x.problem.advance, period = 1;
	x.closed = (level->write == 0 && level->read == 0) || levels->revolve;
	for (x.steepest = STEEPEST_FIRST; x.problem.count > 0 && best > 0; x.steepest *= 2) {
		double least = best;
		if (build(&x) < 0)
			break;
		const struct neap__hull *h = top_hull(&x);
		for (int64_t i = 0; i < h->count; i++) {
			double at = h->s[i].at + h->s[i].length;
			double value = h->s[i].value + h->s[i].slope * h->s[i].length;
			value = (fixed / x.problem.advance + value) / (at + 1);
			if (value <= least * (1 + 1e-12))
				least = value, period = at + 1;
		}
		if (least <= x.steepest)
			break;
	}
	free_hulls(&x);
	return (int64_t)fmin(period, 1e15);
}

void neap__levels_free(struct neap__levels *x)
{
	if (!x)
		return;
	free_hulls(x);
	neap__level_memo_clear(&x->memo);
	neap__level_dp_free(x->tables);
	free(x);
}

const struct neap__levels_problem *neap__levels_in_use(const struct neap__levels *x)
{
	return &x->problem;
}

const struct neap__level_counts *neap__levels_counts(const struct neap__levels *x)
{
	return &x->counts;
}

double neap__levels_lower(const struct neap__levels *x)
{
	return x->lower * x->problem.advance;
}

int neap__levels_closed(const struct neap__levels *x)
{
	return x->closed;
}

int neap__levels_writes(const struct neap__levels *x, int k, int64_t m, int64_t l)
{
	if (x->rows[k].unlimited)
		m = 1;
	if ((x->rows[k].unlimited && l > x->rows[k].far) || (k == 0 && x->closed))
		return 1;
	const struct neap__level_value *v =
		neap__level_memo_find(x, (struct neap__level_part){NEAP__LEVEL_LIVE, k, m, l});
	return v && v->choice != 0;
}

int64_t neap__levels_split(const struct neap__levels *x, int k, int64_t m, int64_t l)
{
	if (x->rows[k].unlimited)
		m = 1;
	if (x->rows[k].unlimited && l > x->rows[k].far)
		return x->rows[k].stride;
	const struct neap__level_value *v =
		neap__level_memo_find(x, (struct neap__level_part){NEAP__LEVEL_SAVED, k, m, l});
	return v ? v->choice : 0;
}
