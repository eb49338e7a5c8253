/* SPDX-License-Identifier: Apache-2.0 */
/* arena_logs.h: the logs of steps among the extents of the arena. */
#ifndef NEAP_SWEEP_ARENA_ARENA_LOGS_H
#define NEAP_SWEEP_ARENA_ARENA_LOGS_H

#include "sweep/sweep_state.h"

/* Frees logs that lie within [t0, t1). */
void neap__log_drop(struct neap_sweep *s, int64_t t0, int64_t t1);
/* The log of step t, or NULL. */
const struct neap__arena_extent *neap__log_find(const struct neap_sweep *s, int64_t t);
/* Gives up one log, so that its room serves other things. 1 if there was one. */
int neap__log_evict(struct neap_sweep *s);

#endif
