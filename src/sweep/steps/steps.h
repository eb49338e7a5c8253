/* SPDX-License-Identifier: Apache-2.0 */
/* steps.h: calls of the model's record, replay and turn. All negative answers end the sweep. */
#ifndef NEAP_SWEEP_STEPS_STEPS_H
#define NEAP_SWEEP_STEPS_STEPS_H

#include "sweep/sweep_state.h"

/* With check: compares the live state, which callback `name` has moved, with an earlier one. */
int neap__step_check(struct neap_sweep *s, const char *name);

int neap__step_turn(struct neap_sweep *s);

/* One call of record, within [begin, end); *stuck: the model wants more room. */
int neap__step_record_piece(struct neap_sweep *s, int64_t begin, int64_t end, int *stuck);

#endif
