/* SPDX-License-Identifier: Apache-2.0 */
/* predict_plan.h: makespan and stall of a plan, simulated. */
#ifndef NEAP_PLAN_CORE_PREDICT_PLAN_H
#define NEAP_PLAN_CORE_PREDICT_PLAN_H

#include "plan/core/strategy.h"

/*
 * Makespan and stall of the plan of a row by simulation; units that its schedule calls
 * alike (schedule.h) are skipped once they are in a steady state. 0 or a negative code.
 */
int neap__predict(struct neap_plan *plan, const struct neap__strategy *row,
	const struct neap_problem *problem);

#endif
