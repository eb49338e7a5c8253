/* SPDX-License-Identifier: Apache-2.0 */
/* step_logs.h: steps that are logged as they are passed, and their logs in the arena. */
#ifndef NEAP_SWEEP_STEP_LOGS_H
#define NEAP_SWEEP_STEP_LOGS_H

#include "sweep/sweep_state.h"

/* Extents that logs of [t0, t1) may come in at most. */
int64_t neap__log_pieces(int64_t t0, int64_t t1);
/* Moves the live state to t1 and logs the steps, as far as there is room. */
int neap__log_steps(struct neap_sweep *s, int64_t t1);
/* Frees logs that lie within [t0, t1). */
void neap__log_drop(struct neap_sweep *s, int64_t t0, int64_t t1);
/* The log of step t, or NULL. */
const struct neap__arena_extent *neap__log_find(const struct neap_sweep *s, int64_t t);
/* Gives up one log, so that its room serves other things. 1 if there was one. */
int neap__log_evict(struct neap_sweep *s);

#endif
