/* SPDX-License-Identifier: Apache-2.0 */
/* pieces.h: moves over steps in pieces, between which a sweep commits, agrees and is interrupted.
 */
#ifndef NEAP_SWEEP_STEPS_PIECES_H
#define NEAP_SWEEP_STEPS_PIECES_H

#include "sweep/sweep_state.h"

/* Before each call: takes a commit that is due. NEAP_EINTERRUPTED where the caller wants an end. */
int neap__step_begin_call(struct neap_sweep *s);
/* Before each piece of BACKWARD, while no extent is in use: the commit; of ranks, the poll. */
int neap__step_begin_piece(struct neap_sweep *s);
/* NEAP_EINTERRUPTED if the caller wants an end (neap_sweep_options.interrupted), else 0. */
int neap__step_interrupted(struct neap_sweep *s);
int neap__step_advance(struct neap_sweep *s, int64_t t1);
/*
 * Records from the live state towards t1, until there is no room for one more tape of the largest
 * size; the step of the live state is then how far it got.
 */
int neap__step_record(struct neap_sweep *s, int64_t t1);
/* Moves the adjoint over the steps of the extent, which is freed. */
int neap__step_backward(struct neap_sweep *s, struct neap__arena_extent *extent);
/* Moves the live state to t1 and logs the steps, as far as there is room. */
int neap__log_steps(struct neap_sweep *s, int64_t t1);

#endif
