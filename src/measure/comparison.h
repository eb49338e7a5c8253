/* SPDX-License-Identifier: Apache-2.0 */
/* comparison.h: one real batch under several strategies, from the inside. */
#ifndef NEAP_MEASURE_COMPARISON_H
#define NEAP_MEASURE_COMPARISON_H

#include <neap/train.h>
#include "measure/one_batch.h"
#include "measure/sweep_pace.h"
#include "measure/net_steps.h"
#include "measure/tape_sizes.h"
#include "measure/slow_tiers.h"
#include "measure/tape_probe.h"

/* Over the batch's mean tape, so that chance alone does not overflow. */
#define NEAP__TAPE_MARGIN 1.05

/* What steps cost at one moment, and by how much longer all took than as they were planned with. */
struct neap__pace_now {
	struct neap__costs costs;
	double pace;
};

/*
 * A sweep that nothing disturbs, by the fastest plan without transfers (with them, where
 * the budget has none), again and again.
 */
struct neap__pace_probe {
	struct neap_sweep *sweep; /* NULL: not made */
	struct neap__tape_probe watched;
	struct neap_batch batch;	 /* the whole one, or its first steps */
	struct neap_sequence *sequences; /* [batch size] of those; or NULL */
	struct neap__costs costs;	 /* what it said while it was calibrated with */
	double seconds;			 /* that it took then; 0 before */
	double dearer;			 /* the steps of the whole batch than those of `batch` */
};

struct neap__comparison {
	const struct neap_compare_options *options;
	struct neap_compare_result *result;
	struct neap__one_batch one;
	struct neap__tiers tiers;
	struct neap__tape_sizes tapes; /* as the calibrating sweep recorded them */
	struct neap__costs costs;      /* a step's seconds and bytes of tape, as measured here */
	struct neap_params params;     /* of the strategy that is planned */
	int goes_on;		       /* from a journal: nothing is measured, its plan is run */
	struct neap_trace *trace;      /* of the strategy that is planned, or NULL */
	double reference;	       /* seconds a step of the reference run; NaN without one */
	struct neap__pace_probe alone;
	struct neap__pace_now planned; /* what plans are made with */
	struct neap__pace_now now;     /* as steps cost when they were last looked at */
	struct neap__sweep_pace pieces;
	struct neap_batch reference_batch; /* the batch, or its first steps */
	struct neap_sequence *cut;	   /* [batch size] of those; or NULL */
};

/* What a sweep of `steps` steps under a strategy is to be, within the budget. */
void neap__comparison_sweep(const struct neap__comparison *c, struct neap_sweep_options *so,
	int64_t steps, const char *strategy);

/* The batch begun; `tape` bytes a step to plan with where they vary (0: the net's guess). */
void neap__comparison_ops(const struct neap__comparison *c, struct neap_step_ops *ops, double tape);

/* comparison_key.c: for neap_sweep_options.journal_key. */
uint64_t neap__comparison_key(const struct neap__comparison *c);

/*
 * comparison_reference.c: store-all outside the budget, over what it holds of the batch; *sweep
 * NULL, and run->what, where it is not to run.
 */
int neap__reference_prepare(
	struct neap__comparison *c, struct neap_sweep **sweep, struct neap_compare_run *run);

/*
 * What a step costs and how large tapes are: the first steps are timed, then a sweep
 * within the budget goes over the whole batch; over the first steps of a long one,
 * whose tapes are then sampled all along it. The tiers are measured, too. All of it
 * again where the machine's pace was another one a moment later.
 */
int neap__comparison_calibrate(struct neap__comparison *c);

/*
 * Plans a strategy where tapes vary: the fewer steps a chunk has, the larger its
 * worst mean tape may be. From the batch's mean upwards until the chunks that a
 * plan chooses have room for the fullest of them. *sweep is NULL where infeasible.
 */
int neap__comparison_plan(struct neap__comparison *c, struct neap_sweep **sweep,
	const char *strategy, uint64_t memory);

/*
 * Seconds that a sweep's plan takes with its copies at what steps cost at that moment; all
 * else that the processors do takes `pace` times as long as it was planned. Plans are made
 * without copies: strategies that mind them need tables of tens of megabytes, for a few
 * percent.
 */
double neap__comparison_predicted(
	const struct neap_sweep *sweep, const struct neap__pace_now *turn);

/* Steps take `times` as long. */
void neap__costs_scale(struct neap__costs *costs, double times);

/*
 * pace_probe.c: runs the sweep without transfers, which begins and ends the batch (gradients
 * are undefined), and sets `now`. Nothing is run, and costs are as planned, where a sweep
 * goes on from a journal.
 */
int neap__pace_probe_look(struct neap__comparison *c);
void neap__pace_probe_free(struct neap__pace_probe *alone);

#endif
