/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate.h: forward passes over a data set, for validation, test and neap_eval. */
#ifndef NEAP_TRAIN_EVALUATE_H
#define NEAP_TRAIN_EVALUATE_H

#include <neap/train.h>

/*
 * Runs all batches of a loader's first epoch forward and adds up their results. The sums do not
 * depend on batch size or threads. 0 or a negative code.
 */
int neap__evaluate(struct neap_eval_result *result, struct neap_net *net,
	struct neap_loader *loader, const struct neap_net_options *options,
	const struct neap_loss *loss, int (*progress)(void *user, int64_t done, int64_t total),
	void *user, int64_t total);

/* Sets the 95% score interval of the share k / n of successes (Wilson 1927). */
void neap__wilson(double *low, double *high, int64_t k, int64_t n);

/* Returns a batch of a data set with fewer channels as one of the net's; fills `into`. */
const struct neap_batch *neap__widen(
	struct neap_batch *into, const struct neap_batch *batch, int inputs);

#endif
