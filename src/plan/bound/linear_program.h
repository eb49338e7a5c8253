/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear_program.h: small linear programs whose every iterate is a valid lower bound.
 *
 *     minimise sum_j c_j x_j   subject to   x_j >= 0  and, for each row,  sum_j g_j x_j >= rhs
 *
 * All costs c_j are 0 or more. So the slack basis is dual feasible, and the dual simplex method
 * may stop at any time: its objective never exceeds the optimum.
 */
#ifndef NEAP_PLAN_BOUND_LINEAR_PROGRAM_H
#define NEAP_PLAN_BOUND_LINEAR_PROGRAM_H

#define NEAP__LINEAR_PROGRAM_VARS 15
#define NEAP__LINEAR_PROGRAM_ROWS 1296

/*
 * cost: c_j. The sizes are those of turn_program.c: five variables and five for each of two groups
 * of tiers, a few rows a level. vars: the variables that there are, 0: as many as there can be.
 */
struct neap__linear_program {
	int vars;
	double cost[NEAP__LINEAR_PROGRAM_VARS];
	int rows;
	struct neap__linear_program_row {
		double g[NEAP__LINEAR_PROGRAM_VARS], rhs;
	} row[NEAP__LINEAR_PROGRAM_ROWS];
};

/* Adds a row with g and rhs, scaled to a largest coefficient of 1. A row too many is left out. */
void neap__linear_program_add(
	struct neap__linear_program *lp, const struct neap__linear_program_row *row);

/*
 * Returns the optimum or a little less. The answer is computed again from the multipliers of
 * the rows, after they were checked; 0, which is a valid bound too, where they violate a row by
 * more than rounding.
 */
double neap__linear_program_bound(const struct neap__linear_program *lp);

#endif
