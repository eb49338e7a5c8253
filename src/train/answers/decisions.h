/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decisions.h: what a net answers to a sample so far, every so many seconds of it and at its end. A
 * decision stands where the last step ends that lies within k times `every`.
 */
#ifndef NEAP_TRAIN_ANSWERS_DECISIONS_H
#define NEAP_TRAIN_ANSWERS_DECISIONS_H

#include "train/answers/answer_window.h"
#include "train/evaluate.h"

/* The decisions of one sample. */
struct neap__decisions {
	const struct neap__evaluation *evaluation;
	int of_steps;  /* the target is of steps: a decision is the outputs of its step */
	int64_t index; /* of the sample */
	int label;
	int64_t number;			   /* of the next decision, from 1 */
	int64_t told;			   /* the step that the last one stood behind */
	double *score;			   /* [classes] */
	struct neap__answer_window window; /* intervals 0: the answer is that so far */
};

/* 0, or NEAP_EUSAGE where `every` is less than a step of dt, or no window (0: none) of that. */
int neap__decisions_check(double every, double window, double dt);
/* Begins a sample. 0 or -ENOMEM; free it in both cases. */
int neap__decisions_begin(struct neap__decisions *decisions,
	const struct neap__evaluation *evaluation, int64_t index, int label);
/* Steps of the sample that the next decision is about. */
int64_t neap__decisions_next(const struct neap__decisions *decisions);
/*
 * Tells the answer after so many steps, unless it is told already; `state` is that of the batch,
 * whose only sample it is; with a window its answer begins anew. 0, or what `answered` returned.
 */
int neap__decisions_tell(struct neap__decisions *decisions, void *state, int64_t steps);
void neap__decisions_free(struct neap__decisions *decisions);

#endif
