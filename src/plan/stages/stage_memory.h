/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_memory.h: what fast memory holds, and in how many bytes, while a schedule of stages
 * goes on. A state is kept while it is live, in a slot or in a tape that is there, and
 * counts once: SAVE and LOAD only change the number of its holders. A tape counts from
 * RECORD or GET on; where tapes hold the output of their stage (struct neap_stages), the
 * state is a part of a tape that can be read and takes no bytes of its own. The verifier,
 * the planner of offload and the sweep of stages all count with this module.
 */
#ifndef NEAP_PLAN_STAGES_STAGE_MEMORY_H
#define NEAP_PLAN_STAGES_STAGE_MEMORY_H

#include "plan/core/stage_sizes.h"

/* Of a tape. One that arrives takes room and cannot be read; one that leaves can. */
enum neap__tape_place {
	NEAP__TAPE_ABSENT,
	NEAP__TAPE_HERE,
	NEAP__TAPE_LEAVING,
	NEAP__TAPE_ARRIVING
};

struct neap__stage_memory {
	const struct neap_chain *chain;
	int32_t *held;	/* [steps + 1] how many of the live state and the slots hold x_t */
	uint8_t *taped; /* [steps] enum neap__tape_place */
	int64_t live;	/* the live state's step, -1: undefined */
	int part;	/* the live state is a part of a tape, with which it leaves */
	int64_t bytes;	/* of all that is kept, the gradient included */
	/*
	 * Called where x_t needs no bytes of its own any more: its last holder lets it go, or
	 * a tape that holds it too is there. May be NULL.
	 */
	void (*state_ends)(void *user, int64_t t);
	void *user;
};

/* 0 or -ENOMEM; free with neap__stage_memory_fini. */
int neap__stage_memory_init(struct neap__stage_memory *x, const struct neap_chain *chain);
void neap__stage_memory_fini(struct neap__stage_memory *x);
/* As a sweep begins: x_0 is live, nothing else is there. */
void neap__stage_memory_begin(struct neap__stage_memory *x);

/*
 * Most bytes while an action of one stage runs. A GET takes the bytes of what comes; a PUT
 * takes none besides what is there.
 */
int64_t neap__stage_memory_need(const struct neap__stage_memory *x, const struct neap_action *a);
/* After an action of one stage that is no transfer. */
void neap__stage_memory_apply(struct neap__stage_memory *x, const struct neap_action *a);

/* Another holder of x_t, or one less. */
void neap__stage_memory_hold(struct neap__stage_memory *x, int64_t t);
void neap__stage_memory_let_go(struct neap__stage_memory *x, int64_t t);
/* x_t becomes live, t -1: no state; what was live loses a holder. */
void neap__stage_memory_live(struct neap__stage_memory *x, int64_t t);
/* What becomes of the tape of stage i. A live state that is a part of it goes with it. */
void neap__stage_memory_tape(struct neap__stage_memory *x, int64_t i, enum neap__tape_place place);
/* Is x_t a part of the tape of stage t - 1, and can be read there? */
int neap__stage_memory_in_tape(const struct neap__stage_memory *x, int64_t t);

#endif
