/* SPDX-License-Identifier: Apache-2.0 */
/* recover_tapes.h: recovers the tapes of a hole. */
#ifndef NEAP_SWEEP_REPAIR_RECOVER_TAPES_H
#define NEAP_SWEEP_REPAIR_RECOVER_TAPES_H

#include "sweep/sweep_state.h"

/*
 * No tape ends at t: makes tapes that end there, none of them across t0. `low`: the steps of
 * [low, t) were to be recorded, and what is kept there is tapes.
 */
int neap__recover_tapes(struct neap_sweep *s, int64_t low, int64_t t0, int64_t t);

#endif
