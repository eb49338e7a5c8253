/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep_state.h: the structs of a sweep: what is planned, the tables that are sized before it
 * runs, and the state of the run. README.md of this folder says which file does what.
 */
#ifndef NEAP_SWEEP_SWEEP_STATE_H
#define NEAP_SWEEP_SWEEP_STATE_H

#include <neap/sweep.h>
#include "base/gate.h"
#include "sweep/agree.h"
#include "sweep/arena/arena.h"
#include "sweep/steps/model_checks.h"
#include "sweep/trace/trace_ring.h"
#include "sweep/transfers/request.h"
#include "sweep/journal/journal.h"

#define NEAP__RECORD_BLOCK 64 /* steps: a record_block is a multiple of this */
#define NEAP__LOG_BLOCK 1024  /* steps of one advance_log call at most */
#define NEAP__HOLE_CUTS 8     /* extra cuts of a record call's range, so that its parts fit gaps */

/* How large the tables must be for a schedule, learnt by reading it before it runs. */
struct neap__table_sizes {
	int64_t slots;
	int64_t extents; /* of tapes and logs at most */
	int64_t ranges;	 /* separate recorded ranges at most */
	int64_t places[NEAP_TIERS_MAX];
	int scattered;			     /* 1: tapes leave, or logs lie among them: no stack */
	int64_t tape_places[NEAP_TIERS_MAX]; /* places for tapes */
	int64_t longest[NEAP_TIERS_MAX];     /* steps of the longest range of tapes put there */
	int64_t longest_log[NEAP_TIERS_MAX]; /* the same of logs */
	int64_t pieces;			     /* of tapes and logs on all tiers at most */
	int64_t spans;			     /* pieces of one range at most */
	int64_t span_rows;		     /* transfers of tapes and logs in flight at most */
	size_t queue;			     /* actions that the schedule queued at most */
	int64_t tables;			     /* rows that its strategy's tables took at most */
};

/* The life of a ticket: FREE, then one of the others until the schedule's WAIT. */
enum neap__ticket_state {
	NEAP__TICKET_FREE,
	NEAP__TICKET_IN_FLIGHT, /* the tier has the request */
	NEAP__TICKET_ANSWERED,	/* the answer is known and waits for WAIT */
	NEAP__TICKET_REISSUE,	/* a GET into the live state, to be issued once more */
	NEAP__TICKET_NO_ROOM,	/* a GET of tapes that waits for room in the arena */
};

#define NEAP__NO_SLOT (-2) /* slot of a ticket of tapes */

struct neap__ticket {
	struct neap__tier_request request;
	int64_t slot, place;
	int64_t order;	   /* counts tickets: smaller is older */
	uint64_t promised; /* bytes of the arena that count for tapes that are not there yet */
	int32_t span_row;  /* tapes in flight: their row of spans */
	uint8_t state;	   /* enum neap__ticket_state */
};

struct neap__range {
	int64_t t0, t1;
};

/* A piece of a record of tapes: what one record call wrote, as one extent of the arena. */
struct neap__tape_piece {
	int64_t t0, t1;
	uint64_t bytes;
	int64_t next; /* row of the next piece of the record, or of the next free row; -1: none */
};

/* What a place for tapes holds. */
struct neap__tape_record {
	int64_t t0, t1; /* t1 == t0: nothing */
	int64_t first;	/* row of the first piece, or -1 */
	uint64_t bytes;
	uint64_t period; /* of the journal, in which it was put */
	int bad;	 /* the tier lost it */
};

/*
 * What is known of a place for states: the step of the state there, NEAP__RECORD_NONE, or
 * neap__record_bad(t) where the record of state t was lost.
 */
#define NEAP__RECORD_NONE (-1)

/* Marks step t as lost, and gives t back from the mark. */
static inline int64_t neap__record_bad(int64_t t)
{
	return -2 - t;
}

static inline int neap__record_is_bad(int64_t held)
{
	return held <= -2;
}

/* How far a sweep has given up its plan (repair/finish_without_tiers.c). */
enum { NEAP__FALLBACK_NONE, NEAP__FALLBACK_DUE, NEAP__FALLBACK_BEGUN };

/* Where a sweep over a chain of unknown length is. */
struct neap__online_walk {
	struct neap_action action; /* while `within`: t0 is the end of the steps that were begun */
	int within;		   /* 1: the action's steps are taken one by one */
	int told, asked;	   /* the length is known; the model was asked at x_0 */
	int64_t told_at, steps;	   /* where it was told, -1: not yet; the length */
};

/* What was replaced in a run, so that the same actions can be asked for again. */
struct neap__replan_history {
	struct neap_problem problem[NEAP_REPLANS_MAX + 1]; /* the first: as planned */
	struct neap_plan plan[NEAP_REPLANS_MAX + 1];
	int count;
	void *old_spans[NEAP_REPLANS_MAX]; /* tables that transfers may still use */
};

/* What the first pass of a sweep shows of its costs (costs/cost_watch.h). */
struct neap__cost_watch {
	double known_advance, known_write; /* seconds of a step and a state: planned, or found */
	int64_t step;			   /* the block that was looked at last */
	int64_t tries;
	/* Seconds of searches in this run, and of the longest one; those before it are kept. */
	double searched, search;
	/* Of forward steps when the sweep came to `mark_at`; stats.foreseen is told later. */
	int64_t mark_at, foresee_at;
	double mark_found, mark_planned;
	/*
	 * Forward steps since the last sample, at whose end they had taken `seen_found`, and
	 * `seen_planned` by the plan; the least quotient of samples after the first.
	 */
	double seen_found, seen_planned, least;
	int64_t samples;
	/* Of each tier's writes. */
	double last_end[NEAP_TIERS_MAX], busy[NEAP_TIERS_MAX], planned[NEAP_TIERS_MAX];
	int64_t records[NEAP_TIERS_MAX];
	struct neap__replan_history *history; /* NULL: nothing was tried */
};

/* What other threads may ask for while a run lasts. */
struct neap__sweep_shared {
	struct neap__gate gate; /* a call that changes the sweep */
	atomic_int watched;	/* neap_sweep_watch */
	_Atomic uint64_t mapped;
	_Atomic double foreseen;
	_Atomic int64_t spared;
};

/*
 * A sweep, grouped by the files that own a group: they alone change it, but for `reset` in run.c,
 * which sets all that belongs to a run back to its beginning, and journal/journal_commit.c, which
 * reads it from a commit. "Run" marks the fields of a run; all others are fixed while a run lasts,
 * unless its plan is replaced.
 */
struct neap_sweep {
	struct neap__sweep_shared shared; /* first: what follows is replaced with the plan */

	/* sweep.c: what the caller passed. */
	struct neap_step_ops ops;
	void *user;
	struct neap_sweep_options options;
	struct neap_tier *tiers[NEAP_TIERS_MAX];
	int inherits; /* 1: it took over a journal */
	int claimed;  /* 1: made while a run has the tiers */
	int poisoned; /* by neap__sweep_poison, apart from options.check */
	/* A schedule from elsewhere than the plan, for tests; or NULL. */
	int (*open)(void *user, struct neap_schedule **schedule);
	void *open_user;

	/* sweep_plan.c, online_plan.c */
	struct neap_problem problem;
	struct neap_plan plan;
	struct neap_saved *agreed_plan; /* of ranks: the text of the plan that one of them made */
	struct neap__table_sizes sizes;
	int64_t record_block; /* steps: record calls end where t is a multiple of this */
	int fixed;	      /* 1: all tapes have one size */
	int fixed_log;	      /* 1: all logs have one size */
	double planning;      /* seconds that planning took */
	int64_t steps_most;   /* a chain of unknown length ends here at the latest; 0: anywhere */
	uint64_t staging[NEAP_TIERS_MAX]; /* offsets in the arena */

	/* costs/first_steps.c */
	int measured;		/* costs come from first steps */
	int64_t measured_steps; /* that were passed for that before this run */
	int64_t ahead;	  /* states at which the model was asked then whether the chain ends */
	int ahead_answer; /* at the last of them */

	/* costs/cost_watch.c, costs/replan_sweep.c: run */
	int replanned; /* since the last run */
	struct neap__cost_watch watch;

	/* steps/: run */
	int64_t live_t;	      /* step of the live state; -1: undefined */
	int64_t passed;	      /* steps before this one were passed: `first` is 0 for them */
	int64_t position;     /* step of the adjoint; -1: before TURN */
	uint64_t recent_tape; /* bytes a step of the last record call */
	struct neap__state_hashes hashes; /* with options.check */
	const void *x0;
	double *loss;

	/* arena/: run */
	struct neap__arena arena;
	uint64_t spare_bytes;	    /* mapped beyond the arena, on all ranks */
	uint64_t extra_bytes;	    /* of the arena beyond the plan's */
	struct neap__range *ranges; /* recorded, as the schedule believes */
	int64_t nranges;

	/* transfers/transfer.c: places for states, the schedule's, then those from which holes are
	 * recovered; and run */
	int64_t places[NEAP_TIERS_MAX];
	int64_t *state_records[NEAP_TIERS_MAX]; /* by place: see NEAP__RECORD_NONE */
	struct neap__ticket tickets[NEAP_TICKETS];
	int64_t issued;	     /* tickets so far */
	int64_t live_puts;   /* PUTs from the live state that were not waited for */
	uint64_t generation; /* of this run, in the tags of its records */

	/* transfers/tape_transfer.c: places for tapes and logs; and run */
	uint64_t tape_place_bytes[NEAP_TIERS_MAX];		/* of a place; 0: none is used */
	struct neap__tape_record *tape_records[NEAP_TIERS_MAX]; /* by place */
	struct neap__tape_piece *pieces;
	int64_t free_piece, unused_piece; /* first free row, or -1; rows from here on are unused */
	struct neap_span *spans;	  /* sizes.spans a row */
	int32_t *span_rows;		  /* stack of the free ones */
	int64_t free_span_rows;
	int64_t waiting_gets; /* tickets in NEAP__TICKET_NO_ROOM */

	/* repair/: run */
	int64_t recovery_records[NEAP_TIERS_MAX]; /* of `places` beyond the schedule's: in use */
	int64_t rewritten[NEAP_TIERS_MAX];	  /* records written again after a loss */
	int64_t rewrite_failures[NEAP_TIERS_MAX]; /* rewrites refused, or lost again, in a row */
	int fallback;				  /* NEAP__FALLBACK_... */
	int recovering;	     /* depth of recoveries: forward steps now are extra */
	uint64_t leaf_bytes; /* kept for tapes while a hole is recovered; 0: no hole */

	/* online_sweep.c: run */
	struct neap_online *online; /* where the chain's length is not known; else NULL */
	struct neap__online_walk walk;

	/* journal/ and agree.c */
	struct neap__journal_run journal;
	struct neap__agree_state agreement; /* of ranks; where the sweep is alone, none */

	/* steps/counts.c and all that counts: run */
	struct neap_sweep_stats stats;
};

static inline unsigned char *neap__live(const struct neap_sweep *s)
{
	return s->arena.base + s->arena.live;
}

/* Where the live state is for a tier or a commit: itself, or its copy beside the token. */
static inline unsigned char *neap__transit(const struct neap_sweep *s)
{
	return s->arena.base + s->arena.transit;
}

static inline unsigned char *neap__adjoint(const struct neap_sweep *s)
{
	return s->arena.base + s->arena.adjoint;
}

/* Bytes of the largest tape of a step, as the plan counts them. */
static inline uint64_t neap__worst(const struct neap_sweep *s)
{
	const struct neap_chain *chain = &s->problem.chain;
	return chain->tape_max ? chain->tape_max : chain->tape;
}

/* Bytes of the largest log of a step. */
static inline uint64_t neap__worst_log(const struct neap_sweep *s)
{
	uint64_t most = (s->ops.log_max_bytes + 63) / 64 * 64, mean = s->problem.chain.log;
	return most > mean ? most : mean;
}

/* Updates the copies of counters that other threads may read during a run. */
static inline void neap__sweep_publish(struct neap_sweep *s)
{
	atomic_store_explicit(&s->shared.mapped, s->arena.mapped, memory_order_relaxed);
	atomic_store_explicit(&s->shared.foreseen, s->stats.foreseen, memory_order_relaxed);
	atomic_store_explicit(&s->shared.spared, s->stats.spared, memory_order_relaxed);
}

#endif
