/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep.h: runs a schedule on a model: one forward and one backward pass over the chain (a sweep),
 * in one block of memory, the arena, whose size the plan determines.
 *
 *     struct neap_step_ops ops = {.size = sizeof ops, .advance = advance,
 *             .record = record, .turn = turn, .backward = backward,
 *             .state_bytes = S, .adjoint_bytes = S, .tape_bytes = A};
 *     struct neap_sweep_options o = {.size = sizeof o, .steps = T, .memory = 16 << 20};
 *     struct neap_sweep *sweep;
 *     neap_sweep_create(&sweep, &ops, model, &o);
 *     neap_sweep_run(sweep, x0, dx0, &loss, NULL);     any number of times
 *     neap_sweep_free(sweep);
 */
#ifndef NEAP_SWEEP_H
#define NEAP_SWEEP_H

#include <neap/memory.h>
#include <neap/plan.h>
#include <neap/tier.h>
#include <neap/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Threads: sweeps in different threads are independent if each has its own model, tiers and trace.
 * A sweep, tier, schedule or trace may be used by any thread, but only by one at a time. Plans and
 * problems are plain values. The detail line is thread-local.
 *
 * A run uses its sweep and its tiers exclusively. During a run, in its callbacks as well as in
 * other threads: run, replan and touch of the sweep return NEAP_EUSAGE and change nothing; release
 * and free do nothing (neap_detail has the reason); calls of its tiers, and runs of other sweeps
 * over them, return NEAP_EUSAGE. Callbacks may create, run and free other sweeps.
 *
 * Lifetimes: the arguments of a create function are copied, including strings and lists. Exceptions
 * are borrowed until the sweep is freed: `user`, the tiers, options.saved, options.trace, the
 * arrays of stages, and interrupted_user. Free sweeps before their tiers (a run returns NEAP_EUSAGE
 * after a tier was closed). x0 is borrowed during a run.
 */

/*
 * The callbacks and sizes of a model. Callbacks process ranges of steps [t0, t1), so a model can
 * fuse steps. They return 0 or a negative code, which ends the sweep; set the reason with
 * neap_detail_set. All calls come from the thread that runs the sweep. Pointers into the arena are
 * aligned to 64 bytes. Brackets contain the default of an optional field.
 *
 * The plan rounds every size up to 64 bytes, including the tape of each step; the tapes of one
 * record call are packed, as the model writes them. If tape_max_bytes is above tape_bytes, tapes
 * vary: a tape that does not fit in its planned place is recomputed when it is needed, in the same
 * arena, and counted as an overflow.
 *
 * `first` is 1 when a range runs for the first time in a sweep, and 0 when it is recomputed:
 * accumulate losses and counts only if it is 1. advance and record must do the same arithmetic.
 */
struct neap_step_ops {
	uint32_t size; /* sizeof(struct neap_step_ops) */
	uint32_t reserved;

	/* Advances the state from t0 to t1. */
	int (*advance)(void *user, void *state, int64_t t0, int64_t t1, int first);

	/*
	 * As advance, and writes the tapes of the steps, one after the other, at `tape`. Stops
	 * early, at *t_done < t1, when less than tape_max_bytes of room are left, possibly before
	 * the first step (*t_done == t0). *used is set to the number of bytes written, at most
	 * `room`. A call covers at most 64 steps, or record_steps.
	 */
	int (*record)(void *user, void *state, int64_t t0, int64_t t1, int first, void *tape,
		size_t room, size_t *used, int64_t *t_done);

	/* Computes the loss and its adjoint at T from the state at T, the number of steps. */
	int (*turn)(void *user, const void *state, void *adjoint, double *loss);

	/*
	 * Propagates the adjoint from t1 down to t0 and adds to the model's gradients. `tape`
	 * contains the tapes that one call of record wrote for exactly [t0, t1).
	 */
	int (*backward)(void *user, void *adjoint, int64_t t1, int64_t t0, const void *tape);

	size_t state_bytes;
	size_t adjoint_bytes;
	size_t tape_bytes;     /* per step: the exact size, or a mean for planning */
	size_t tape_max_bytes; /* upper bound for the tape of a step; 0: tape_bytes is exact */

	/*
	 * Optional: copy a state that the model stores elsewhere, such as on a device [memcpy]. If
	 * to == state, save must write the state to the bytes at `state`, which then go to a slow
	 * tier; if from == state, load restores the state from these bytes.
	 */
	int (*save)(void *user, void *to, const void *state);
	int (*load)(void *user, void *state, const void *from);
	/* Optional [nothing]: announces that steps [t0, t1) are next. */
	void (*will_touch)(void *user, int64_t t0, int64_t t1);
	/*
	 * Optional: required for a journal [no journal]. grad_save writes everything that the
	 * callbacks above have accumulated in the model so far, gradients and whatever is
	 * accumulated only if `first` is 1, through write(to, bytes, count), the same number of
	 * bytes each time. grad_load restores it through read(from, bytes, count) and overwrites
	 * what the model contains. Callbacks must return the negative codes of write and read.
	 */
	int (*grad_save)(void *user, int (*write)(void *, const void *, size_t), void *to);
	int (*grad_load)(void *user, int (*read)(void *, void *, size_t), void *from);

	/*
	 * Optional [options.steps is the length]: the model decides when the chain ends. Called
	 * once for each t, with the state at t, before step t runs for the first time; returns enum
	 * neap_ended or a negative code. options.steps is then ignored; memory is required and used
	 * in full; strategy is "online". States, and tapes if a tier is fast enough according to
	 * the costs of the options, are offloaded to one tier. In the forward pass, calls of record
	 * cover one step. The steps of neap_sweep_problem are those of the last run. A run that
	 * resumes from a journal calls `ended` again for steps after the commit.
	 */
	int (*ended)(void *user, const void *state, int64_t t);

	/*
	 * Optional, both or neither: a log of each step, from which its tape can be rebuilt at a
	 * lower cost than record [no log: strategy "replay" is infeasible].
	 *
	 * advance_log: as advance, and writes the log of the steps, one after the other, at `log`.
	 * Stops early, at *t_done < t1, when less than log_max_bytes of room are left. *used is set
	 * to the number of bytes written, at most `room`.
	 *
	 * replay: as record with `first` 0, with bit-identical state and tape, for steps with a
	 * log: `log` contains what one call of advance_log wrote for a range from log_t0 that
	 * includes [t0, t1).
	 */
	int (*advance_log)(void *user, void *state, int64_t t0, int64_t t1, int first, void *log,
		size_t room, size_t *used, int64_t *t_done);
	int (*replay)(void *user, void *state, int64_t t0, int64_t t1, const void *log,
		int64_t log_t0, void *tape, size_t room, size_t *used, int64_t *t_done);
	size_t log_bytes;     /* per step: the exact size, or a mean for planning */
	size_t log_max_bytes; /* upper bound for the log of a step; 0: log_bytes is exact */

	/* If tapes vary: mean bytes per step, if tape_bytes exceeds the mean [tape_bytes]. */
	size_t tape_mean_bytes;

	/*
	 * For a state that is stored elsewhere, in arrays of the model or on a device: the size of
	 * the token that represents the state in the argument `state` of callbacks [state_bytes:
	 * the state itself]. save and load are then required; they copy between the model's own
	 * memory and state_bytes bytes outside the token. x0 of neap_sweep_run has that format and
	 * is required. In the arena only checkpoints use state_bytes each, and with slow tiers or a
	 * journal one buffer for states in transfer. If the adjoint is also stored elsewhere,
	 * adjoint_bytes is 0: turn and backward compute it there, and dx0 is not written.
	 */
	size_t live_bytes;
	/* Bytes of the adjoint's numbers, 4 or 8; they must be finite (NEAP_EDIVERGED). */
	size_t adjoint_real; /* 0: not checked */

	/*
	 * Optional: the memory of the arena, such as a device's [ordinary memory]. State, tape,
	 * adjoint and log are pointers into it; x0 and dx0 are not, but `load` is passed x0.
	 */
	const struct neap_memory_ops *memory;
	/* Optional: most steps of one call of record, a multiple of 64 [64]. */
	int64_t record_steps;
	/*
	 * Optional: for callbacks that start work and return before it is done, as on a device
	 * [the work of a callback is done when it returns]. advance, record, backward, advance_log,
	 * replay, save and load may return early if the work of all calls is done in the order of
	 * the calls; *used and *t_done are set on return. fence waits until all of it is done. It
	 * returns 0, or the negative code of a call that failed, which ends the run; set the reason
	 * with neap_detail_set.
	 *
	 * Called by the thread that runs the sweep, not during a callback, and only after calls
	 * that have not been waited for: before the sweep reads or writes bytes of the arena
	 * (neap_memory_ops has the exceptions), passes them to a tier that is not in_order
	 * (neap_tier_ops), calls turn, grad_save or grad_load, or uses the times of steps; and at
	 * the end of a run, also of one that failed. x0 is not used after that. ended is called
	 * without a fence.
	 *
	 * The seconds in a fence are counted as seconds of the calls that it waits for, divided
	 * among several kinds of calls as planned. neap_sweep_calibrate also waits between calls of
	 * different kinds.
	 */
	int (*fence)(void *user);
};

/* The results of neap_step_ops.ended. */
enum neap_ended {
	NEAP_GO_ON,
	NEAP_ENDED,	/* T = t */
	NEAP_LAST_STEP, /* T = t + 1; avoids a few recomputed steps if the model knows this */
};

/* How a sweep is planned and run: budget, strategy, tiers, costs and journal. */
struct neap_sweep_options {
	uint32_t size; /* sizeof(struct neap_sweep_options) */
	int ntiers;
	int64_t steps;
	uint64_t memory;      /* budget in bytes; 0: limited only by the memory of the machine */
	const char *strategy; /* NULL: "auto" */
	struct neap_params params;	/* 0: chosen by the strategy */
	struct neap_tier *const *tiers; /* slow tiers, fastest first; borrowed */
	/*
	 * Seconds per step, for planning (see neap_sweep_calibrate). All 0: assumed to be 1, 1 and
	 * 2 without tiers; with tiers, which need seconds, the first run times its first steps.
	 */
	double advance, record, backward;
	/* Called between actions; a non-zero result ends the sweep with NEAP_EINTERRUPTED. */
	int (*interrupted)(void *user);
	void *interrupted_user;
	/*
	 * A plan to run, from neap_plan_read, instead of planning, with the costs and tier rates
	 * that it was made for; borrowed until the sweep is freed. Its sizes and tiers are compared
	 * and its schedule is verified (NEAP_EUSAGE, NEAP_EILLEGAL). strategy, params and costs are
	 * then ignored.
	 */
	const struct neap_saved *saved;
	/*
	 * Directory for a journal, from which the sweep can be resumed (see below). journal_seconds
	 * is the time between commits; 0: 30, and at least 30 times the duration of the last
	 * commit; below 0: before every call of the model, for tests. journal_key identifies
	 * everything else that the result depends on, such as parameters and data: a hash of them.
	 * journal_in_memory: the directory may be in RAM (tmpfs).
	 */
	const char *journal;
	double journal_seconds;
	uint64_t journal_key;
	int journal_in_memory;
	double replay; /* seconds per step, for planning; 0: as record */
	/* Trace that stores the events of the last run; borrowed. NULL: none. */
	struct neap_trace *trace;
	double slot_write, slot_read; /* seconds per copy of the state, for planning */
	/*
	 * A transfer is abandoned, and its record treated as lost, after its tier has transferred
	 * no byte for this number of seconds (neap_tier_set_patience). 0 or infinite: never.
	 */
	double patience;
	double call; /* fixed seconds per call, in addition to its steps, for planning */
	/*
	 * If the measured times of a tier or of the model's steps differ by more than 5% from the
	 * plan, `async`, `stream` and `auto` plan the remaining steps again at the end of a block
	 * of the forward pass, provided that the rest takes over 100 times as long as planning, all
	 * searches of the run included, and use the new plan if it is faster for the measured
	 * times. The budget and the gradient, to the last bit, are unaffected. 1: never; also never
	 * with a journal or a saved plan. Below 0: however short the rest is, for tests.
	 */
	int no_replan;
	/*
	 * For a collective sweep, in which the state of the model is distributed over ranks whose
	 * callbacks communicate (see below). agree replaces each value by its minimum over all
	 * ranks, on all ranks, and waits for all; returns 0 or a negative code. NULL: not
	 * collective.
	 */
	int (*agree)(void *user, int64_t *values, int count);
	/*
	 * Called when this rank ends a run with an error that the other ranks may not know of, such
	 * as a negative result of a callback, to end them. May not return. NULL: the other ranks
	 * notice at the next agreement, unless their callbacks wait for this rank.
	 */
	void (*leave)(void *user, int code);
	void *agree_user;
	const char *journal_suffix; /* suffix of the journal's name, as neap_file_options.suffix */
	/*
	 * 1: checks the model, for debugging, with one call of advance per step. NEAP_EMODEL: a
	 * recomputed state differs from the original one, or a callback wrote more bytes than *used
	 * reports. NEAP_EDIVERGED is reported at the first backward that causes it. Needs 16 bytes
	 * for each of the latest 1,048,576 steps (65,536 if the length is unknown; none with
	 * live_bytes), which are compared.
	 */
	int check, reserved;
};

/*
 * Collective sweeps. If the state of a model is distributed over processes (ranks), its callbacks
 * exchange the values at the borders: all ranks must make the same calls in the same order,
 * whatever the clock, the disks or the errors of one rank. Functions marked collective must be
 * called by all ranks if `agree` is set; they call it, and it is never called from within a
 * callback. With MPI, on a separate communicator, and with `patience`, so that no rank waits
 * forever for its own disk:
 *
 *     static int agree(void *comm, int64_t *v, int n)
 *     {
 *             return MPI_Allreduce(MPI_IN_PLACE, v, n, MPI_INT64_T, MPI_MIN, *(MPI_Comm *)comm)
 *                            ? -EIO : 0;
 *     }
 *     static void leave(void *comm, int code) { MPI_Abort(*(MPI_Comm *)comm, 1); }
 *
 * All ranks use one plan, made with the largest of all costs and the smallest of all capacities and
 * budgets, which is not replaced during the run (no_replan). A record that one rank loses is
 * recomputed by all. Ranks agree at every wait for a transfer, and about ten times per second on
 * whether a rank was interrupted or has a commit due. An interrupt, a lost record or a full disk on
 * one rank is not an error. An interrupt less than 0.1 s before the end may be ignored.
 *
 * Requirements: callbacks return the same code, the same *t_done and the same result of `ended` on
 * every rank (a model whose tapes vary must ask the other ranks whether the next tape fits); turn
 * must sum the loss itself. Sizes, steps, strategy and the order of tiers must be equal; sizes that
 * differ are padded to the largest. NEAP_EUSAGE: the detail line shows what differs. NEAP_EILLEGAL:
 * "the ranks went apart": one of them made different calls, or failed alone.
 */

/*
 * Journals. The sweep writes commits to the file neap.journal in the given directory. A commit
 * contains the used part of the arena, the tables of the run, and the output of grad_save; it is
 * atomic. However the process ended, including by kill -9, the same program resumes from the last
 * commit with the same plan: gradients, loss and dx0 are bit-identical to those of an uninterrupted
 * sweep. Steps after that commit run again, with `first` as before; grad_load has restored the
 * model to its contents at the commit.
 *
 *     const struct neap_file_options kept = {.size = sizeof kept, .keep = 1};
 *     neap_tier_open_file(&tier, "/scratch", &kept);    its records outlive the process
 *     options.journal = "/scratch";
 *     neap_sweep_create(&sweep, ...);          uses the plan of an existing journal
 *     neap_sweep_run(sweep, x0, dx0, &loss, &stats);          starts, or resumes
 *     ... save the results ...
 *     neap_sweep_free(sweep);                  removes the journal of a finished run
 *
 * Records that were lost, or on tiers that end with the process (memory; files without `keep`), are
 * recomputed. NEAP_EUSAGE, with a one-line reason: the journal belongs to a different model, x_0,
 * key or strategy; another process has it open; a file of this name was not written by neap, or is
 * a link; the directory is in RAM; the model has no grad_save and grad_load. NEAP_EINTERRUPTED
 * writes a last commit. A failed commit is only counted.
 *
 * A journal needs 64 KiB of memory in addition to the arena, and disk space of up to twice the
 * arena, the tables and the output of grad_save. The sweep waits while a commit is written (from
 * the arena, bypassing the page cache if possible), at most 3% of the time. The tiers must exist
 * until neap_sweep_free. A new plan (neap_sweep_replan) discards the journal. neap_stage_sweep_run
 * resumes in the same way.
 *
 * In a collective sweep each rank has its own journal: in one directory with a journal_suffix, such
 * as ".3" for rank 3, and tiers with neap_file_options.suffix. All ranks commit together and resume
 * from the last commit that is complete on all. If a rank has no journal of this run, all start
 * from the beginning, and stats.started_over is 1; neap_journal_there finds that rank. journal_key
 * must also identify the rank and the number of ranks.
 */

struct neap_sweep;

/*
 * Creates a sweep: makes the plan and checks everything, but does not map the arena. ops and
 * options are copied; user and the tiers are borrowed. Memory of the tables, in addition to the
 * arena: 20 KiB, 40 bytes per 64 steps recorded at a time, 32 per slot and 8 per place on a tier.
 * If tapes are offloaded: twice that, plus 48 per place for tapes and 64 per 64 of their steps; if
 * also the length is unknown, up to 11 MiB for the pieces of single steps, touched as they are
 * used. NEAP_EINFEASIBLE: the detail line shows a budget that works. Collective.
 */
NEAP_API int neap_sweep_create(struct neap_sweep **sweep, const struct neap_step_ops *ops,
	void *user, const struct neap_sweep_options *options);

/*
 * Times the model and the tiers of `options` on this machine. Takes about `seconds` (0: 2), longer
 * if steps are slow, since at least five forward and backward steps run. Writes the results to
 * options: advance, record, backward, call, slot_write, slot_read and, with logs, replay. The rates
 * of the tiers are set (neap_tier_measure), and their contents are lost. For this, runs sweeps over
 * the first steps from x0 (NULL: all zero bytes), with at most options->memory, and at most 16 MiB
 * more than one step needs: `first` is 1 in each, and backward accumulates as usual. After each
 * sweep the output of grad_save is restored; a model without grad_save and grad_load must clear
 * what it accumulated. A tier with the records of an interrupted sweep (`keep`, tier.h) keeps its
 * records and rates. NEAP_EUSAGE for a collective sweep, which times its first steps if it has no
 * costs. If the model or a tier fails, or a tier is too small, options are unchanged. Not for two
 * threads at a time with one model.
 */
NEAP_API int neap_sweep_calibrate(struct neap_sweep_options *options,
	const struct neap_step_ops *ops, void *user, const void *x0, double seconds);

/*
 * Makes a new plan for other steps, sizes or costs (from ops and options as in create). Keeps the
 * arena if it is large enough and within the budget. On error the sweep is unchanged; NEAP_EUSAGE
 * while it runs, in any thread. Collective.
 */
NEAP_API int neap_sweep_replan(struct neap_sweep *sweep, const struct neap_step_ops *ops,
	const struct neap_sweep_options *options);

/* Returns the current plan; owned by the sweep. A run may change it (no_replan). */
NEAP_API const struct neap_plan *neap_sweep_plan(const struct neap_sweep *sweep);
/* Returns the problem that the current plan solves; owned by the sweep. */
NEAP_API const struct neap_problem *neap_sweep_problem(const struct neap_sweep *sweep);

/* Why a sweep waited. */
enum neap_stall {
	NEAP_STALL_PUT,	   /* a write, because the plan needs its memory or its completion */
	NEAP_STALL_GET,	   /* a read */
	NEAP_STALL_ROOM,   /* room that the plan did not provide: larger tapes, recoveries */
	NEAP_STALL_REPAIR, /* transfers of recoveries, and states saved for them */
	NEAP_STALL_ISSUE,  /* issuing transfers; the whole transfer if the engine blocks */
	NEAP_STALLS
};
/* Returns "put", "get", "room", "repair" or "issue"; NULL for other numbers. */
NEAP_API const char *neap_stall_name(int stall);

/* Statistics of a run: bytes, steps, seconds, stalls and recoveries. */
struct neap_sweep_stats {
	uint32_t size; /* sizeof(struct neap_sweep_stats) */
	uint32_t reserved;
	uint64_t arena_bytes;	/* of this plan, plus memory allocated after tiers were lost */
	uint64_t peak_planned;	/* bytes */
	uint64_t peak_measured; /* high-water mark of live bytes in the arena */
	int64_t advance_steps, record_steps, backward_steps;
	uint64_t written[NEAP_TIERS_MAX], read[NEAP_TIERS_MAX];
	double seconds;			  /* wall-clock time of the whole sweep */
	double compute;			  /* time in the model's callbacks */
	double advance, record, backward; /* parts of compute */
	double stall;			  /* time spent waiting for transfers */
	double predicted;		  /* the plan's makespan (predicted seconds) */
	double predicted_stall;
	uint64_t tape_bytes;	  /* bytes of tapes recorded, to estimate the mean */
	uint64_t tape_largest;	  /* mean bytes per step of the fullest record call */
	int64_t overflows;	  /* tapes that did not fit in their planned place */
	int64_t recoveries;	  /* records lost, short, corrupt, late or rejected */
	int64_t recomputed;	  /* additional forward steps for overflows and recoveries */
	uint64_t resident_growth; /* growth of VmHWM during the sweep, if neap_sweep_watch is on */
	uint64_t moved;		  /* bytes moved within the arena because no gap was large enough */
	/* For a journal. In a resumed sweep the other numbers count from its beginning. */
	int64_t commits, commits_failed;
	double journal; /* seconds in commits */
	int64_t spared; /* forward and backward steps done before the run resumed */
	/* With logs: the part of record_steps that was replayed, and its seconds. */
	int64_t replay_steps;
	double replay;
	uint64_t log_bytes; /* bytes of logs written, and number of steps, to estimate the mean */
	int64_t logged_steps;
	double stalls[NEAP_STALLS]; /* `stall` by enum neap_stall; the sum is `stall` */
	double copies;		    /* seconds of copying states in tier 0 */
	double slowdown;	    /* compute minus the planned seconds of the steps done */
	double predicted_lost;	    /* part of `predicted`: computation lost to transfers */
	double lost;		    /* part of compute lost to transfers, by the plan's costs */
	int64_t late;		    /* transfers abandoned: see neap_sweep_options.patience */
	/* Calls of the model; record_calls includes replay. */
	int64_t advance_calls, record_calls, backward_calls;
	/* Largest number of steps of one kind timed beforehand, if the options give no costs. */
	int64_t measured_steps;
	int64_t replans; /* number of times the rest was replanned: neap_sweep_options.no_replan */
	/*
	 * Prediction of `seconds` after 1/10 of the forward pass, from the measured times of steps
	 * and tiers; 0: not available, for example if the length is unknown.
	 */
	double foreseen;
	/* 1: a rank had no journal of this run or lacked a commit: all ranks started over. */
	int started_over;
	uint32_t reserved2;
};

/*
 * Runs one forward and backward pass. x0 (NULL: all zero bytes) is borrowed and must not change
 * while the sweep runs: lost records are recomputed from it. dx0 (may be NULL) receives the adjoint
 * at step 0, adjoint_bytes long. The arena stays mapped until neap_sweep_free or
 * neap_sweep_release. After an error (from a callback, NEAP_EINTERRUPTED) no transfer is in flight
 * and the sweep can run again. A tier that cannot be formatted, for example on a full disk, is
 * treated as one that rejects every record. If tiers reject or lose everything, the plan may be
 * abandoned: the remaining steps are then reversed in fast memory, in the arena and the rest of
 * `memory`. Transfers that `patience` abandoned but the system still performs may touch the tier's
 * staging at any time: that part of the arena stays mapped when the sweep is freed or released.
 * NEAP_EUSAGE if the sweep already runs, in any thread, or one of its tiers is in use; that run
 * continues. NEAP_EDIVERGED, with the step: the loss (in *loss) or an adjoint (adjoint_real) is not
 * finite; dx0 is not written. Collective.
 */
NEAP_API int neap_sweep_run(struct neap_sweep *sweep, const void *x0, void *dx0, double *loss,
	struct neap_sweep_stats *stats);

/* Returns stats.foreseen of the current run; 0 until it is known. For callbacks and any thread. */
NEAP_API double neap_sweep_foreseen(const struct neap_sweep *sweep);
/* Returns stats.spared of the current run; 0 if it did not resume. For callbacks and any thread. */
NEAP_API int64_t neap_sweep_spared(const struct neap_sweep *sweep);

/* If `on`, runs measure resident_growth (this resets the kernel's high-water mark). */
NEAP_API void neap_sweep_watch(struct neap_sweep *sweep, int on);

/* Maps the arena and touches every page, for the next run. NEAP_EUSAGE while the sweep runs. */
NEAP_API int neap_sweep_touch(struct neap_sweep *sweep);

/*
 * Returns 1 if the directory has a journal to resume from, 0 if not, or NEAP_EUSAGE as create.
 * suffix: as neap_sweep_options.journal_suffix; NULL: none.
 */
NEAP_API int neap_journal_there(const char *directory, const char *suffix, int in_memory);

/* Unmaps the arena; the next run maps it again. Does nothing while the sweep runs. */
NEAP_API void neap_sweep_release(struct neap_sweep *sweep);
/* Returns the bytes of the arena that are mapped now. For callbacks and any thread. */
NEAP_API uint64_t neap_sweep_mapped(const struct neap_sweep *sweep);
/* Frees a sweep, and the journal of a finished run. Does nothing while it runs. NULL is allowed. */
NEAP_API void neap_sweep_free(struct neap_sweep *sweep);

#ifdef __cplusplus
}
#endif

#include <neap/stages.h> /* stage chains and joins */
#endif
