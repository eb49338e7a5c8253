/* SPDX-License-Identifier: Apache-2.0 */
/* answer_outputs.h: the archives that an evaluation writes: its answers, spikes, membranes. */
#ifndef NEAP_TRAIN_ANSWERS_ANSWER_OUTPUTS_H
#define NEAP_TRAIN_ANSWERS_ANSWER_OUTPUTS_H

#include "train/answers/answer_arrays.h"
#include "train/answers/membrane_arrays.h"
#include "train/answers/spike_arrays.h"
#include "train/evaluate.h"

struct neap__answer_outputs {
	const struct neap_eval_options *options;
	struct neap__answer_arrays answers; /* `out` NULL: none, here and below */
	struct neap__spike_arrays spikes;
	struct neap__membrane_arrays membranes;
};

/* 0, or NEAP_EUSAGE where options ask for archives that do not go together. */
int neap__answer_outputs_check(const struct neap_eval_options *options);
/* 1: the options ask what the net does in every step. */
int neap__answer_outputs_step(const struct neap_eval_options *options);
/*
 * Begins the archives of the options and has the evaluation tell them of answers and steps. After a
 * failure there is nothing to end.
 */
int neap__answer_outputs_open(struct neap__answer_outputs *outputs,
	struct neap__evaluation *evaluation, const struct neap_eval_options *options,
	const struct neap__answer_shape *shape);
/* Gives the archives their names, or where `rc` is negative leaves none. `rc`, or a failure. */
int neap__answer_outputs_end(struct neap__answer_outputs *outputs, int rc);

#endif
