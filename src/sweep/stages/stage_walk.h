/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_walk.h: the walk over a schedule that makes a stage program of it: what
 * stage_program.c (calls of the model) and stage_flights.c (transfers) share.
 */
#ifndef NEAP_SWEEP_STAGES_STAGE_WALK_H
#define NEAP_SWEEP_STAGES_STAGE_WALK_H

#include "sweep/stages/stage_program.h"
#include "plan/stages/stage_memory.h"

/* Numbers of records by place, for one tier and payload. */
struct neap__walk_places {
	int64_t *record; /* NEAP__NOTHING: the place is free */
	int64_t room;
};

/* Where a branch stands, while another one goes on: interleaved layouts. */
struct neap__walk_branch {
	int64_t live; /* state, or NEAP__NOTHING */
	int part;
	int64_t gradient, adjoint;
};

struct program_walk {
	struct neap__stage_program *out;
	const struct neap__stage_layout *layout;
	const struct neap_chain *chain;
	const struct neap_stages *stages;
	struct neap__stage_memory memory; /* who holds which state */
	int64_t n;
	int ntiers;
	int64_t *slots; /* [n + 2] step of the state, or NEAP__NOTHING */
	int64_t *state; /* [n + 2] the buffer where x_t lies, but for tapes, or NEAP__NOTHING */
	int64_t *tape;	/* [n + 2] */
	int64_t gradient, adjoint, seen;
	int branch; /* that goes on; of an interleaved layout */
	struct neap__walk_branch others[NEAP_BRANCHES_MAX];
	int64_t flight[NEAP_TICKETS];  /* by ticket, or NEAP__NOTHING */
	int64_t slot_of[NEAP_TICKETS]; /* GET of a state: where it comes to */
	struct neap__walk_places places[NEAP_TIERS_MAX][2];
};

/* -ENOMEM, with the detail line. */
int neap__stage_tables_short(void);

/* The buffer's last call was the last one there is; *buffer is nothing then. */
void neap__walk_end(struct program_walk *w, int64_t *buffer);
/* A buffer from the next call on. */
int neap__walk_begin(struct program_walk *w, int64_t *buffer, uint64_t bytes, int kind, int64_t t);
/* Where x_t lies. NEAP_EILLEGAL: nowhere. */
int neap__walk_find(const struct program_walk *w, int64_t t, int64_t *buffer);
/* The tape of stage i is not needed any more. It stays where a slot holds the state in it. */
void neap__walk_tape_ends(struct program_walk *w, int64_t i);
/* After the call of one stage, or a SAVE, LOAD or DROP. */
void neap__walk_apply(struct program_walk *w, int kind, int64_t i);

/* PUT, GET, WAIT or FORGET. */
int neap__walk_transfer(struct program_walk *w, const struct neap_action *a);
void neap__walk_no_flights(struct program_walk *w);
/* Records that were never forgotten stay to the end. */
void neap__walk_end_records(struct program_walk *w);
void neap__walk_free(struct program_walk *w);

#endif
