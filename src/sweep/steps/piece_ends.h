/* SPDX-License-Identifier: Apache-2.0 */
/* piece_ends.h: where the pieces of a range of steps end, and how many there are at most. */
#ifndef NEAP_SWEEP_STEPS_PIECE_ENDS_H
#define NEAP_SWEEP_STEPS_PIECE_ENDS_H

#include "sweep/sweep_state.h"

/*
 * Where one call of the model from t towards t1 ends: `first` must be the same for all its steps,
 * so no call goes beyond `passed` from below; a call of record also ends where t is a multiple of
 * `block` (0: of another callback).
 */
int64_t neap__tape_piece_end(int64_t t, int64_t t1, int64_t passed, int64_t block);
/* Pieces of a recorded range [t0, t1), one more where `passed` falls inside. */
int64_t neap__whole_pieces(int64_t t0, int64_t t1);
/*
 * The same where extents are no stack: a piece may be cut up to NEAP__HOLE_CUTS times more, so that
 * its parts fit the gaps.
 */
int64_t neap__cut_pieces(int64_t t0, int64_t t1);
/* Pieces that the action's tapes or logs may come in. */
int64_t neap__pieces_of(const struct neap_action *a);

#endif
