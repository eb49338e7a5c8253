/* SPDX-License-Identifier: Apache-2.0 */
/* online_plan.h: plan and table sizes of a sweep over a chain of unknown length. */
#ifndef NEAP_SWEEP_ONLINE_PLAN_H
#define NEAP_SWEEP_ONLINE_PLAN_H

#include "sweep/sweep_state.h"

/* The steps of a chain of unknown length, for tables: more than any chain has; sums of it do not
 * overflow. */
#define NEAP__STEPS_UNKNOWN (INT64_MAX / 4)

/* At create: fills the plan and the sizes of the tables. */
int neap__online_plan(struct neap_sweep *s);

#endif
