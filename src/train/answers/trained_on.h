/* SPDX-License-Identifier: Apache-2.0 */
/* trained_on.h: recognizes the training data of a model, whose results show nothing about new data.
 */
#ifndef NEAP_TRAIN_ANSWERS_TRAINED_ON_H
#define NEAP_TRAIN_ANSWERS_TRAINED_ON_H

#include <stdint.h>

/*
 * 1 if the run that `model` (its folder, or a file in it) belongs to was trained on the data set
 * `data` of so many samples, under this or another name; 0 if not, or if nothing is known.
 */
int neap__trained_on(const char *model, const char *data, int64_t samples);

#endif
