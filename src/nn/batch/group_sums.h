/* SPDX-License-Identifier: Apache-2.0 */
/* group_sums.h: adds up what the groups of a batch have found, in the order of sum_tree.h. */
#ifndef NEAP_NN_BATCH_GROUP_SUMS_H
#define NEAP_NN_BATCH_GROUP_SUMS_H

#include "nn/core/net_state.h"

/* Adds the gradients of all groups to the parameters' `grad`; the groups' own are changed. */
void neap__gradient_sums(struct neap_net *net);

/* Gradients [at, at + count), counted over all tensors, summed over some of the net's groups. */
struct neap__sum_span {
	int first, leaves;
	size_t at, count;
};
/*
 * Makes the sum of a span, which begins at span->at and ends before `to`, and sets its length.
 * Returns its numbers, in a row of a group, or NULL: all are zero.
 */
const double *neap__span_sum(struct neap_net *net, struct neap__sum_span *span, size_t to);

/*
 * Returns the outputs of a hidden unit, counted over all hidden layers, summed over some groups of
 * those whose gradients are summed together.
 */
double neap__unit_sum(const struct neap_net *net, int unit, int first, int leaves);

#endif
