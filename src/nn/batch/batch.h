/* SPDX-License-Identifier: Apache-2.0 */
/* batch.h: the batch that a net has begun: its groups, and the window that its events come from. */
#ifndef NEAP_NN_BATCH_BATCH_H
#define NEAP_NN_BATCH_BATCH_H

#include <stdint.h>

struct neap_net;

/* Makes sure that the events of step t are there: of a long batch, takes the window of t. */
int neap__net_window(struct neap_net *net, int64_t t);

/*
 * From now on batches that ranks share end with the gradients of a slice on each rank, which
 * updates it; the rest of `grad` is zero.
 */
void neap__net_keep_slice(struct neap_net *net, int rank, int ranks);

/* Ends a batch whose sweep failed: adds up nothing, with nobody. */
void neap__net_drop(struct neap_net *net);

#endif
