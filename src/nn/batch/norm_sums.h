/* SPDX-License-Identifier: Apache-2.0 */
/* norm_sums.h: gradients and statistics of batch normalisation, at the end of a batch
 * (core/norm.h).
 */
#ifndef NEAP_NN_BATCH_NORM_SUMS_H
#define NEAP_NN_BATCH_NORM_SUMS_H

struct neap_net;

/*
 * Once the gradients of a batch are complete: turns those of the weights in use into those of
 * weights, scales and biases, and finds the statistics of the batch. Its turn was made.
 */
void neap__norm_end(struct neap_net *net);
/* The same after a batch that went forward alone, in this process: the statistics. */
void neap__norm_find(struct neap_net *net);
/* Moves the statistics of all layers that learn towards those of the batch that ended. */
void neap__norm_move(struct neap_net *net);
/*
 * Sets the statistics of a layer to those of the batch that ended, and its scales to the root of
 * the mean variance: the layer begins with the deviation that its weights give to its products.
 */
void neap__norm_start(struct neap_net *net, int layer);
/* Writes what norms make of weights and biases into these; the net has no norm from then on. */
void neap__norm_fold(struct neap_net *net);

#endif
