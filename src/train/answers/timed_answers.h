/* SPDX-License-Identifier: Apache-2.0 */
/* timed_answers.h: decisions about a sample of a data set on the way through its steps. */
#ifndef NEAP_TRAIN_ANSWERS_TIMED_ANSWERS_H
#define NEAP_TRAIN_ANSWERS_TIMED_ANSWERS_H

#include "train/evaluate.h"

/*
 * Advances the one sample of the batch begun through all its steps, and calls `answered` at every
 * decision (decisions.h), the last one at its end. `state` is that of step 0. 0,
 * NEAP_EINTERRUPTED, or what the net or `answered` returned.
 */
int neap__timed_answers(
	const struct neap__evaluation *e, const struct neap_batch *batch, void *state);

#endif
