/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_program.h: a schedule of a stage chain as the calls it makes and the buffers
 * they use, all known before the sweep runs. Who does what:
 *   stage_program.c   calls and buffers with their lifetimes, from the schedule
 *   buffer_placement.c  a place in the arena for every buffer, for all its life
 *   buffer_moves.c   where that cannot be had in the budget: places, and moves between calls
 *   stage_sweep.c  makes a sweep of them
 *   stage_saved_plan.c takes a saved plan instead of making one
 *   stage_run.c    runs it
 */
#ifndef NEAP_SWEEP_STAGES_STAGE_PROGRAM_H
#define NEAP_SWEEP_STAGES_STAGE_PROGRAM_H

#include <neap/plan.h>

/* A range of the arena during the calls [from, to]; bytes are multiples of 64. */
struct neap__stage_buffer {
	uint64_t bytes, offset;
	int64_t from, to;
};

/* What a call uses. */
enum neap__role {
	NEAP__X,
	NEAP__Y,
	NEAP__TAPE,
	NEAP__TMP,
	NEAP__DY,
	NEAP__DX,
	NEAP__ROLES,
};

#define NEAP__NOTHING (-1)
#define NEAP__MOVE NEAP_ACTION_KINDS /* i bytes from at[X] to at[Y] */

struct neap__stage_call {
	uint8_t kind; /* NEAP_ADVANCE, NEAP_RECORD, NEAP_TURN, NEAP_BACKWARD, NEAP__MOVE */
	uint8_t first;
	int64_t i;		 /* stage */
	int64_t at[NEAP__ROLES]; /* numbers of buffers; offsets once they are placed */
};

struct neap__stage_program {
	struct neap__stage_call *calls;
	int64_t ncalls, calls_room;
	struct neap__stage_buffer *buffers; /* by `from`; number 0 is x_0 */
	int64_t nbuffers, buffers_room;
	uint64_t peak;	/* bytes of all buffers at a call, at most */
	uint64_t arena; /* bytes, once placed */
	uint64_t start; /* offset of x_0 before the first call */
	uint64_t moved; /* bytes */
};

void neap__stage_program_free(struct neap__stage_program *program);

/*
 * Pulls the schedule to its end. problem: a stage chain with sizes that are
 * multiples of 64. NEAP_EILLEGAL where a call lacks something.
 */
int neap__stage_walk(struct neap__stage_program *program, const struct neap_problem *problem,
	struct neap_schedule *schedule);

/* Appends a call, or a buffer; -ENOMEM. */
int neap__stage_program_call(
	struct neap__stage_program *program, const struct neap__stage_call *call);
int neap__stage_program_buffer(struct neap__stage_program *program, uint64_t bytes);

/*
 * Places that hold for all of a buffer's life, in at most `budget` bytes: 1 if they
 * were found and are set in buffers and calls, 0 if not, or -ENOMEM.
 */
int neap__stage_place(struct neap__stage_program *program, uint64_t budget);

/* In exactly `budget` >= peak bytes, with moves where gaps are too small. 0 or -ENOMEM. */
int neap__stage_move(struct neap__stage_program *program, uint64_t budget);

#endif
