/* SPDX-License-Identifier: Apache-2.0 */
/*
 * live_answers.h: decisions about a recording or the standard input while it is heard, in memory
 * that does not grow with its length.
 */
#ifndef NEAP_TRAIN_ANSWERS_LIVE_ANSWERS_H
#define NEAP_TRAIN_ANSWERS_LIVE_ANSWERS_H

#include "train/evaluate.h"

/*
 * neap__evaluate of the sound evaluation->live: one sample without a label, for which `answered` is
 * called at every decision. The result has the rates of its layers, and no loss. 0,
 * NEAP_EINTERRUPTED, or what the sound, the net or `answered` returned.
 */
int neap__live_answers(struct neap_eval_result *result, const struct neap__evaluation *evaluation);

#endif
