/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep_state.h: a sweep from the inside. Who does what:
 *   sweep.c    plans, lays the arena out, sizes tables
 *   run.c      maps the arena, formats the tiers, pulls the schedule through
 *   table_sizes.c   one look over the schedule before a run: how large tables must be
 *   actions.c  performs one action of the schedule
 *   steps.c    calls the model: pieces, `first`, times, counts
 *   recorded_ranges.c   which steps are recorded, as the schedule believes
 *   arena_space.c     makes room in the arena: what moves, what gives way
 *   transfer.c tickets: put, get, wait
 *   tape_transfer.c   the same for tapes and logs, which leave and come in pieces
 *   step_logs.c     steps that are logged, and logs that are given up
 *   online_sweep.c   chains whose length the model tells
 *   saved_plan.c   a plan that was made before, instead of planning
 *   journal.c  a journal, and a run that goes on from its last commit
 *   journal_commit.c   what a commit holds, when it is taken, how it comes back
 *   journal_identity.c  which sweep a journal is of
 *   trace_ring.c    what happened when; trace_json.c makes JSON of it
 *   recover_states.c   states that were lost, recomputed
 *   recover_tapes.c   tapes that are missing, recomputed
 *   rewrite_records.c     records that were lost, written again when their state is passed
 *   finish_without_tiers.c    the rest of a sweep without its plan, where the tiers are gone
 */
#ifndef NEAP_SWEEP_SWEEP_STATE_H
#define NEAP_SWEEP_SWEEP_STATE_H

#include <neap/sweep.h>
#include "sweep/arena.h"
#include "sweep/trace_ring.h"
#include "sweep/journal/journal.h"

#define NEAP__RECORD_BLOCK 64 /* RECORD is cut where t is a multiple of this */
#define NEAP__LOG_BLOCK 1024  /* steps logged in one piece at most */
#define NEAP__CUTS 8	      /* and where tapes travel up to so often more, to fill holes */

/* What a schedule needs of tables, learnt before it runs. */
struct neap__table_sizes {
	int64_t slots;
	int64_t extents; /* tapes at most, in pieces */
	int64_t ranges;	 /* separate recorded ranges at most */
	int64_t places[NEAP_TIERS_MAX];
	int travels;			     /* tapes do */
	int64_t tape_places[NEAP_TIERS_MAX]; /* places for tapes */
	int64_t longest[NEAP_TIERS_MAX];     /* steps of the longest range sent */
	int64_t longest_log[NEAP_TIERS_MAX]; /* the same of logs */
	int64_t pieces;			     /* of tapes on the tiers at most */
	int64_t spans;			     /* pieces of a range sent at most */
	int64_t lanes;			     /* transfers of tapes in flight at most */
	size_t queue;			     /* actions that the schedule queued at most */
	int64_t tables;			     /* rows that its strategy's tables took at most */
};

enum neap__ticket_state {
	NEAP__TICKET_FREE,
	NEAP__TICKET_FLYING,  /* the engine has it */
	NEAP__TICKET_SETTLED, /* answered early: the answer waits for WAIT */
	NEAP__TICKET_AGAIN,   /* a GET into the live state, to be issued once more */
	NEAP__TICKET_LATER,   /* a GET of tapes that waits for room */
};

#define NEAP__NO_SLOT (-2) /* of a ticket of tapes */

struct neap__ticket {
	int64_t engine; /* the engine's ticket */
	int64_t slot, t, place;
	int64_t t1; /* tapes: the end of their range */
	int64_t order;
	uint64_t promised; /* bytes that count for tapes that are not there yet */
	int32_t answer;
	int32_t lane; /* tapes in flight: their row of spans */
	uint16_t tier;
	uint8_t state, put, tapes; /* tapes: NEAP_TAPE, NEAP_LOG; 0: a state */
	double issued;		   /* when it was handed over */
	uint64_t bytes;
};

struct neap__range {
	int64_t t0, t1;
};

/* A piece of tapes on a tier, as it will lie in the arena: what one record call wrote. */
struct neap__tape_piece {
	int64_t t0, t1;
	uint64_t bytes;
	int64_t next; /* row of the next one of its record, or of a free one; -1 */
};

/* What a place for tapes holds. */
struct neap__tape_record {
	int64_t t0, t1; /* t1 == t0: nothing */
	int64_t first;	/* piece, or -1 */
	uint64_t bytes;
	uint64_t period; /* of the journal, in which it was put */
	int bad;
};

/* What is known of a place for states: the time of the one it holds, or */
#define NEAP__RECORD_NONE (-1)

/* that of one that is not to be had. Its own inverse. */
static inline int64_t neap__record_bad(int64_t t)
{
	return -2 - t;
}

static inline int neap__record_is_bad(int64_t held)
{
	return held <= -2;
}

enum { NEAP__PLANNED, NEAP__ALONE_SOON, NEAP__ALONE };

struct neap_sweep {
	/* as planned */
	struct neap_step_ops ops;
	void *user;
	struct neap_sweep_options options;
	struct neap_tier *tiers[NEAP_TIERS_MAX];
	struct neap_problem problem;
	struct neap_plan plan;
	int fixed;     /* tapes have one size */
	int fixed_log; /* so have logs */
	int watch;
	int replanned; /* since the last run */
	struct neap__table_sizes survey;
	uint64_t staging[NEAP_TIERS_MAX]; /* offsets in the arena */
	int64_t *records[NEAP_TIERS_MAX]; /* what is at a place for states: see above */
	/* Places for states: the schedule's, then ours, for what holes are refilled from. */
	int64_t places[NEAP_TIERS_MAX];
	struct neap__range *ranges;	 /* recorded, as the schedule believes */
	uint64_t record[NEAP_TIERS_MAX]; /* bytes of a place for tapes; 0: none is used */
	struct neap__tape_record *sent[NEAP_TIERS_MAX];
	struct neap__tape_piece *pieces;
	int32_t *lanes;		 /* free ones */
	struct neap_span *spans; /* survey.spans a lane */
	/* A schedule from elsewhere than the plan, for tests; or NULL. */
	int (*open)(void *user, struct neap_schedule **schedule);
	void *open_user;
	struct neap__journal_run book;

	/* of a run */
	struct neap_online *online; /* where the length is not known; else NULL */
	struct neap__arena arena;
	struct neap__ticket tickets[NEAP_TICKETS];
	int64_t issued; /* tickets so far */
	int64_t later;	/* of them, GETs of tapes that wait for room */
	int64_t nranges;
	int64_t free_piece, fresh_piece, free_lanes; /* those from fresh_piece on were never used */
	int64_t anchored[NEAP_TIERS_MAX];	     /* of our places */
	int64_t mended[NEAP_TIERS_MAX];		     /* records written again after a loss */
	int64_t doubts[NEAP_TIERS_MAX];		     /* such writes refused, reads in vain since */
	int alone;				     /* NEAP__ALONE: the plan is given up */
	uint64_t grown;				     /* bytes of the arena beyond the plan's */
	int64_t live_t;				     /* time of the live state; -1: undefined */
	int64_t live_pins;			     /* PUTs from it that were not waited for */
	int64_t seen;				     /* steps before it were passed */
	int64_t position;			     /* of the adjoint; -1: before TURN */
	uint64_t generation;
	const void *x0;
	double *loss;
	int repairing;	  /* forward steps now are extra */
	uint64_t leaf;	  /* bytes kept for tapes while a hole is refilled; 0: no hole */
	uint64_t density; /* bytes a step of the last record call */
	struct neap_sweep_stats stats;
};

static inline unsigned char *neap__live(const struct neap_sweep *s)
{
	return s->arena.base + s->arena.live;
}

static inline unsigned char *neap__adjoint(const struct neap_sweep *s)
{
	return s->arena.base + s->arena.adjoint;
}

/* The largest tape of a step, as the plan counts it. */
static inline uint64_t neap__worst(const struct neap_sweep *s)
{
	const struct neap_chain *chain = &s->problem.chain;
	return chain->tape_max ? chain->tape_max : chain->tape;
}

/* The same of a log. */
static inline uint64_t neap__worst_log(const struct neap_sweep *s)
{
	uint64_t most = (s->ops.log_max_bytes + 63) / 64 * 64, mean = s->problem.chain.log;
	return most > mean ? most : mean;
}

/* step_logs.c: pieces that logs of [t0, t1) may come in; steps logged; logs given up. */
int64_t neap__log_pieces(int64_t t0, int64_t t1);
int neap__step_log(struct neap_sweep *s, int64_t t1);
void neap__logs_drop(struct neap_sweep *s, int64_t t0, int64_t t1);
/* The log of step t, or NULL. */
const struct neap__arena_extent *neap__log_find(const struct neap_sweep *s, int64_t t);
/* Room for other things, at the price of a log; 0 if there is none to give up. */
int neap__log_evict(struct neap_sweep *s);
/* steps.c. Charges the time since `start` to a reason and to `stall`; traced. */
void neap__stalled(struct neap_sweep *s, enum neap_stall reason, double start,
	const struct neap__ticket *ticket);
/* A tape of [t0, t1) that did not fit, a record of t that was lost: counted, and traced. */
void neap__overflowed(struct neap_sweep *s, int64_t t0, int64_t t1);
void neap__lost(struct neap_sweep *s, int tier, int64_t t0, int64_t t1);

/* infeasible.c. NEAP_EINFEASIBLE with its line for a plan that is not feasible, else 0. */
int neap__refuse_plan(const struct neap_plan *plan, uint64_t memory);

/* table_sizes.c. Ends of pieces: `seen` and, for records, blocks are never straddled. */
int64_t neap__tape_piece_end(int64_t t, int64_t t1, int64_t seen, int record);
int neap__table_sizes(struct neap__table_sizes *survey, int ntiers, struct neap_schedule *schedule);
/* Gives a fresh schedule the queue it will need, so that next() allocates nothing. */
int neap__table_sizes_reserve(
	const struct neap__table_sizes *survey, struct neap_schedule *schedule);

/* recorded_ranges.c: intervals, merged where they meet. */
int neap__ranges_add(struct neap_sweep *s, int64_t t0, int64_t t1);
int neap__ranges_cut(struct neap_sweep *s, int64_t t0, int64_t t1);
/* The one that holds [t0, t1), or NULL. */
const struct neap__range *neap__ranges_find(const struct neap_sweep *s, int64_t t0, int64_t t1);

/* steps.c. All negative codes end the sweep. */
/* Before a call of the model: an end asked for, a commit; after it: its answer, its time. */
int neap__step_go_on(struct neap_sweep *s);
int neap__step_answer(const char *name, int rc);
void neap__step_charge(
	struct neap_sweep *s, double *kind, double start, uint32_t event, int64_t t0, int64_t t1);
/* The live state passed on to t; *steps counts. */
void neap__step_passed(struct neap_sweep *s, int64_t t, int64_t *steps);
/* NEAP_EINTERRUPTED if the caller wants an end. */
int neap__interrupted(struct neap_sweep *s);
int neap__step_advance(struct neap_sweep *s, int64_t t1);
/*
 * Records from the live state towards t1 until the gap is too small for one more
 * worst-case tape; the live state says how far it came.
 */
int neap__step_record(struct neap_sweep *s, int64_t t1);
int neap__step_turn(struct neap_sweep *s);
int neap__step_backward(struct neap_sweep *s, struct neap__arena_extent *extent);
int neap__copy_save(struct neap_sweep *s, void *to);
int neap__copy_load(struct neap_sweep *s, const void *from, int64_t t);

/* transfer.c */
int neap__transfer_put(struct neap_sweep *s, const struct neap_action *action);
int neap__transfer_get(struct neap_sweep *s, const struct neap_action *action);
int neap__transfer_wait(struct neap_sweep *s, const struct neap_action *action);
/* Ends early whatever flies from or to `slot` (NEAP_LIVE: the live state). */
void neap__transfer_settle(struct neap_sweep *s, int64_t slot);
/* Issues anew the GETs into the live state that a repair pushed aside. 1 if there is one. */
int neap__transfer_resume(struct neap_sweep *s);
/* Ends what flies from or to the live state; GETs into it are made later. */
void neap__transfer_push_aside(struct neap_sweep *s);
/* Notes that a record is not to be had; counts it once. */
void neap__transfer_mark_bad(struct neap_sweep *s, int tier, int64_t place, int64_t t);
/* Reads a record into the live buffer now; a record that fails is marked bad. */
int neap__transfer_fetch(struct neap_sweep *s, int tier, int64_t place, int64_t t);
/* Keeps the live state on a tier where tapes begin to be missing, if a place is left. */
int neap__transfer_anchor(struct neap_sweep *s);
/* Writes the live state now; *answer: what became of it. */
int neap__transfer_store(struct neap_sweep *s, int tier, int64_t place, int *answer);
void neap__transfer_drain(struct neap_sweep *s);

/*
 * A GET in flight that will be made again later need not be made now; 1 if it was not
 * begun: it is SETTLED then, with nothing read.
 */
int neap__transfer_cancel(struct neap_sweep *s, struct neap__ticket *ticket);
/* Waits for a ticket in flight. */
void neap__transfer_end(struct neap_sweep *s, struct neap__ticket *ticket, enum neap_stall reason);
/* The oldest transfer whose memory cannot move ends early; 0 if there is none. */
int neap__transfer_settle_oldest(struct neap_sweep *s);
/* Is an engine at this slot? */
int neap__transfer_flies(const struct neap_sweep *s, int64_t slot);
/* Handed over at `start`: the engine's answer. */
void neap__ticket_issued(
	struct neap_sweep *s, struct neap__ticket *ticket, double start, uint64_t bytes, int rc);
/* An answer known without the engine. */
void neap__ticket_answered(struct neap__ticket *ticket, int rc);
uint64_t neap__record_tag(const struct neap_sweep *s, int payload, int64_t t);
int neap__ticket_begin(
	struct neap_sweep *s, const struct neap_action *a, struct neap__ticket **out);

/* tape_transfer.c */
int neap__tape_transfer_put(struct neap_sweep *s, const struct neap_action *action);
int neap__tape_transfer_get(struct neap_sweep *s, const struct neap_action *action);
/* The end of a ticket, which is not in flight any more. */
int neap__tape_transfer_wait(struct neap_sweep *s, struct neap__ticket *ticket);
/* The engine answered. */
void neap__tape_transfer_settled(struct neap_sweep *s, struct neap__ticket *ticket);
/* Issues GETs that waited for room, as far as there is some. */
void neap__tape_transfer_resume(struct neap_sweep *s);
/* Gives up the tapes that came, or come, and are not waited for: they come again later. */
void neap__tape_transfer_push_aside(struct neap_sweep *s);
int neap__tape_transfer_forget(struct neap_sweep *s, const struct neap_action *action);
void neap__tape_transfer_reset(struct neap_sweep *s);

/* arena_space.c */
/*
 * At least `bytes` in the gap: packs slots, moves tapes down, ends transfers that
 * are in the way, gives up states kept for repairs and, if `evict`, the newest
 * tapes. 0 when there is no more to be had.
 */
int neap__make_room(struct neap_sweep *s, uint64_t bytes, int evict);
/* The same for a slot, wherever it may lie; an error where there is none. */
int neap__make_slot_room(struct neap_sweep *s);
/* A hole of `bytes`; transfers are ended early for it only if `settle`. 1 if there is one. */
int neap__make_hole(struct neap_sweep *s, uint64_t bytes, int settle, struct neap__place *place);
/* Packs and moves what can be without waiting, so that the gap is as large as may be. */
void neap__tidy(struct neap_sweep *s);
/* A place for a log of so many bytes, or of half of them at least. 0: nowhere. */
int neap__log_place(struct neap_sweep *s, uint64_t bytes, struct neap__place *place);
/* Where to record `steps` steps, or `least` of them at least if possible. 0: nowhere. */
int neap__tape_place(struct neap_sweep *s, int64_t steps, int64_t least, struct neap__place *place);

/* recover_states.c */
/* The live buffer becomes the state at t, from the nearest state there is. */
int neap__restore(struct neap_sweep *s, int64_t t);
/* A GET failed: recomputes the state at t into `slot` or the live state. */
int neap__recover(struct neap_sweep *s, int64_t slot, int64_t t);
/*
 * recover_tapes.c. No tape ends at t: makes some that do, none of them across t0. Nothing at or
 * above `low` and below t but tapes was to be recorded.
 */
int neap__recover_tapes(struct neap_sweep *s, int64_t low, int64_t t0, int64_t t);
/* recover_states.c. Gives up the states kept for repairs, at the top of the stack where tapes stay.
 */
void neap__forget_repairs(struct neap_sweep *s);
/* The plan's schedule, or one's own. */
int neap__open_schedule(struct neap_sweep *s, struct neap_schedule **schedule);

/* saved_plan.c. Problem and plan from options.saved, in place of those that were described. */
int neap__replay(struct neap_sweep *s);

/* journal.c. At create: opens the journal that the options ask for. */
int neap__journal_attach(struct neap_sweep *s);
/* At free: the journal goes if the last run ended, else it stays. */
void neap__journal_give_up(struct neap_sweep *s);
/* A new plan for the sweep `old`, whose journal is dropped. */
void neap__journal_inherit(struct neap_sweep *s, struct neap_sweep *old);
/* A run begins: it goes on from the last commit, if there is one, else at x_0. */
int neap__journal_start(struct neap_sweep *s, struct neap_schedule *schedule);
/* An action was performed. */
void neap__journal_told(struct neap_sweep *s, const struct neap_action *a);
void neap__journal_end(struct neap_sweep *s, int rc);

/* journal_commit.c */
/* A commit may be taken here, if it is time; transfers end, extents of tapes may leave. */
void neap__journal_point(struct neap_sweep *s);
/* Where to stop between t and t1, so that a call of the model does not outlast a commit's time. */
int64_t neap__journal_stretch(const struct neap_sweep *s, int64_t t, int64_t t1);
/* A commit if one may be taken: the run is going to end early. */
void neap__journal_last(struct neap_sweep *s);
/* Tables and arena as they were written; the schedule is still at its beginning. */
int neap__commit_load(struct neap_sweep *s);
/* Bytes of the largest commit there can be, of `gathered` bytes of the model. */
uint64_t neap__commit_largest(const struct neap_sweep *s, uint64_t gathered);

/* journal_identity.c. Compares with a journal that is there, and takes its plan. */
int neap__journal_identity_take(struct neap_sweep *s);
/* After planning: sizes of records as they were. */
void neap__journal_identity_size(struct neap_sweep *s);
/* Is all the same that is known only at a run? */
int neap__journal_identity_same(const struct neap_sweep *s);
/* Starts the journal anew, for commits of at most so many bytes. */
int neap__journal_identity_begin(struct neap_sweep *s, uint64_t gathered, uint64_t most);

/* online_sweep.c: plan and survey; the actions of a run; all of them performed. */
int neap__online_plan(struct neap_sweep *s);
int neap__online_begin(struct neap_sweep *s);
int neap__online_perform(struct neap_sweep *s);

/* actions.c */
int neap__perform(struct neap_sweep *s, const struct neap_action *action);

/*
 * A sweep over a schedule of one's own, opened anew for each run; peak and arena
 * come from neap_verify. For tests.
 */
NEAP_API int neap__sweep_create_over(struct neap_sweep **sweep, const struct neap_step_ops *ops,
	void *user, const struct neap_sweep_options *options,
	int (*open)(void *user, struct neap_schedule **schedule), void *open_user);
/* Fills the arena, and what is freed in it, with 0xAA; a run checks what is outside. */
NEAP_API void neap__sweep_poison(struct neap_sweep *sweep, int on);

#endif
