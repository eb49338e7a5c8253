/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input_doubts.h: warnings about inputs as they reach the network: samples without spikes, with few
 * steps, or changed beyond recognition by augmentation, and features on another scale than those of
 * the training data.
 */
#ifndef NEAP_TRAIN_REPORTS_INPUT_DOUBTS_H
#define NEAP_TRAIN_REPORTS_INPUT_DOUBTS_H

#include "data/dataset.h"
#include "train/trainer.h"

/*
 * Reads inputs of some training samples, and sets trainer->no_inputs and trainer->lost_inputs, for
 * which later warnings then blame no layer and no learning rate. 0 or a negative code.
 */
int neap__input_doubts_look(struct neap__trainer *trainer);
void neap__input_doubts_say(const struct neap__trainer *trainer);

/*
 * Compares a set that is normalised as other data, `whose`, with these: 1 if a feature is far
 * larger or smaller in some of its samples, with a warning in `line`; 0 if not; or a negative code.
 */
#define NEAP__OF_MODEL "the training data of the model"
int neap__scale_doubt(char line[NEAP__TAKEN_TEXT], struct neap_dataset *set, const char *whose);

#endif
