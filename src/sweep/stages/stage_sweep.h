/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_sweep.h: the structs of a sweep over a chain of stages and of its runs, for the files that
 * make and run it.
 */
#ifndef NEAP_SWEEP_STAGES_STAGE_SWEEP_H
#define NEAP_SWEEP_STAGES_STAGE_SWEEP_H

#include <neap/sweep.h>
#include "base/gate.h"
#include "sweep/agree.h"
#include "sweep/journal/journal_shared.h"
#include "sweep/arena/arena_memory.h"
#include "sweep/steps/model_checks.h"
#include "sweep/stages/stage_program.h"
#include "sweep/transfers/request.h"

/* A flight while a sweep runs. */
enum neap__transfer_state {
	NEAP__TRANSFER_OVER,
	NEAP__TRANSFER_UNDER_WAY,
	NEAP__TRANSFER_ANSWERED
};

struct neap__stage_transfer {
	struct neap__tier_request request;
	uint8_t state; /* enum neap__transfer_state */
};

/* Bytes of the arena that are taken: [from, to). */
struct neap__stage_interval {
	uint64_t from, to;
};

/* Which sweep a journal belongs to: a sweep resumes only if all of it is the same. */
struct neap__stage_identity {
	uint32_t version, ntiers;
	int64_t stages;
	uint64_t sizes, program; /* hashes: of the stages' bytes, of calls and places */
	struct neap__stage_layout layout;
	uint64_t given;	  /* bit k: branch k has a place for dx_0 */
	uint64_t key, x0; /* x0: a hash of it */
	uint64_t memory;  /* the budget */
	uint64_t epoch;	  /* of the records on the tiers */
	char strategy[32];
	uint64_t plan; /* bytes of the plan as text, behind this; 0: it could not be written */
};

struct neap__stage_journal {
	struct neap__journal_base base;
	struct neap__stage_identity identity;
};

struct neap_stage_sweep {
	struct neap__gate gate; /* a run, or free */
	struct neap_stage_ops ops;
	void *user;
	struct neap_sweep_options options;
	struct neap_stages stages; /* in `numbers`, sizes rounded up */
	void *numbers;
	const uint64_t *exact; /* by state: bytes, not rounded up; in `numbers` */
	struct neap__stage_layout layout;
	const struct neap_join_sweep *join; /* whose branches these are; NULL: a plain chain */
	/* By branch: bytes of the caller's buffers, not rounded up, and those of the run. */
	uint64_t x0_bytes[NEAP_BRANCHES_MAX], dx0_bytes[NEAP_BRANCHES_MAX];
	const void *x0[NEAP_BRANCHES_MAX]; /* NULL: all zero bytes */
	void *dx0[NEAP_BRANCHES_MAX];	   /* may be NULL */
	struct neap_problem problem;
	struct neap_plan plan;
	uint64_t schedule_peak; /* peak_bytes of the plan before place() added what it does not
				   count */
	struct neap__stage_program program;
	int64_t *ends; /* numbers of buffers by `to` */

	struct neap_tier *tiers[NEAP_TIERS_MAX];
	int64_t units[NEAP_TIERS_MAX];	      /* places for records; 0: the tier is not used */
	uint64_t largest[NEAP_TIERS_MAX];     /* bytes of a record at most */
	uint64_t staging[NEAP_TIERS_MAX];     /* offsets in the mapping */
	uint64_t staging_bytes;		      /* of all tiers */
	struct neap__stage_transfer *flights; /* by number */
	struct neap_span *spans;	      /* by part */
	uint8_t *lost;			      /* by record: 1 where the tier does not have it */
	uint64_t *now;			    /* by buffer: where it lies, once its life has begun */
	struct neap__stage_interval *taken; /* of a run: [buffers + 8] */
	uint64_t generation;		    /* of the run, in the tags of its records */
	double loss;			    /* of the run, once it has turned */
	struct neap__stage_journal journal;
	struct neap__agree_state agreement; /* of ranks; where the sweep is alone, none */
	struct neap_saved *agreed_plan;	  /* of ranks: the text of the plan that one of them made */
	struct neap__state_hashes hashes; /* with options.check */

	struct neap__memory memory; /* of staging and arena */
	unsigned char *mapping;	    /* staging, then the arena; NULL: not mapped */
	unsigned char *base;	    /* of the arena */
	uint64_t mapped, mapping_number;
	int poison;
	int moving; /* 1: moves even where fixed places fit, in an arena of the peak */
	struct neap_sweep_stats stats;
};

/* A run of a program: the sweep's, or the one that finishes without tiers. */
struct stage_run {
	struct neap_stage_sweep *s;
	const struct neap__stage_program *program;
	const struct neap__stage_layout *layout;
	unsigned char *base;
	double *loss;
	const int64_t *ends;		    /* numbers of the program's buffers by `to` */
	uint64_t *now;			    /* by buffer: where it lies, once its life has begun */
	struct neap__stage_interval *taken; /* [buffers + 8] */
	int64_t next;			    /* number of the program's next call */
	int64_t call;			    /* the call of the schedule that is being done */
	int64_t entered, left;		    /* buffers whose lives have begun, and have ended */
	uint64_t bytes;			    /* of the buffers that live */
	int64_t adjoint;   /* the gradient is that of x_adjoint; steps + 1: before the turn */
	uint64_t gradient; /* where it lies */
	uint64_t finished; /* bit k: the caller has dx_0 of branch k */
	int64_t fallen;	   /* 1 + the r->adjoint at which the plan was given up; 0: it was not */
	/* Then: what `turn` has to give, by branch, one behind the other; or NULL. */
	unsigned char *given;
	uint64_t given_bytes;
	int64_t passed; /* stages before this one were passed, in this run or an earlier one */
};

/* stage_tables.c: numbers of the program's buffers by `to`, which the caller frees. */
int neap__stage_sort_ends(const struct neap__stage_program *program, int64_t **ends);
/* Unmaps the arena, but not staging that transfers which were given up may still touch. */
void neap__stage_unmap(struct neap_stage_sweep *s);

/* stage_branches.c: what a call does besides calling the model, for the ends of branches. */
void neap__stage_origin(const struct stage_run *r, int branch, void *to);
void neap__stage_link(const struct stage_run *r, int kind, int64_t i, void *const at[NEAP__ROLES]);
int neap__stage_turn(struct stage_run *r, void *const at[NEAP__ROLES], double *loss);
/* Gives a line about the model, with rc < 0, the branch of a join. Answers rc. */
int neap__stage_say_branch(const struct stage_run *r, int branch, int rc);
int neap__stage_branch_done(struct stage_run *r, const struct neap__stage_call *call);

/* stage_saved_plan.c: checks options.saved, takes its plan and opens its schedule. */
int neap__stage_saved_plan(struct neap_stage_sweep *s, struct neap_schedule **schedule);
/* Once records are placed: NEAP_EINFEASIBLE where a tier does not hold them. */
int neap__stage_saved_plan_fits(const struct neap_stage_sweep *s);

/* stage_calls.c: one call of the model; `at`: pointers by enum neap__role. */
int neap__stage_call_model(
	struct stage_run *r, int kind, int64_t i, void *const at[NEAP__ROLES], int first);

/* Lists the bytes of the buffers that live, by offset, in r->taken; returns how many. */
int64_t neap__stage_list_taken(struct stage_run *r);
/* The address of what a call uses in this role, or NULL. */
void *neap__stage_at(const struct stage_run *r, const struct neap__stage_call *call, int role);
/* Calls the model as the program asks, and notes how far the run has come. */
int neap__stage_perform_call(struct stage_run *r, const struct neap__stage_call *call);
/* Begins the lives of the buffers of a call. */
int neap__stage_enter(struct stage_run *r, const struct neap__stage_call *call);
/* Ends the lives of the buffers whose last call this was. */
void neap__stage_leave(struct stage_run *r);
/* Moves a buffer; the bytes that it leaves become free. */
int neap__stage_move_buffer(struct stage_run *r, const struct neap__stage_call *call);
/* With poison: checks that nobody wrote to [from, from + bytes), which was free. */
int neap__stage_untouched(const struct stage_run *r, uint64_t from, uint64_t bytes);

/* stage_perform.c */
/*
 * Performs the calls of r->program, from r->next on. 1 where it was given up for what a tier lost.
 */
int neap__stage_perform(struct stage_run *r);

/* stage_transfer.c: places for the records on tiers; 0 or a negative code. */
int neap__stage_tiers_describe(struct neap_stage_sweep *s);
int neap__stage_tiers_reserve(struct neap_stage_sweep *s);
/*
 * Lowers the capacity that plans count with, of each tier whose reserved places exceed what it has;
 * `last`: to 0. Returns 1 if there is such a tier.
 */
int neap__stage_tiers_shrink(struct neap_stage_sweep *s, int last);
int neap__stage_tiers_format(struct neap_stage_sweep *s);
int neap__stage_issue(struct stage_run *r, int64_t flight);
/* Waits for a flight that is under way; its answer is known then. */
void neap__stage_end_flight(struct stage_run *r, int64_t flight, enum neap_stall reason);
/* Reads the record into `to` and waits. 0 or the tier's answer; a record that is lost is marked. */
int neap__stage_fetch(struct stage_run *r, int64_t record, void *to);
/* Waits for all that is under way. */
void neap__stage_drain(struct stage_run *r);
/* Marks a record as lost, and counts it once. */
void neap__stage_mark_lost(struct stage_run *r, int64_t number);

/* stage_repair.c: fills the buffers of a GET that failed. 1: there is no room for that; or a
 * negative code. */
int neap__stage_repair(struct stage_run *r, int64_t flight);

/*
 * stage_fallback.c: does what is left of the sweep in fast memory alone; with r->fallen set, what
 * is left of that after the journal's commit.
 */
int neap__stage_finish_without_tiers(struct stage_run *r);

/* One run of a sweep whose gate is passed and whose x0 and dx0 are set. */
int neap__stage_sweep_run(struct neap_stage_sweep *s, double *loss, struct neap_sweep_stats *stats);

/* Makes a sweep; `layout` NULL: a plain chain. */
int neap__stage_sweep_make(struct neap_stage_sweep **sweep, const struct neap_stage_ops *ops,
	void *user, const struct neap_stages *stages, const struct neap_sweep_options *options,
	const struct neap__stage_layout *layout, const struct neap_join_sweep *join, int moving);

/* For tests: fills free bytes with 0xAA and checks that nobody writes there. */
void neap__stage_sweep_poison(struct neap_stage_sweep *s, int on);

/* For tests: in an arena of exactly the peak, with moves even where places would do. */
int neap__stage_sweep_create_moving(struct neap_stage_sweep **sweep,
	const struct neap_stage_ops *ops, void *user, const struct neap_stages *stages,
	const struct neap_sweep_options *options);

#endif
