/* SPDX-License-Identifier: Apache-2.0 */
/* linear_program.h: small linear programs whose every iterate is a valid lower bound. */
#ifndef NEAP_PLAN_BOUND_LINEAR_PROGRAM_H
#define NEAP_PLAN_BOUND_LINEAR_PROGRAM_H

#define NEAP__LINEAR_PROGRAM_VARS 10
#define NEAP__LINEAR_PROGRAM_ROWS 640

/* min cost x, x >= 0, each row: sum g_j x_j >= rhs. Costs are not negative. */
struct neap__linear_program {
	double cost[NEAP__LINEAR_PROGRAM_VARS];
	int rows;
	struct neap__linear_program_row {
		double g[NEAP__LINEAR_PROGRAM_VARS], rhs;
	} row[NEAP__LINEAR_PROGRAM_ROWS];
};

/* Adds a row, scaled to a largest coefficient of 1; the caller sets g and rhs. */
void neap__linear_program_add(
	struct neap__linear_program *lp, const struct neap__linear_program_row *row);

/*
 * The optimum or a little less: dual simplex from the slack basis. The answer is
 * recomputed from the multipliers, which are checked against the rows; 0, which
 * is valid as well, if they fail by more than rounding.
 */
double neap__linear_program_bound(const struct neap__linear_program *lp);

#endif
