/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena_space.h: makes room in the arena. Every function tries the cheapest means first: gaps as
 * they are, then copies within the arena, then waits for transfers, then what can be made again
 * (logs, states kept for recovery, tapes).
 */
#ifndef NEAP_SWEEP_ARENA_ARENA_SPACE_H
#define NEAP_SWEEP_ARENA_ARENA_SPACE_H

#include "sweep/sweep_state.h"

/*
 * Makes the gap between tapes and slots at least `bytes` large. With `evict` the newest tapes go
 * where nothing else is left, and NEAP_EILLEGAL says that even this was not enough; without it
 * the gap may stay smaller, and the answer is 0.
 */
int neap__arena_space_gap(struct neap_sweep *s, uint64_t bytes, int evict);
/* Makes room for a slot, at the top or among the tapes. NEAP_EILLEGAL where there is none. */
int neap__arena_space_slot(struct neap_sweep *s);
/* Finds or makes room of `bytes`; waits for transfers only if `wait`. 1 if there is some. */
int neap__arena_space_hole(
	struct neap_sweep *s, uint64_t bytes, int wait, struct neap__place *place);
/* Moves what can be moved without waiting, so that the gap is as large as it can be. */
void neap__arena_space_pack(struct neap_sweep *s);
/* Finds room for a log of `bytes`, or of half of them at least. 1 if there is some. */
int neap__arena_space_log(struct neap_sweep *s, uint64_t bytes, struct neap__place *place);
/*
 * Finds room for tapes of `steps` steps, of `least` steps at least if possible, else of one step.
 * 1 if there is some.
 */
int neap__arena_space_tapes(
	struct neap_sweep *s, int64_t steps, int64_t least, struct neap__place *place);

#endif
