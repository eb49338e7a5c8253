/* SPDX-License-Identifier: Apache-2.0 */
/* recorded_ranges.h: the set of steps that are recorded, as the schedule believes. */
#ifndef NEAP_SWEEP_ARENA_RECORDED_RANGES_H
#define NEAP_SWEEP_ARENA_RECORDED_RANGES_H

#include "sweep/sweep_state.h"

/* Adds [t0, t1). NEAP_EILLEGAL where a part of it is recorded already. */
int neap__ranges_add(struct neap_sweep *s, int64_t t0, int64_t t1);
/* Takes [t0, t1) away. NEAP_EILLEGAL where a part of it is not recorded. */
int neap__ranges_cut(struct neap_sweep *s, int64_t t0, int64_t t1);
/* The range that holds [t0, t1), or NULL. */
const struct neap__range *neap__ranges_find(const struct neap_sweep *s, int64_t t0, int64_t t1);

#endif
