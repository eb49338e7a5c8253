/* SPDX-License-Identifier: Apache-2.0 */
/* stage_bound.h: a lower bound for chains whose steps differ. */
#ifndef NEAP_PLAN_BOUND_STAGE_BOUND_H
#define NEAP_PLAN_BOUND_STAGE_BOUND_H

#include <neap/plan.h>

/* Seconds; no schedule of the problem is faster. */
double neap__stage_bound(const struct neap_problem *problem);

#endif
