/* SPDX-License-Identifier: Apache-2.0 */
/* online_sweep.h: sweeps over chains whose length the model tells (neap_step_ops.ended). */
#ifndef NEAP_SWEEP_ONLINE_SWEEP_H
#define NEAP_SWEEP_ONLINE_SWEEP_H

#include "sweep/sweep_state.h"

/* Before a run: makes s->online, from which the run's actions come. */
int neap__online_begin(struct neap_sweep *s);
/*
 * A run resumes: passes over the `count` actions that were performed, told the length where
 * s->walk says that it was, and adds them to *hash.
 */
int neap__online_replay(struct neap_sweep *s, int64_t count, uint64_t *hash);
/* Asks the model at the live state before the run comes there, which will not ask again. */
int neap__online_ask_ahead(struct neap_sweep *s, int *answer);
/* Performs all actions of the run. */
int neap__online_perform(struct neap_sweep *s);

#endif
