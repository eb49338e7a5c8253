/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sweep.h: runs a schedule on a model: one forward and one backward pass over the chain, in one
 * arena whose size the plan fixed.
 *
 *     struct neap_step_ops ops = {.size = sizeof ops, .advance = advance,
 *             .record = record, .turn = turn, .backward = backward,
 *             .state_bytes = S, .adjoint_bytes = S, .tape_bytes = A};
 *     struct neap_sweep_options o = {.size = sizeof o, .steps = T, .memory = 16 << 20};
 *     struct neap_sweep *sweep;
 *     neap_sweep_create(&sweep, &ops, model, &o);
 *     neap_sweep_run(sweep, x0, dx0, &loss, NULL);     as often as wanted
 *     neap_sweep_free(sweep);
 */
#ifndef NEAP_SWEEP_H
#define NEAP_SWEEP_H

#include <neap/plan.h>
#include <neap/tier.h>
#include <neap/trace.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Threads: sweeps of different threads do not meet, as long as each has a model, tiers and a trace
 * of its own. One sweep, tier, schedule or trace is for one thread at a time, not always the same.
 * Plans and problems are plain values. The detail line is each thread's own.
 *
 * A run has its sweep and its tiers to itself. While it lasts, in its callbacks and in other
 * threads, run, replan and touch of the sweep answer NEAP_EUSAGE and change nothing, release and
 * free do nothing (reason: neap_detail), and calls of its tiers and runs of other sweeps over them
 * answer NEAP_EUSAGE. Callbacks may create, run and free other sweeps.
 *
 * Lifetimes: what is passed to a create function is copied, strings and lists too; borrowed until
 * the sweep is freed are `user`, the tiers, options.saved, options.trace, the arrays of stages and
 * interrupted_user. Free sweeps before tiers (a run answers NEAP_EUSAGE after a tier was closed).
 * x0 is borrowed while a run lasts.
 */

/*
 * The callbacks and sizes of a model. Steps run over ranges [t0, t1), so that a model may fuse
 * them. Callbacks return 0 or a negative code, which ends the sweep; neap_detail_set reports the
 * reason. All calls come from the thread that runs the sweep. Pointers into the arena are aligned
 * to 64 bytes.
 *
 * The plan counts every size rounded up to 64 bytes, a step's tape, too; tapes of one record call
 * lie packed, as the model writes them. With tape_max_bytes above tape_bytes tapes vary: a tape
 * that does not fit where the plan put it is recomputed when it is needed, in the same arena, and
 * counted as an overflow.
 *
 * `first` is 1 the first time a range is passed in a sweep and 0 afterwards: a model gathers
 * losses and counts only where it is 1. advance and record must do the same arithmetic.
 */
struct neap_step_ops {
	uint32_t size; /* sizeof(struct neap_step_ops) */
	uint32_t reserved;

	/* Moves the state from t0 to t1. */
	int (*advance)(void *user, void *state, int64_t t0, int64_t t1, int first);

	/*
	 * The same, and writes the tapes of the steps, together, at `tape`. Stops
	 * early, at *t_done < t1, where the room left is less than tape_max_bytes.
	 * *used is the number of bytes written: at most `room`. At most 64 steps
	 * are asked for at a time. May be asked for 0 tapes at t_done == t0.
	 */
	int (*record)(void *user, void *state, int64_t t0, int64_t t1, int first, void *tape,
		size_t room, size_t *used, int64_t *t_done);

	/* Makes the loss, and the adjoint at T, of the state at T, the number of steps. */
	int (*turn)(void *user, const void *state, void *adjoint, double *loss);

	/*
	 * Moves the adjoint from t1 down to t0, adding to the model's gradients.
	 * `tape` is what one call of record over exactly [t0, t1) wrote.
	 */
	int (*backward)(void *user, void *adjoint, int64_t t1, int64_t t0, const void *tape);

	size_t state_bytes;
	size_t adjoint_bytes;
	size_t tape_bytes;     /* of a step: the exact size, or a mean to plan with */
	size_t tape_max_bytes; /* the largest a step may need; 0: tape_bytes, exact */

	/*
	 * Optional: copies of a state that the model holds elsewhere, such as on a device
	 * [memcpy]. Where to == state, save must make the bytes at `state` the state's, since
	 * they go to a slow tier; where from == state, load takes the state from these bytes.
	 */
	int (*save)(void *user, void *to, const void *state);
	int (*load)(void *user, void *state, const void *from);
	/* Optional [nothing]: says that steps [t0, t1) come next. */
	void (*will_touch)(void *user, int64_t t0, int64_t t1);
	/*
	 * Optional: for a journal [no journal]. What the callbacks above have gathered in
	 * the model so far, gradients and whatever is kept where `first` is 1, goes out
	 * through write(to, bytes, count), as many bytes each time; grad_load takes it
	 * back through read(from, bytes, count), whatever the model held before. Both
	 * answer 0 or a negative code, which is to be passed on.
	 */
	int (*grad_save)(void *user, int (*write)(void *, const void *, size_t), void *to);
	int (*grad_load)(void *user, int (*read)(void *, void *, size_t), void *from);

	/*
	 * Optional [options.steps says]: the model tells when the chain ends. Called with the
	 * state at t before step t is taken for the first time, once for each t; answers enum
	 * neap_ended or a negative code. options.steps is not read then; memory must be given
	 * and is used in full, strategy is "online". States, and tapes where a tier is fast
	 * enough by the costs of the options, leave for one tier on the way. Going forward,
	 * calls of record take one step each. neap_sweep_problem's steps are those of the last
	 * run. A run that resumes from a journal asks about steps after the commit again.
	 */
	int (*ended)(void *user, const void *state, int64_t t);

	/*
	 * Optional, both or neither: a log of what steps did, from which their tapes can be
	 * made again for less than record costs [no log: strategy "replay" is infeasible].
	 *
	 * advance_log: as advance, and writes the log of the steps, together, at `log`. Stops
	 * early, at *t_done < t1, where the room left is less than log_max_bytes. *used is
	 * the number of bytes written: at most `room`.
	 *
	 * replay: as record with `first` 0, to the bit in state and tape, of steps whose log
	 * is there: one call of advance_log from log_t0 on, over [t0, t1) and perhaps more,
	 * wrote it at `log`.
	 */
	int (*advance_log)(void *user, void *state, int64_t t0, int64_t t1, int first, void *log,
		size_t room, size_t *used, int64_t *t_done);
	int (*replay)(void *user, void *state, int64_t t0, int64_t t1, const void *log,
		int64_t log_t0, void *tape, size_t room, size_t *used, int64_t *t_done);
	size_t log_bytes;     /* of a step: the exact size, or a mean to plan with */
	size_t log_max_bytes; /* the largest a step may need; 0: log_bytes, exact */

	/* Of tapes that vary: the mean, where tape_bytes leaves room above it [tape_bytes]. */
	size_t tape_mean_bytes;

	/*
	 * Of a state that lives elsewhere, in arrays of the model's or on a device: bytes of
	 * the token that stands for it where callbacks take `state` [state_bytes: the state
	 * itself]. save and load are required then; they copy between the model's own memory
	 * and state_bytes bytes elsewhere, never within the token. x0 of neap_sweep_run is
	 * such bytes, and required. No state but those that are kept takes room in the arena;
	 * with slow tiers, or a journal, one more does, through which states travel. An
	 * adjoint that lives elsewhere, too, has adjoint_bytes 0: turn makes it, backward
	 * moves it, and dx0 stays as it is.
	 */
	size_t live_bytes;
	/* 4 or 8: bytes of an adjoint's numbers, which must be finite (NEAP_EDIVERGED) */
	size_t adjoint_real; /* 0: not checked */
};

/* What neap_step_ops.ended answers. */
enum neap_ended {
	NEAP_GO_ON,
	NEAP_ENDED,	/* T = t */
	NEAP_LAST_STEP, /* T = t + 1: spares a few steps, where that can be told */
};

/* How a sweep is planned and run: budget, strategy, tiers, costs and journal. */
struct neap_sweep_options {
	uint32_t size; /* sizeof(struct neap_sweep_options) */
	int ntiers;
	int64_t steps;
	uint64_t memory;      /* budget in bytes; 0: unlimited, up to the memory of the machine */
	const char *strategy; /* NULL: "auto" */
	struct neap_params params;	/* 0: choose */
	struct neap_tier *const *tiers; /* slow tiers, fastest first; borrowed */
	/*
	 * Seconds a step, for planning (neap_sweep_calibrate). All 0: 1, 1 and 2 without
	 * tiers; with tiers, whose seconds count, the first run times its first steps.
	 */
	double advance, record, backward;
	/* Asked between actions; non-zero ends the sweep with NEAP_EINTERRUPTED. */
	int (*interrupted)(void *user);
	void *interrupted_user;
	/*
	 * A plan to run instead of planning (neap_plan_read), with the costs and tier
	 * rates it was made for; borrowed while the sweep lives. Sizes and tiers are
	 * compared, the schedule is verified: NEAP_EUSAGE, NEAP_EILLEGAL. strategy,
	 * params and costs above are not read then.
	 */
	const struct neap_saved *saved;
	/*
	 * A directory for a journal: the sweep can be resumed there (see below).
	 * journal_seconds between commits, 0: 30; at least 30 times what the last one
	 * took; below 0: before every call of the model, for tests. journal_key stands
	 * for what else the result depends on, such as parameters and data: a hash of
	 * them. journal_in_memory: the directory may lie in memory (tmpfs).
	 */
	const char *journal;
	double journal_seconds;
	uint64_t journal_key;
	int journal_in_memory;
	double replay; /* seconds a step, for planning; 0: as record */
	/* A trace, which keeps the events of the last run; borrowed. NULL: none. */
	struct neap_trace *trace;
	double slot_write, slot_read; /* seconds a copy of the state, for planning */
	/*
	 * A transfer is given up once its tier has moved no byte for so many seconds
	 * (neap_tier_set_patience); its record counts as lost. 0 or infinite: never.
	 */
	double patience;
	double call; /* seconds a call besides its steps, for planning */
	/*
	 * Where a tier or the model's steps turn out to be more than 5% off what was
	 * planned, `async`, `stream` and `auto` plan the rest again at the end of a block of
	 * their first pass, if the rest takes over 100 times as long as planning does, and do
	 * that where it is shorter with what was measured. The budget holds, the gradient is the
	 * same to the bit. 1: never; nor with a journal, or a saved plan; below 0: however
	 * short the rest is, for tests.
	 */
	int no_replan;
	/*
	 * A collective sweep: the state of the model is spread over ranks, whose callbacks meet
	 * (see below). agree replaces each value by the least over all ranks, on all of them, and
	 * waits for all: 0, or a negative code. NULL: the sweep is alone.
	 */
	int (*agree)(void *user, int64_t *values, int count);
	/*
	 * This rank ends a run with an error that the others may not know of, such as a callback's
	 * answer: ends them. May not come back. NULL: they find out at the next agreement, unless
	 * their callbacks wait for this rank.
	 */
	void (*leave)(void *user, int code);
	void *agree_user;
	const char *journal_suffix; /* of the journal's name, as neap_file_options.suffix */
	/*
	 * 1: checks the model, for debugging, one step a call of advance. NEAP_EMODEL: a recomputed
	 * state differs from before, or more bytes were written than *used reports.
	 * NEAP_EDIVERGED at the first backward that causes it. Takes 16 bytes for each of the
	 * latest 1,048,576 steps (65,536 of unknown lengths; none with live_bytes), which are
	 * compared.
	 */
	int check, reserved;
};

/*
 * Collective sweeps. Where the state of a model is spread over processes, its callbacks exchange
 * what lies at the borders: all ranks have to make the same calls in the same order, whatever the
 * clock, the disks or the errors of one of them say. Calls marked collective are made by all
 * ranks, with a hook; it is called from within them, never from within a callback. With MPI, on a
 * communicator of its own, and with patience, so that no rank waits for ever for its own disk:
 *
 *     static int agree(void *comm, int64_t *v, int n)
 *     {
 *             return MPI_Allreduce(MPI_IN_PLACE, v, n, MPI_INT64_T, MPI_MIN, *(MPI_Comm *)comm)
 *                            ? -EIO : 0;
 *     }
 *     static void leave(void *comm, int code) { MPI_Abort(*(MPI_Comm *)comm, 1); }
 *
 * One rank plans, with the largest of all costs and the least of all capacities and budgets. A
 * record that one rank loses is made again by all. Every wait for a transfer is an agreement, and
 * about ten a second ask whether any rank was interrupted, or has a commit that is due. An
 * interrupt, a record that is lost and a disk that is full are no errors of one rank. An interrupt
 * that comes less than a tenth of a second before the end may be too late.
 *
 * What the model sees to: its callbacks answer the same code, the same *t_done and the same
 * `ended` on every rank (a model whose tapes vary asks the others whether the next tape fits);
 * turn's loss is its own to add up. Sizes, steps, strategy and the order of tiers are the same:
 * sizes that differ are padded to the largest. NEAP_EUSAGE names what differs. NEAP_EILLEGAL:
 * "the ranks went apart": one of them made other calls, or failed alone. A plan is not replaced on
 * its way (no_replan).
 */

/*
 * Journals. The file neap.journal in that directory takes commits: a commit is all that the
 * run keeps in the arena and its tables, and what the model gathered, whole or not at all.
 * Whatever ends the process, kill -9 too, the same program run again resumes from the last
 * commit, with the same plan: gradients, loss and dx0 are those of a sweep that was never
 * interrupted, to the bit. Steps passed after that commit are passed again, with `first` as
 * before; grad_load has set the model back to what it was at the commit.
 *
 *     const struct neap_file_options kept = {.size = sizeof kept, .keep = 1};
 *     neap_tier_open_file(&tier, "/scratch", &kept);    its records outlive the process
 *     options.journal = "/scratch";
 *     neap_sweep_create(&sweep, ...);       takes the plan of a journal that is there
 *     neap_sweep_run(sweep, x0, dx0, &loss, &stats);          starts, or resumes
 *     ... save what it gave ...
 *     neap_sweep_free(sweep);               removes the journal of a run that ended
 *
 * Records of tiers that do not outlive the process (memory; files without `keep`), or
 * that were lost meanwhile, are recomputed. NEAP_EUSAGE, one line: a journal of another
 * model, x_0, key or strategy; one that another process has open; a file of its name that
 * is not ours, or a link; a directory in memory; a model without grad_save and grad_load.
 * NEAP_EINTERRUPTED takes a last commit. A commit that fails is counted, nothing else.
 *
 * Beside the arena a journal takes 64 KiB of memory, and on its disk up to twice the
 * arena, the tables and what the model saves. While a commit is written, from the arena
 * itself and past the page cache where that can be, the sweep waits: 3% of the time at
 * most. The tiers must live until neap_sweep_free. Another plan (neap_sweep_replan) drops
 * the journal. neap_stage_sweep_run resumes in the same way.
 *
 * Of a collective sweep, each rank has a journal: in one directory with journal_suffix, ".3" of
 * rank 3, and tiers with neap_file_options.suffix. All commit at once, and all resume from the last
 * commit that is whole on all. Where one has no journal of this run, all start over, and
 * stats.started_over says so; neap_journal_there tells which rank it is. journal_key stands for the
 * number of ranks and the rank, too.
 */

struct neap_sweep;

/*
 * Plans and checks everything; maps no arena yet. ops and options are copied, user and the tiers
 * are borrowed. Tables beside the arena take 40 bytes for each 64 steps recorded at a time, 32 a
 * slot, 8 a place of a tier, and 20 KiB; where tapes leave for tiers, twice that, 48 a place for
 * tapes and 64 for each 64 steps of theirs; where the length is not known and tapes leave, up to
 * 11 MiB for the pieces of single steps, touched as they are used. NEAP_EINFEASIBLE: the line
 * names a budget that would do. Collective.
 */
NEAP_API int neap_sweep_create(struct neap_sweep **sweep, const struct neap_step_ops *ops,
	void *user, const struct neap_sweep_options *options);

/*
 * Times the model and the tiers of `options` on this machine, for about `seconds` (0: 2), and
 * writes what it found to options: advance, record, backward, call, slot_write, slot_read and,
 * where there are logs, replay; the tiers get their rates (neap_tier_measure), and lose what they
 * held. Sweeps over the first steps from x0 (NULL: all zero bytes) are run for that, within
 * options->memory: `first` is 1 in each of them, and backward gathers as it always does. What
 * grad_save says is given back after each; a model without grad_save and grad_load clears what
 * it gathered itself. A step that takes long makes it take longer than `seconds`: five
 * forward and backward steps at least are taken. A tier of an interrupted sweep (`keep`, tier.h)
 * keeps its records and the rates that it has. NEAP_EUSAGE for a collective sweep, which times its
 * first steps where it has no costs. Where the model or a tier fails, or a tier is too
 * small, options stay as they were. Not in two threads at a time with one model.
 */
NEAP_API int neap_sweep_calibrate(struct neap_sweep_options *options,
	const struct neap_step_ops *ops, void *user, const void *x0, double seconds);

/*
 * Plans anew for other steps, sizes or costs (from ops and options as at create).
 * Keeps the arena where it is large enough and within the budget. A refusal
 * leaves the sweep as it was; NEAP_EUSAGE while it runs, in any thread. Collective.
 */
NEAP_API int neap_sweep_replan(struct neap_sweep *sweep, const struct neap_step_ops *ops,
	const struct neap_sweep_options *options);

/* The plan in force; owned by the sweep. A run may change it (no_replan). */
NEAP_API const struct neap_plan *neap_sweep_plan(const struct neap_sweep *sweep);
/* The problem that the plan in force solves; owned by the sweep. */
NEAP_API const struct neap_problem *neap_sweep_problem(const struct neap_sweep *sweep);

/* What a sweep waited for. */
enum neap_stall {
	NEAP_STALL_PUT,	   /* a write, since the plan needs its memory or its end */
	NEAP_STALL_GET,	   /* data to arrive */
	NEAP_STALL_ROOM,   /* room that the plan did not ask for: fuller tapes, recoveries */
	NEAP_STALL_REPAIR, /* what recoveries read and write, and states kept for them */
	NEAP_STALL_ISSUE,  /* handing transfers over; all of them, where the engine blocks */
	NEAP_STALLS
};
/* "put", "get", "room", "repair", "issue"; NULL beyond. */
NEAP_API const char *neap_stall_name(int stall);

/* What a sweep did: bytes, steps, seconds, stalls and repairs. */
struct neap_sweep_stats {
	uint32_t size; /* sizeof(struct neap_sweep_stats) */
	uint32_t reserved;
	uint64_t arena_bytes; /* of this plan, and what was taken beyond it where tiers were lost */
	uint64_t peak_planned;	/* bytes */
	uint64_t peak_measured; /* high-water mark of live bytes in the arena */
	int64_t advance_steps, record_steps, backward_steps;
	uint64_t written[NEAP_TIERS_MAX], read[NEAP_TIERS_MAX];
	double seconds;			  /* wall clock, whole sweep */
	double compute;			  /* inside the model's callbacks */
	double advance, record, backward; /* of it, by kind */
	double stall;			  /* waiting for transfers */
	double predicted;		  /* the plan's makespan */
	double predicted_stall;
	uint64_t tape_bytes;	  /* bytes of tapes recorded, to learn the mean */
	uint64_t tape_largest;	  /* mean bytes a step of the fullest record call */
	int64_t overflows;	  /* tapes that did not fit where the plan put them */
	int64_t recoveries;	  /* records lost, short, corrupt, late or refused */
	int64_t recomputed;	  /* extra forward steps that overflows and recoveries cost */
	uint64_t resident_growth; /* VmHWM growth over the sweep, if asked by neap_sweep_watch */
	uint64_t moved;		  /* bytes moved within the arena, where no gap was large enough */
	/* Of a journal; the other numbers of a sweep that resumes count from its beginning. */
	int64_t commits, commits_failed;
	double journal; /* seconds in commits */
	int64_t spared; /* steps, forward and backward, that were done when it resumed */
	/* Where there are logs: those of record_steps that were replayed, and their seconds. */
	int64_t replay_steps;
	double replay;
	uint64_t log_bytes; /* written, and for how many steps, to learn the mean */
	int64_t logged_steps;
	double stalls[NEAP_STALLS]; /* `stall` by enum neap_stall: they add up to it */
	double copies;		    /* copying states within tier 0 */
	double slowdown;	    /* compute, less what the plan's costs say of the steps done */
	double predicted_lost;	    /* of `predicted`: what transfers cost the computation */
	double lost;		    /* of compute, as the plan's costs say of those done */
	int64_t late;		    /* transfers given up: see neap_sweep_options.patience */
	/* Calls of the model; record's with replay's. */
	int64_t advance_calls, record_calls, backward_calls;
	/* Steps of each kind at most that were timed before, where the options give no costs. */
	int64_t measured_steps;
	int64_t replans; /* parts of the plan that were replaced: neap_sweep_options.no_replan */
	/*
	 * What `seconds` were expected to be after a tenth of the first pass, from what steps and
	 * tiers took by then; 0: not told, as where the length is not known.
	 */
	double foreseen;
	/* 1: a rank had no journal of this run, or no commit that others had: all started over. */
	int started_over;
	uint32_t reserved2;
};

/*
 * Runs one forward and backward pass. x0 is borrowed (NULL: all zero bytes) and must not change
 * while the sweep runs: it is what lost records are recomputed from. dx0 (may be NULL) takes the
 * adjoint at step 0, adjoint_bytes long. The arena stays mapped until neap_sweep_free or
 * neap_sweep_release. After an error (a callback's answer, NEAP_EINTERRUPTED) nothing is in flight
 * and the sweep can run again. A tier that cannot be formatted, such as a full disk, is one that
 * refuses every record. Where tiers refuse or lose everything, the plan may be given up: the rest
 * is then reversed in fast memory, the arena and what `memory` has beyond it. What `patience` gave
 * up and the system still holds may touch the tier's staging at any time: that part of the arena
 * stays mapped when the sweep is freed or released. NEAP_EUSAGE if the sweep runs already, in any
 * thread, or one of its tiers is in use; that run goes on. NEAP_EDIVERGED, with the step: the loss
 * (*loss has it) or an adjoint (adjoint_real) is not finite, and dx0 is not written. Collective.
 */
NEAP_API int neap_sweep_run(struct neap_sweep *sweep, const void *x0, void *dx0, double *loss,
	struct neap_sweep_stats *stats);

/*
 * stats.foreseen of the run that lasts, 0 until it is known; in callbacks, and in any thread.
 */
NEAP_API double neap_sweep_foreseen(const struct neap_sweep *sweep);

/* With `on`, runs measure resident_growth (resets the kernel's high-water mark). */
NEAP_API void neap_sweep_watch(struct neap_sweep *sweep, int on);

/* Maps the arena and touches every page, for the next run. NEAP_EUSAGE while the sweep runs. */
NEAP_API int neap_sweep_touch(struct neap_sweep *sweep);

/*
 * 1 where the directory holds a journal to resume from, 0 where not; NEAP_EUSAGE as at create.
 * suffix: as neap_sweep_options.journal_suffix; NULL: none.
 */
NEAP_API int neap_journal_there(const char *directory, const char *suffix, int in_memory);

/* Unmaps the arena; the next run maps it again. Does nothing while the sweep runs. */
NEAP_API void neap_sweep_release(struct neap_sweep *sweep);
/* Bytes that the arena maps now; in callbacks, and in any thread. */
NEAP_API uint64_t neap_sweep_mapped(const struct neap_sweep *sweep);
/* Frees a sweep and the journal of a run that ended; not while it runs. NULL is allowed. */
NEAP_API void neap_sweep_free(struct neap_sweep *sweep);

/*
 * Stage chains: the same for chains whose steps differ, as the layers of a net do.
 * Stage i makes x_{i+1} of x_i, each state, tape and temporary with a size of its own
 * (struct neap_stages, chain.h, which also says what lives while a stage runs).
 *
 *     struct neap_stage_ops ops = {.size = sizeof ops, .advance = advance,
 *             .record = record, .turn = turn, .backward = backward};
 *     struct neap_sweep_options o = {.size = sizeof o, .steps = L, .memory = 16 << 20};
 *     struct neap_stage_sweep *sweep;
 *     neap_stage_sweep_create(&sweep, &ops, model, &stages, &o);
 *     neap_stage_sweep_run(sweep, x0, dx0, &loss, NULL);     as often as wanted
 *     neap_stage_sweep_free(sweep);
 *
 * Every buffer has its place in the arena before the sweep starts. Pointers are
 * aligned to 64 bytes and hold for one call: a buffer may lie elsewhere at the next,
 * its bytes the same. tmp is NULL where the stage's temporary is of 0 bytes; what is
 * written is undefined before. Callbacks return 0 or a negative code, which ends the
 * sweep. `first` is 1 the first time a stage is passed in a sweep.
 */
struct neap_stage_ops {
	uint32_t size; /* sizeof(struct neap_stage_ops) */
	uint32_t reserved;

	/* y = x_{i+1} of x = x_i. */
	int (*advance)(void *user, int64_t i, const void *x, void *y, void *tmp, int first);

	/*
	 * The same, to the bit, and the tape. With NEAP_STAGES_TAPE_HOLDS_OUTPUT the
	 * tape begins with x_{i+1}: y == tape.
	 */
	int (*record)(
		void *user, int64_t i, const void *x, void *y, void *tape, void *tmp, int first);

	/* Of x = x_L the loss, and dx, the gradient with respect to x. */
	int (*turn)(void *user, const void *x, void *dx, void *tmp, double *loss);

	/*
	 * Of dy, the gradient with respect to x_{i+1}, that with respect to x_i: dx is
	 * written, not added to; the model's own gradients are added to. dy may be used
	 * up. x is NULL but with NEAP_STAGES_BACKWARD_NEEDS_INPUT.
	 */
	int (*backward)(void *user, int64_t i, const void *x, const void *tape, void *dy, void *dx,
		void *tmp);

	size_t adjoint_bytes; /* of the gradient of any state; 0: those of the state */

	/* Optional: for a journal [no journal]. As in struct neap_step_ops. */
	int (*grad_save)(void *user, int (*write)(void *, const void *, size_t), void *to);
	int (*grad_load)(void *user, int (*read)(void *, void *, size_t), void *from);
	size_t adjoint_real; /* as in struct neap_step_ops */
};

struct neap_stage_sweep;

/*
 * Plans, and places every buffer, and every record on its tier. Copies all but user and tiers,
 * which are borrowed. Of the options, seconds come from the stages; a saved plan is one of the
 * problem that neap_stage_sweep_problem gives; a journal is as above. Tables beside the arena:
 * 72 bytes a stage, some 300 for each call of a stage in the plan, 200 for each transfer.
 * NEAP_EINFEASIBLE: the line names a budget that would do, and any larger one does.
 * Collective.
 */
NEAP_API int neap_stage_sweep_create(struct neap_stage_sweep **sweep,
	const struct neap_stage_ops *ops, void *user, const struct neap_stages *stages,
	const struct neap_sweep_options *options);

/* The problem, its sizes rounded up to 64 bytes, and plan in force; the sweep's. */
NEAP_API const struct neap_plan *neap_stage_sweep_plan(const struct neap_stage_sweep *sweep);
/* The problem that the plan in force solves; owned by the sweep. */
NEAP_API const struct neap_problem *neap_stage_sweep_problem(const struct neap_stage_sweep *sweep);

/*
 * Runs one forward and backward pass, as neap_sweep_run; dx0 takes the gradient with respect to
 * x_0. A record that a tier refuses, loses or holds back beyond `patience` is recomputed from the
 * nearest earlier state, in the free part of the arena. If that is too small, the plan is given
 * up and the remaining stages follow a plan without tiers, in `memory`. NEAP_EINFEASIBLE:
 * `memory` is too small for that. NEAP_EUSAGE, also while the sweep runs, and NEAP_EDIVERGED as
 * there. Collective.
 */
NEAP_API int neap_stage_sweep_run(struct neap_stage_sweep *sweep, const void *x0, void *dx0,
	double *loss, struct neap_sweep_stats *stats);
/* Frees a sweep; NULL is allowed. Does nothing while the sweep runs. */
NEAP_API void neap_stage_sweep_free(struct neap_stage_sweep *sweep);

/*
 * Joins: branches that meet in one loss, as the encoders of two inputs do. Each is a chain of
 * stages of its own; the loss is made of all their ends.
 *
 *     struct neap_branch branches[] = {{LA, &a}, {LB, &b}};
 *     neap_join_sweep_create(&sweep, &ops, model, branches, 2, &o);
 *     neap_join_sweep_run(sweep, (const void *[]){xa, xb}, (void *[]){dxa, dxb}, &loss, NULL);
 *     neap_join_sweep_free(sweep);
 */
#define NEAP_BRANCHES_MAX 8

/* One chain of a join. */
struct neap_branch {
	int64_t steps;			  /* its stages; may be 0 */
	const struct neap_stages *stages; /* the flags of all branches are the same */
};

/* As struct neap_stage_ops; branch and stage are numbers as they were given to create. */
struct neap_join_ops {
	uint32_t size; /* sizeof(struct neap_join_ops) */
	uint32_t reserved;
	int (*advance)(
		void *user, int branch, int64_t i, const void *x, void *y, void *tmp, int first);
	int (*record)(void *user, int branch, int64_t i, const void *x, void *y, void *tape,
		void *tmp, int first);
	/* Of the ends x[branch] the loss, and the gradients with respect to them, dx[branch]. */
	int (*turn)(void *user, const void *const *x, void *const *dx, void *tmp, double *loss);
	int (*backward)(void *user, int branch, int64_t i, const void *x, const void *tape,
		void *dy, void *dx, void *tmp);
	size_t adjoint_bytes; /* of the gradient of any state; 0: those of the state */
	int (*grad_save)(void *user, int (*write)(void *, const void *, size_t), void *to);
	int (*grad_load)(void *user, int (*read)(void *, void *, size_t), void *from);
	size_t adjoint_real; /* as in struct neap_step_ops */
};

struct neap_join_sweep;

/*
 * Plans and places, as neap_stage_sweep_create; options.steps is not read. The seconds and the
 * temporary of the loss are those of the first branch. Two ways are known to go through branches.
 * One after the other, with any strategy of stages and with tiers: the last branch is reversed
 * first; the plan then is one of all stages in a row, and a link of no time stands between two
 * branches. Or two branches in turns, by the strategy `join`, in fast memory: it counts slots for
 * states, options.params.checkpoints of them, 0: as many as fit. "auto" (NULL) takes the way and
 * the order that its plan says is fastest. options.saved is not for "join".
 * Collective.
 */
NEAP_API int neap_join_sweep_create(struct neap_join_sweep **sweep, const struct neap_join_ops *ops,
	void *user, const struct neap_branch *branches, int count,
	const struct neap_sweep_options *options);

/* The problem and plan in force; the sweep's. Of "join", the plan counts in slots. */
NEAP_API const struct neap_plan *neap_join_sweep_plan(const struct neap_join_sweep *sweep);
/* The problem that the plan in force solves; owned by the sweep. */
NEAP_API const struct neap_problem *neap_join_sweep_problem(const struct neap_join_sweep *sweep);

/*
 * As neap_stage_sweep_run. x0[branch] is borrowed and must not change (NULL: all zero bytes);
 * dx0[branch] takes the gradient with respect to it, as soon as it is known (NULL: none does).
 * Collective.
 */
NEAP_API int neap_join_sweep_run(struct neap_join_sweep *sweep, const void *const *x0,
	void *const *dx0, double *loss, struct neap_sweep_stats *stats);
/* Frees a sweep; NULL is allowed. Does nothing while the sweep runs. */
NEAP_API void neap_join_sweep_free(struct neap_join_sweep *sweep);

#ifdef __cplusplus
}
#endif
#endif
