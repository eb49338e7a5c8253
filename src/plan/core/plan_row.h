/* SPDX-License-Identifier: Apache-2.0 */
/* plan_row.h: the answer of one row of the table, and the numbers that every plan gets. */
#ifndef NEAP_PLAN_CORE_PLAN_ROW_H
#define NEAP_PLAN_CORE_PLAN_ROW_H

#include "plan/core/strategy.h"

/*
 * Fills *plan with the answer of a row, complete with overhead. The problem must be checked and
 * have at least one step. 0 or a negative code.
 */
int neap__plan_row(struct neap_plan *plan, const struct neap__strategy *row,
	const struct neap_problem *problem, const struct neap_params *fixed);
/* The same where a plan of `below` seconds or more is of no use: it may be refused. */
int neap__plan_row_below(struct neap_plan *plan, const struct neap__strategy *row,
	const struct neap_problem *problem, const struct neap_params *fixed, double below);

/* Derives slow_bytes and overhead of a feasible plan from its tiers and its makespan. */
void neap__plan_complete(struct neap_plan *plan, const struct neap_problem *problem);
/* Sets the lower bound of a plan, in seconds, and its gap. */
void neap__plan_bound(struct neap_plan *plan, double bound);

#endif
