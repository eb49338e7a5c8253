/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_sweep.h: the struct of a sweep over a chain of stages, for the files that make and run it.
 */
#ifndef NEAP_SWEEP_STAGES_STAGE_SWEEP_H
#define NEAP_SWEEP_STAGES_STAGE_SWEEP_H

#include <neap/sweep.h>
#include "sweep/stages/stage_program.h"

struct neap_stage_sweep {
	struct neap_stage_ops ops;
	void *user;
	struct neap_sweep_options options;
	struct neap_stages stages; /* in `numbers`, sizes rounded up */
	void *numbers;
	uint64_t x0_bytes, dx0_bytes; /* of the caller's buffers, not rounded up */
	struct neap_problem problem;
	struct neap_plan plan;
	struct neap__stage_program program;
	int64_t *ends; /* numbers of buffers by `to` */

	unsigned char *base; /* of the arena; NULL: not mapped */
	uint64_t mapped;
	int poison;
	int moving; /* 1: moves even where fixed places fit, in an arena of the peak */
	struct neap_sweep_stats stats;
};

/* stage_saved_plan.c: checks options.saved, takes its plan and opens its schedule. */
int neap__stage_saved_plan(struct neap_stage_sweep *s, struct neap_schedule **schedule);

/* For tests: fills free bytes with 0xAA and checks that nobody writes there. */
void neap__stage_sweep_poison(struct neap_stage_sweep *s, int on);

/* For tests: in an arena of exactly the peak, with moves even where places would do. */
int neap__stage_sweep_create_moving(struct neap_stage_sweep **sweep,
	const struct neap_stage_ops *ops, void *user, const struct neap_stages *stages,
	const struct neap_sweep_options *options);

#endif
