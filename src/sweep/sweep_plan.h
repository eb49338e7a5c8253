/* SPDX-License-Identifier: Apache-2.0 */
/* sweep_plan.h: the problem of a sweep, its plan, and the places for its records. */
#ifndef NEAP_SWEEP_SWEEP_PLAN_H
#define NEAP_SWEEP_SWEEP_PLAN_H

#include "sweep/sweep_state.h"

/* Fills in the problem of a model; journalled: states travel through the arena for commits. */
void neap__sweep_describe(struct neap_problem *problem, const struct neap_step_ops *ops,
	const struct neap_sweep_options *options, int journalled);
/*
 * Plans, and sets the sizes of the tables and of places on tiers. 0; NEAP_EINFEASIBLE with the line
 * that names a budget that would do, or another negative code.
 */
int neap__sweep_make_plan(struct neap_sweep *s);

/* Opens the plan's schedule, or the one that the sweep was created over. */
int neap__sweep_open_schedule(struct neap_sweep *s, struct neap_schedule **schedule);

#endif
