/* SPDX-License-Identifier: Apache-2.0 */
/* step_answers.h: what a net has after each step of a sample, told as soon as the step is made. */
#ifndef NEAP_TRAIN_ANSWERS_STEP_ANSWERS_H
#define NEAP_TRAIN_ANSWERS_STEP_ANSWERS_H

#include "train/evaluate.h"

/*
 * Advances the one sample of the batch begun through all its steps, and calls `stepped` after each,
 * and `answered` with the outputs of the readout where the evaluation is of steps. `state` is that
 * of step 0. 0, NEAP_EINTERRUPTED, or what the net or one of them returned.
 */
int neap__step_answers(
	const struct neap__evaluation *e, const struct neap_batch *batch, void *state);

/* Replaces the scores of an answer by their softmax if probabilities are wanted. */
void neap__answer_softmax(const struct neap__evaluation *evaluation, double *score);

#endif
