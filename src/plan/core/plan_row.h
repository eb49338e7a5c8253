/* SPDX-License-Identifier: Apache-2.0 */
/* plan_row.h: the answer of one row of the table, and the numbers that every plan gets. */
#ifndef NEAP_PLAN_CORE_PLAN_ROW_H
#define NEAP_PLAN_CORE_PLAN_ROW_H

#include "plan/core/strategy.h"

/* One row's answer, complete with overhead and bound; T >= 1, checked problem. */
int neap__plan_row(struct neap_plan *plan, const struct neap__strategy *row,
	const struct neap_problem *problem, const struct neap_params *fixed);

/* Of a feasible plan's tiers and makespan: slow_bytes and overhead; bound and gap. */
void neap__plan_complete(struct neap_plan *plan, const struct neap_problem *problem);
void neap__plan_bound(struct neap_plan *plan, double bound);

#endif
