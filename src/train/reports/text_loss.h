/* SPDX-License-Identifier: Apache-2.0 */
/* text_loss.h: whether the loss of a model has a unit per character. */
#ifndef NEAP_TRAIN_REPORTS_TEXT_LOSS_H
#define NEAP_TRAIN_REPORTS_TEXT_LOSS_H

/* 1: the model at `path` was trained on a text with the loss cross-entropy, so that its loss is in
 * nats per character. 0 also if it cannot be read. */
int neap__text_loss(const char *path);

#endif
