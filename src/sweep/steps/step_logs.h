/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_logs.h: steps that are logged as they are passed. A log lies in the arena among the tapes,
 * in pieces that one call of the model wrote (arena/arena_logs.h). Where there is no room, a step
 * is not logged, or its log is given up; the step is recorded later instead of replayed, which
 * takes longer and gives the same.
 */
#ifndef NEAP_SWEEP_STEPS_STEP_LOGS_H
#define NEAP_SWEEP_STEPS_STEP_LOGS_H

#include "sweep/sweep_state.h"

/* One call of advance_log; *stuck: there is no room for a log. */
int neap__log_piece(struct neap_sweep *s, int64_t end, int *stuck);

#endif
