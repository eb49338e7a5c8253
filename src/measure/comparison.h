/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comparison.h: one real batch swept under several strategies: what the files of `neap compare`
 * share. run_comparison.c runs it; comparison_costs.c, comparison_plan.c, comparison_predict.c,
 * comparison_reference.c, comparison_key.c, comparison_sweep.c and transfer_overhead.c are its
 * parts.
 */
#ifndef NEAP_MEASURE_COMPARISON_H
#define NEAP_MEASURE_COMPARISON_H

#include <neap/train.h>
#include "measure/one_batch.h"
#include "measure/sweep_pace.h"
#include "measure/net_steps.h"
#include "measure/tape_sizes.h"
#include "measure/slow_tiers.h"
#include "measure/tape_probe.h"

/* Tapes are planned with so much over the mean of the batch, so that noise does not overflow. */
#define NEAP__TAPE_MARGIN 1.05

/* Costs of steps at one moment, and the pace: their seconds over those planned with. */
struct neap__pace_now {
	struct neap__costs costs;
	double pace;
};

/*
 * The sweep that measures the pace: by the fastest plan without transfers, or with them where
 * the budget has none without.
 */
struct neap__pace_probe {
	struct neap_sweep *sweep;	 /* NULL: not made */
	struct neap__tape_probe tapes;	 /* its user: fills the tape sizes in the first sweep */
	struct neap_batch batch;	 /* the batch compared, or its first steps */
	struct neap_sequence *sequences; /* [batch size] of those; or NULL */
	uint64_t memory;		 /* budget of the sweeps that measure */
	struct neap__costs costs;	 /* that its calibrating sweeps gave */
	double seconds;			 /* of a calibrating sweep; 0 before the first */
	double cost_ratio;		 /* of steps of the whole batch to those of `batch` */
	double reading; /* seconds that reading inputs adds to a step of the whole batch only */
};

struct neap__comparison {
	const struct neap_compare_options *options;
	struct neap_compare_result *result;
	struct neap__one_batch one;
	struct neap__tiers tiers;
	struct neap__tape_sizes tapes; /* as the calibrating sweep recorded them */
	struct neap__costs costs;      /* a step's seconds and bytes of tape, as measured here */
	struct neap_params params;     /* of the strategy that is planned */
	int resumes;		       /* from a journal: nothing is measured, its plan is run */
	struct neap_trace *trace;      /* of the strategy that is planned, or NULL */
	double reference;	       /* seconds a step of the reference run; NaN without one */
	struct neap__pace_probe probe;
	struct neap__pace_now planned; /* what plans are made with */
	struct neap__pace_now now;     /* by the last run of the probe */
	struct neap__sweep_pace timed;
	struct neap_batch reference_batch; /* the batch, or its first steps */
	struct neap_sequence *cut;	   /* [batch size] of those; or NULL */
	uint64_t reference_memory;	   /* as in the options, within a total */
	/* The sweep that runs, whose it is, and how far the comparison is. */
	const struct neap_sweep *running;
	const char *name;
	int done, total;
	int told_resumed;
	int told_silent; /* 1: silent layers were named, if there are any */
};

/*
 * Sets the budget: that of the options, or what a total leaves. After all strategies were planned,
 * the largest with an arena of so many bytes, `planned` says what the process takes; 1 where the
 * total leaves less, so that all are to be planned again.
 */
int neap__comparison_memory_begin(struct neap__comparison *c);
int neap__comparison_memory_planned(struct neap__comparison *c, uint64_t arena);
/* After all runs, which ended with `rc`: what they used of a device. Returns rc, or an error. */
int neap__comparison_memory_end(struct neap__comparison *c, int rc);

/* Fills the options of a sweep of `steps` steps under a strategy, within the budget. */
void neap__comparison_sweep(struct neap__comparison *c, struct neap_sweep_options *so,
	int64_t steps, const char *strategy);

/* Fills the step functions of the batch begun; `tape`: bytes a step to plan with (0: the net's). */
void neap__comparison_ops(const struct neap__comparison *c, struct neap_step_ops *ops, double tape);

/* Returns a number that stands for all that gradients depend on: neap_sweep_options.journal_key. */
uint64_t neap__comparison_key(const struct neap__comparison *c);

/*
 * Makes the sweep of the reference run: store-all without regard to the budget, over as many
 * first steps as memory holds. *sweep is NULL, and run->what says why, where it is not to run.
 */
int neap__comparison_reference(
	struct neap__comparison *c, struct neap_sweep **sweep, struct neap_compare_run *run);

/*
 * Measures the costs of steps, the sizes of tapes and the tiers. The first steps are timed, then
 * a sweep runs over the whole batch, within the largest arena of the strategies that are compared,
 * or 16 MiB. Of a batch of more than 32,768 steps it
 * runs over the first 8,192, and tapes are sampled from ranges spread over the batch. All is
 * measured again, three times at most, where the pace drifted meanwhile.
 */
int neap__comparison_costs(struct neap__comparison *c);

/*
 * Plans a strategy where tapes vary: the fewer steps a chunk has, the larger its worst mean
 * tape may be. The planned tape is raised from the mean of the batch until the chunks that
 * the plan chooses have memory for the fullest of them. *sweep is NULL where infeasible.
 */
int neap__comparison_plan(struct neap__comparison *c, struct neap_sweep **sweep,
	const char *strategy, uint64_t memory);

/* The case of a number, from 0, that is compared, the reference not counted; 0: there is none. */
int neap__comparison_case(
	const struct neap__comparison *c, int number, struct neap_compare_case *as);
/* Sets the budget of a case in bytes; 0 or a negative code. */
int neap__comparison_budget(
	const struct neap__comparison *c, uint64_t *memory, const struct neap_compare_case *as);
/*
 * Raises *most to the largest arena of the cases and of the reference, as they are planned with the
 * costs and the mean tape of the first steps; plans no further once it is `enough`. 0 or a
 * negative code.
 */
int neap__comparison_arena(const struct neap__comparison *c, uint64_t *most, uint64_t enough);

/*
 * Returns the seconds that a sweep's plan takes, copies included, at the costs of one moment;
 * copies and calls take `pace` times as long as planned. Plans are made without copies, since
 * strategies that count them need tables of tens of megabytes and gain a few percent.
 */
double neap__comparison_predict(const struct neap_sweep *sweep, const struct neap__pace_now *now);

/*
 * Sets *joules to the energy that the device takes for a batch under a strategy that ran, or NaN:
 * runs its sweep in a row for as long as the options say. 0 or a negative code.
 */
int neap__comparison_energy(struct neap__comparison *c, struct neap_sweep *sweep,
	const struct neap_compare_run *run, double *joules);

/* Multiplies the seconds of steps by `times`. */
void neap__costs_scale(struct neap__costs *costs, double times);

/*
 * Runs the probe's sweep and sets `now`. Begins and ends the batch; gradients are undefined.
 * Where the comparison resumes from a journal nothing runs, and `now` is as planned.
 */
int neap__pace_probe_run(struct neap__comparison *c);
void neap__pace_probe_free(struct neap__pace_probe *probe);

#endif
