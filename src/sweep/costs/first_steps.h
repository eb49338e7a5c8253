/* SPDX-License-Identifier: Apache-2.0 */
/* first_steps.h: what steps cost, where the options of a sweep do not say. */
#ifndef NEAP_SWEEP_COSTS_FIRST_STEPS_H
#define NEAP_SWEEP_COSTS_FIRST_STEPS_H

#include "sweep/sweep_state.h"

/* 1 where a run has to measure first: slow tiers, no costs, no plan from elsewhere. */
int neap__first_steps_due(const struct neap_sweep *s);
/*
 * Times the first steps from x_0 and plans with what was found. The arena is mapped. The run that
 * follows passes these steps again, with `first` 0. 0 or a negative code.
 */
int neap__first_steps_measure(struct neap_sweep *s);

#endif
