/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear_program.c: dual simplex on a dense dictionary. Row i says basic_i = b_i + sum a_ij x_j
 * over the variables that are 0 now. The costs c_j stay 0 or more, so c is a feasible dual
 * solution. Variables 0..n-1 are those of the program; n + i is the slack of row i.
 */
#include "plan/bound/linear_program.h"

#include <math.h>
#include <stdlib.h>
#include "plan/bound/stage_bound.h"

#define N NEAP__LINEAR_PROGRAM_VARS /* of the arrays; d->vars of them are there */
#define ROUNDS 600		    /* pivots at most; the bound is valid after any number */
#define TINY 1e-13L		    /* a pivot below it would be rounding: rows are scaled to 1 */
#define VIOLATED -1e-12L	    /* b_i below it: the row is violated */
#define RATIO_TIE 1e-15L  /* ratios closer than this are equal: the larger pivot is taken */
#define DUAL_SLACK 1e-11L /* relative rounding of a dual row in the final check */

struct dictionary {
	int vars, rows, at[N], basic[NEAP__LINEAR_PROGRAM_ROWS];
	long double c[N], b[NEAP__LINEAR_PROGRAM_ROWS], a[NEAP__LINEAR_PROGRAM_ROWS][N];
};

void neap__linear_program_add(
	struct neap__linear_program *lp, const struct neap__linear_program_row *row)
{
	double most = fabs(row->rhs);
	if (lp->rows == NEAP__LINEAR_PROGRAM_ROWS)
		return; /* fewer rows: a weaker bound, still one */
	for (int j = 0; j < N; j++)
		most = fmax(most, fabs(row->g[j]));
	if (!(most > 0 && most < INFINITY))
		return;
	struct neap__linear_program_row *to = &lp->row[lp->rows++];
	for (int j = 0; j < N; j++)
		to->g[j] = row->g[j] / most;
	to->rhs = row->rhs / most;
}

static void init(struct dictionary *d, const struct neap__linear_program *lp)
{
	d->vars = lp->vars ? lp->vars : N;
	d->rows = lp->rows;
	for (int j = 0; j < d->vars; j++) {
		d->at[j] = j;
		d->c[j] = lp->cost[j];
	}
	for (int i = 0; i < d->rows; i++) {
		d->basic[i] = d->vars + i;
		d->b[i] = -lp->row[i].rhs;
		for (int j = 0; j < d->vars; j++)
			d->a[i][j] = lp->row[i].g[j];
	}
}

/* The most violated row, -1: none. After half the rounds the first by number: no cycles. */
static int leaving(const struct dictionary *d, int round)
{
	int best = -1;
	for (int i = 0; i < d->rows; i++) {
		if (d->b[i] >= VIOLATED)
			continue;
		if (best < 0 ||
			(round < ROUNDS / 2 ? d->b[i] < d->b[best] : d->basic[i] < d->basic[best]))
			best = i;
	}
	return best;
}

/* The variable that keeps all costs 0 or more when row r is pivoted; -1: none. */
static int entering(const struct dictionary *d, int r)
{
	int best = -1;
	for (int j = 0; j < d->vars; j++) {
		long double a = d->a[r][j];
		if (a <= TINY)
			continue;
		long double here = d->c[j] / a, least = best < 0 ? 0 : d->c[best] / d->a[r][best];
		if (best < 0 || here < least - RATIO_TIE || (here <= least && a > d->a[r][best]))
			best = j;
	}
	return best;
}

static void pivot(struct dictionary *d, int r, int e)
{
	long double p = d->a[r][e];
	int name = d->basic[r];
	d->basic[r] = d->at[e];
	d->at[e] = name;
	d->b[r] = -d->b[r] / p;
	for (int j = 0; j < d->vars; j++)
		d->a[r][j] = j == e ? 1 / p : -d->a[r][j] / p;
	for (int i = 0; i < d->rows; i++) {
		long double f = d->a[i][e];
		if (i == r || f == 0)
			continue;
		d->b[i] += f * d->b[r];
		for (int j = 0; j < d->vars; j++)
			d->a[i][j] = j == e ? f * d->a[r][e] : d->a[i][j] + f * d->a[r][j];
	}
	long double f = d->c[e];
	for (int j = 0; j < d->vars; j++)
		d->c[j] = j == e ? f * d->a[r][e] : d->c[j] + f * d->a[r][j];
	for (int j = 0; j < d->vars; j++)
		if (d->c[j] < 0)
			d->c[j] = 0; /* rounding; value() checks the outcome */
}

/* The objective of the multipliers y, sum_i y_i rhs_i, if they satisfy y A <= c; else 0. */
static double value(const struct dictionary *d, const struct neap__linear_program *lp)
{
	long double sum[N] = {0}, size[N], bound = 0;
	for (int j = 0; j < d->vars; j++)
		size[j] = 1;
	for (int k = 0; k < d->vars; k++) {
		if (d->at[k] < d->vars)
			continue;
		const struct neap__linear_program_row *row = &lp->row[d->at[k] - d->vars];
		bound += d->c[k] * row->rhs;
		for (int j = 0; j < d->vars; j++) {
			sum[j] += d->c[k] * row->g[j];
			size[j] += fabsl(d->c[k] * row->g[j]);
		}
	}
	for (int j = 0; j < d->vars; j++)
		if (!(sum[j] <= lp->cost[j] + DUAL_SLACK * size[j]))
			return 0;
	return (double)bound;
}

double neap__linear_program_bound(const struct neap__linear_program *lp)
{
	struct dictionary *d = malloc(sizeof *d);
	if (!d) {
		neap__bound_note_memory();
		return 0;
	}
	init(d, lp);
	for (int round = 0; round < ROUNDS; round++) {
		int r = leaving(d, round);
		int e = r < 0 ? -1 : entering(d, r);
		if (e < 0)
			break;
		pivot(d, r, e);
	}
	double bound = value(d, lp);
	free(d);
	return bound > 0 ? bound : 0;
}
