/* SPDX-License-Identifier: Apache-2.0 */
/* recover_states.h: recovers states, from the nearest state that is left. */
#ifndef NEAP_SWEEP_REPAIR_RECOVER_STATES_H
#define NEAP_SWEEP_REPAIR_RECOVER_STATES_H

#include "sweep/sweep_state.h"

/* A GET failed: makes the state at t again, in `slot` or as the live state (NEAP_LIVE). */
int neap__recover_state(struct neap_sweep *s, int64_t slot, int64_t t);
/* The live state becomes the latest state at or before t that can be had. */
int neap__recover_state_load(struct neap_sweep *s, int64_t t);
/*
 * Frees states kept for recovery at or after step t: the backward pass has gone below t and needs
 * none of them. Tapes may lie above them.
 */
void neap__recover_state_drop_from(struct neap_sweep *s, int64_t t);
/* Frees the states kept for recovery: all, or those on top of the stack where tapes are one. */
void neap__recover_state_drop_all(struct neap_sweep *s);
/* Adds a recovery of [t0, t1) since `start` to the trace. */
void neap__recover_state_trace(
	struct neap_sweep *s, uint32_t kind, double start, int64_t t0, int64_t t1);

#endif
