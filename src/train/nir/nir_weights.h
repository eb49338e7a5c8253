/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nir_weights.h: the weights of a graph's layers as tensors of a net. The units of a convolution
 * are numbered (y, x, channel) in the net and (channel, y, x) in the graph.
 */
#ifndef NEAP_TRAIN_NIR_NIR_WEIGHTS_H
#define NEAP_TRAIN_NIR_NIR_WEIGHTS_H

#include "train/nir/nir_chain.h"

struct neap_net;

/* The unit of the graph that is a unit of the net, of one layer. */
int64_t neap__nir_unit(const struct neap__nir_layer *layer, int64_t unit);
/* Fills in all tensors: 1, or 0 where the net has no room for a weight. */
int neap__nir_weights_set(const struct neap_net *net, const struct neap__nir_chain *chain);

#endif
