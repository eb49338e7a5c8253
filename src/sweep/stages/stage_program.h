/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_program.h: a schedule of a stage chain as the calls that it makes, the buffers that they
 * use and the records that they put on tiers, all known before the sweep runs. The README of
 * src/sweep describes the files.
 */
#ifndef NEAP_SWEEP_STAGES_STAGE_PROGRAM_H
#define NEAP_SWEEP_STAGES_STAGE_PROGRAM_H

#include "sweep/stages/stage_layout.h"

/* What a buffer is for: x_t, the tape of stage t, the gradient of x_t, or nothing that stays. */
enum neap__buffer_kind {
	NEAP__BUFFER_STATE,
	NEAP__BUFFER_TAPE,
	NEAP__BUFFER_GRADIENT,
	NEAP__BUFFER_TEMPORARY,
};

/* A range of the arena during the calls [from, to]; bytes are multiples of 64. */
struct neap__stage_buffer {
	uint64_t bytes, offset; /* offset: at first, where it moves later */
	int64_t from, to;
	int64_t t;
	int64_t ready; /* the call that fills it */
	uint8_t kind;  /* enum neap__buffer_kind */
};

/* A record on a tier, from the call that puts it to the last one that may touch it. */
struct neap__stage_record {
	int64_t t0, t1; /* tapes of stages; t1 == t0: the state x_t0 */
	int64_t from, to;
	uint64_t bytes;
	int64_t place; /* record_placement.c: in units */
	uint16_t tier; /* 1: the first */
};

/* The transfer of a record: from the call that issues it to the one that waits for it. */
struct neap__stage_flight {
	int64_t record, from, to;
	int64_t first, count; /* rows of parts */
	uint8_t put;
};

/* A buffer that a transfer reads or fills, and where it lies meanwhile. */
struct neap__stage_part {
	int64_t buffer;
	uint64_t offset, bytes;
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
#define NEAP__MOVE NEAP_ACTION_KINDS /* buffer number i from at[X] to at[Y] */
/* Before its WAIT: the flight number i must end here, since what it pins has to move. */
#define NEAP__END_EARLY (NEAP_ACTION_KINDS + 1)
#define NEAP__ORIGIN (NEAP_ACTION_KINDS + 2) /* x_0 of branch i comes to at[Y] */

/*
 * kind: NEAP_ADVANCE, NEAP_RECORD, NEAP_TURN, NEAP_BACKWARD call the model; NEAP_PUT, NEAP_GET and
 * NEAP_WAIT are those of a flight; NEAP__MOVE and NEAP__END_EARLY come between the others and do
 * not count in the numbers `from`, `to` and `ready`.
 */
struct neap__stage_call {
	uint8_t kind;
	uint8_t first;
	int64_t i;		 /* stage, or number of the flight */
	int64_t at[NEAP__ROLES]; /* numbers of buffers; offsets once they are placed */
};

struct neap__stage_program {
	struct neap__stage_call *calls;
	int64_t ncalls, calls_room;
	struct neap__stage_buffer *buffers; /* by `from` */
	int64_t nbuffers, buffers_room;
	/* By branch but the last: the end laid aside, and its gradient from the turn on. */
	int64_t end_state[NEAP_BRANCHES_MAX], end_gradient[NEAP_BRANCHES_MAX];
	struct neap__stage_record *records;
	int64_t nrecords, records_room;
	struct neap__stage_flight *flights; /* by `from` */
	int64_t nflights, flights_room;
	struct neap__stage_part *parts;
	int64_t nparts, parts_room;
	uint64_t peak;	/* bytes of all buffers at a call, at most */
	uint64_t arena; /* bytes, once placed */
	uint64_t moved; /* bytes */
};

void neap__stage_program_free(struct neap__stage_program *program);

/*
 * Pulls the schedule to its end. problem: a stage chain with sizes that are multiples of 64, the
 * branches of the layout in a row. NEAP_EILLEGAL where a call lacks something.
 */
int neap__stage_walk(struct neap__stage_program *program, const struct neap_problem *problem,
	const struct neap__stage_layout *layout, struct neap_schedule *schedule);

/* Appends a call; -ENOMEM. */
int neap__stage_program_call(
	struct neap__stage_program *program, const struct neap__stage_call *call);

/*
 * Places that hold for all of a buffer's life, in at most `budget` bytes: 1 if they
 * were found and are set in buffers and calls, 0 if not, or -ENOMEM.
 */
int neap__stage_place(struct neap__stage_program *program, uint64_t budget);

/* In exactly `budget` >= peak bytes, with moves where gaps are too small. 0 or -ENOMEM. */
int neap__stage_move(struct neap__stage_program *program, uint64_t budget);

/*
 * Places for the records of a tier, one after the other in the order of their PUTs, each in the
 * lowest room that is free for all of its life. `units_of` says how many units a record of so
 * many bytes takes. Returns the units of the tier that are used at most, or -ENOMEM.
 */
int64_t neap__stage_place_records(struct neap__stage_program *program, int tier,
	uint64_t (*units_of)(void *user, uint64_t bytes), void *user);

#endif
