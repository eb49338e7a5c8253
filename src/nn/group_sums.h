/* SPDX-License-Identifier: Apache-2.0 */
/* group_sums.h: adds up what the groups of a batch have found, in the order of sum_tree.h. */
#ifndef NEAP_NN_GROUP_SUMS_H
#define NEAP_NN_GROUP_SUMS_H

#include "nn/core/net_state.h"

/* Adds the gradients of all groups to the parameters' `grad`; the groups' own are changed. */
void neap__gradient_sums(struct neap_net *net);
/* Returns the outputs of a hidden unit, counted over all hidden layers, summed over the batch. */
double neap__unit_sum(const struct neap_net *net, int unit);

#endif
