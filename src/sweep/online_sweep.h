/* SPDX-License-Identifier: Apache-2.0 */
/* online_sweep.h: sweeps over chains whose length the model tells (neap_step_ops.ended). */
#ifndef NEAP_SWEEP_ONLINE_SWEEP_H
#define NEAP_SWEEP_ONLINE_SWEEP_H

#include "sweep/sweep_state.h"

/* At create: fills the plan and the sizes of the tables. */
int neap__online_plan(struct neap_sweep *s);
/* Before a run: makes s->online, from which the run's actions come. */
int neap__online_begin(struct neap_sweep *s);
/* Performs all actions of the run. */
int neap__online_perform(struct neap_sweep *s);

#endif
