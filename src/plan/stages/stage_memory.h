/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_memory.h: the bytes of tier 0 while a schedule of a chain whose steps differ is
 * being made: as verify counts them (verify_stages.c), without its checks.
 */
#ifndef NEAP_PLAN_STAGES_STAGE_MEMORY_H
#define NEAP_PLAN_STAGES_STAGE_MEMORY_H

#include "plan/core/stage_sizes.h"

struct neap__stage_memory {
	const struct neap_chain *chain;
	int32_t *held;	/* [steps + 1] how many of live and slots hold x_t */
	uint8_t *taped; /* [steps] */
	int64_t live;	/* -1: undefined */
	int part;	/* live: of a tape, with which it leaves */
	int64_t bytes;
};

/* 0 or -ENOMEM; free with neap__stage_memory_fini. */
int neap__stage_memory_init(struct neap__stage_memory *x, const struct neap_chain *chain);
void neap__stage_memory_fini(struct neap__stage_memory *x);
/* As a sweep begins: x_0 is live. */
void neap__stage_memory_begin(struct neap__stage_memory *x);

/* Most bytes while an action of one step runs; transfers take what they move. */
int64_t neap__stage_memory_need(const struct neap__stage_memory *x, const struct neap_action *a);
/* After it. No transfers. */
void neap__stage_memory_apply(struct neap__stage_memory *x, const struct neap_action *a);

/* Another holder of x_t, or one less; the tape of stage i there, or gone. */
void neap__stage_memory_hold(struct neap__stage_memory *x, int64_t t);
void neap__stage_memory_let_go(struct neap__stage_memory *x, int64_t t);
void neap__stage_memory_tape(struct neap__stage_memory *x, int64_t i, int there);

#endif
