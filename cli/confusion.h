/* SPDX-License-Identifier: Apache-2.0 */
/* confusion.h: how often each class was taken for each other one, in 80 columns. */
#ifndef NEAP_CLI_CONFUSION_H
#define NEAP_CLI_CONFUSION_H

#include <neap/train.h>

/*
 * Prints a table on standard output: a line a label with its share of right answers, and a column
 * a class where that fits; else the classes that a label was taken for, the most frequent first, of
 * the `most` labels with the most samples.
 */
void cli_show_confusion(const struct neap_eval_result *result, int most);

/*
 * Prints how often the net is right, with its interval, and the loss; where the targets are
 * numbers, how far the answers are off.
 */
void cli_show_accuracy(const struct neap_eval_result *result);

/* Writes a loss with six digits and without an exponent; returns `room`. */
const char *cli_show_loss(char room[48], double loss);

/* Samples of a label. */
int64_t cli_confusion_samples(const struct neap_eval_result *result, int label);

#endif
