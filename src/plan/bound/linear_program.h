/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear_program.h: small linear programs whose every iterate is a valid lower bound, and to which
 * rows can be added after they were solved (cutting planes).
 *
 *     minimise sum_j c_j x_j   subject to   x_j >= 0  and, for each row,  sum_j g_j x_j >= rhs
 *
 * All costs c_j are 0 or more. The slack basis is therefore dual feasible, and the dual simplex
 * method may stop at any time: its objective never exceeds the optimum. A new row keeps the basis
 * dual feasible, so solving continues from the last solution.
 */
#ifndef NEAP_PLAN_BOUND_LINEAR_PROGRAM_H
#define NEAP_PLAN_BOUND_LINEAR_PROGRAM_H

/* Sizes for turn_program.c: seven variables and five for each of two groups of tiers. */
#define NEAP__LINEAR_PROGRAM_VARS 17
#define NEAP__LINEAR_PROGRAM_ROWS                                                                  \
	480 /* chosen; at most 150 were needed in 945 settings of gaps.py */

struct neap__linear_program_row {
	double g[NEAP__LINEAR_PROGRAM_VARS], rhs;
};

/*
 * The dictionary: row i is basic_i = b_i + sum_k a_ik x_at_k over the variables at_k that are 0
 * now, with reduced costs c_k >= 0. Variables 0..vars-1 are those of the program; vars + i is the
 * slack of row i.
 */
struct neap__linear_program {
	int vars, rows;
	double cost[NEAP__LINEAR_PROGRAM_VARS];
	struct neap__linear_program_row row[NEAP__LINEAR_PROGRAM_ROWS];
	int at[NEAP__LINEAR_PROGRAM_VARS], basic[NEAP__LINEAR_PROGRAM_ROWS];
	long double c[NEAP__LINEAR_PROGRAM_VARS], b[NEAP__LINEAR_PROGRAM_ROWS];
	long double a[NEAP__LINEAR_PROGRAM_ROWS][NEAP__LINEAR_PROGRAM_VARS];
};

/* Empties lp, which then has `vars` variables of the given costs and no rows. */
void neap__linear_program_init(struct neap__linear_program *lp, int vars, const double *cost);

/*
 * Adds a row, scaled to a largest coefficient of 1. A row beyond NEAP__LINEAR_PROGRAM_ROWS is left
 * out, which gives a weaker bound.
 */
void neap__linear_program_add(
	struct neap__linear_program *lp, const struct neap__linear_program_row *row);

/*
 * Returns the optimum or a little less, and sets x, if not NULL, to the solution. The value is
 * computed from the multipliers of the rows after a check that they are dual feasible; it is 0,
 * which is also a valid bound, if they violate a dual row by more than rounding.
 */
double neap__linear_program_bound(struct neap__linear_program *lp, double *x);

#endif
