/* SPDX-License-Identifier: Apache-2.0 */
/* linear_program.c: dual simplex on the dense dictionary of linear_program.h. */
#include "plan/bound/linear_program.h"

#include <math.h>
#include <string.h>

#define N NEAP__LINEAR_PROGRAM_VARS /* of the arrays; the first lp->vars entries are used */
#define PIVOTS 600		    /* per call, chosen; the bound is valid after any number */
#define TINY 1e-13L		    /* a pivot below it would be rounding: rows are scaled to 1 */
#define VIOLATED -1e-15L	    /* b_i below it: the row is violated; long double has 1e-19 */
#define RATIO_TIE 1e-15L  /* ratios closer than this are equal: the larger pivot is taken */
#define DUAL_SLACK 1e-11L /* relative rounding of a dual row in the final check */

static void slack_basis(struct neap__linear_program *lp)
{
	for (int j = 0; j < lp->vars; j++) {
		lp->at[j] = j;
		lp->c[j] = lp->cost[j];
	}
}

void neap__linear_program_init(struct neap__linear_program *lp, int vars, const double *cost)
{
	lp->vars = vars;
	lp->rows = 0;
	memcpy(lp->cost, cost, (size_t)vars * sizeof *cost);
	slack_basis(lp);
}

/* Writes row i, which was added last, in terms of the variables that are 0 now. */
static void enter_row(struct neap__linear_program *lp, int i)
{
	const struct neap__linear_program_row *row = &lp->row[i];
	lp->basic[i] = lp->vars + i;
	lp->b[i] = -row->rhs;
	for (int k = 0; k < lp->vars; k++)
		lp->a[i][k] = lp->at[k] < lp->vars ? row->g[lp->at[k]] : 0;
	for (int h = 0; h < i; h++) {
		if (lp->basic[h] >= lp->vars)
			continue;
		double g = row->g[lp->basic[h]];
		lp->b[i] += g * lp->b[h];
		for (int k = 0; k < lp->vars; k++)
			lp->a[i][k] += g * lp->a[h][k];
	}
}

void neap__linear_program_add(
	struct neap__linear_program *lp, const struct neap__linear_program_row *row)
{
	double most = fabs(row->rhs);
	if (lp->rows == NEAP__LINEAR_PROGRAM_ROWS)
		return;
	for (int j = 0; j < lp->vars; j++)
		most = fmax(most, fabs(row->g[j]));
	if (!(most > 0 && most < INFINITY))
		return;
	struct neap__linear_program_row *to = &lp->row[lp->rows];
	for (int j = 0; j < lp->vars; j++)
		to->g[j] = row->g[j] / most;
	to->rhs = row->rhs / most;
	enter_row(lp, lp->rows++);
}

/* The most violated row, -1: none. After half the pivots the first by number, to avoid cycles. */
static int leaving(const struct neap__linear_program *lp, int pivots)
{
	int best = -1;
	for (int i = 0; i < lp->rows; i++) {
		if (lp->b[i] >= VIOLATED)
			continue;
		if (best < 0 || (pivots < PIVOTS / 2 ? lp->b[i] < lp->b[best]
						     : lp->basic[i] < lp->basic[best]))
			best = i;
	}
	return best;
}

/* The variable that keeps all costs 0 or more when row r is pivoted; -1: none. */
static int entering(const struct neap__linear_program *lp, int r)
{
	int best = -1;
	for (int j = 0; j < lp->vars; j++) {
		long double a = lp->a[r][j];
		if (a <= TINY)
			continue;
		long double here = lp->c[j] / a,
			    least = best < 0 ? 0 : lp->c[best] / lp->a[r][best];
		if (best < 0 || here < least - RATIO_TIE || (here <= least && a > lp->a[r][best]))
			best = j;
	}
	return best;
}

static void pivot(struct neap__linear_program *lp, int r, int e)
{
	long double p = lp->a[r][e];
	int name = lp->basic[r];
	lp->basic[r] = lp->at[e];
	lp->at[e] = name;
	lp->b[r] = -lp->b[r] / p;
	for (int j = 0; j < lp->vars; j++)
		lp->a[r][j] = j == e ? 1 / p : -lp->a[r][j] / p;
	for (int i = 0; i < lp->rows; i++) {
		long double f = lp->a[i][e];
		if (i == r || f == 0)
			continue;
		lp->b[i] += f * lp->b[r];
		for (int j = 0; j < lp->vars; j++)
			lp->a[i][j] = j == e ? f * lp->a[r][e] : lp->a[i][j] + f * lp->a[r][j];
	}
	long double f = lp->c[e];
	for (int j = 0; j < lp->vars; j++)
		lp->c[j] = j == e ? f * lp->a[r][e] : lp->c[j] + f * lp->a[r][j];
	for (int j = 0; j < lp->vars; j++)
		if (lp->c[j] < 0)
			lp->c[j] = 0; /* rounding; value() checks the result */
}

/* The objective of the multipliers y, sum_i y_i rhs_i, if they satisfy y A <= c; else 0. */
static double value(const struct neap__linear_program *lp)
{
	long double sum[N] = {0}, size[N], bound = 0;
	for (int j = 0; j < lp->vars; j++)
		size[j] = 1;
	for (int k = 0; k < lp->vars; k++) {
		if (lp->at[k] < lp->vars)
			continue;
		const struct neap__linear_program_row *row = &lp->row[lp->at[k] - lp->vars];
		bound += lp->c[k] * row->rhs;
		for (int j = 0; j < lp->vars; j++) {
			sum[j] += lp->c[k] * row->g[j];
			size[j] += fabsl(lp->c[k] * row->g[j]);
		}
	}
	for (int j = 0; j < lp->vars; j++)
		if (!(sum[j] <= lp->cost[j] + DUAL_SLACK * size[j]))
			return 0;
	return bound > 0 ? (double)bound : 0;
}

static void pivots(struct neap__linear_program *lp)
{
	for (int n = 0; n < PIVOTS; n++) {
		int r = leaving(lp, n);
		int e = r < 0 ? -1 : entering(lp, r);
		if (e < 0)
			break;
		pivot(lp, r, e);
	}
}

/* Solves from the slack basis again, without the rounding of the pivots so far. */
static void restart(struct neap__linear_program *lp)
{
	slack_basis(lp);
	for (int i = 0; i < lp->rows; i++)
		enter_row(lp, i);
	pivots(lp);
}

double neap__linear_program_bound(struct neap__linear_program *lp, double *x)
{
	pivots(lp);
	double found = value(lp);
	if (found == 0) {
		restart(lp);
		found = value(lp);
	}
	if (x)
		memset(x, 0, (size_t)lp->vars * sizeof *x);
	for (int i = 0; x && i < lp->rows; i++)
		if (lp->basic[i] < lp->vars)
			x[lp->basic[i]] = (double)lp->b[i];
	return found;
}
