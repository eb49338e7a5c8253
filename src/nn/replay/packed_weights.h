/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packed_weights.h: room for copies of the weights, in the orders that a replay and dense products
 * read them in.
 */
#ifndef NEAP_NN_REPLAY_PACKED_WEIGHTS_H
#define NEAP_NN_REPLAY_PACKED_WEIGHTS_H

struct neap_net;

/* Makes net->packed, net->strips and net->turned. 0, or -ENOMEM. */
int neap__net_packed(struct neap_net *net);

#endif
