/* SPDX-License-Identifier: Apache-2.0 */
/*
 * norm.h: batch normalisation of the products of a layer (Ioffe and Szegedy 2015), with running
 * statistics. Of channel c (of dense weights: unit c), with x = W a, a what arrives:
 *     in = g[c] (x - m[c]) / sqrt(v[c] + epsilon) + b[c] + V S_{-1}
 * m and v are constants of a batch, and no gradient flows through them. The batch is thus that of a
 * layer with the weights k W and the bias b - k m, k = g / sqrt(v + epsilon), which
 * neap__norm_begin makes: steps, tapes and products do not know of it, and every plan computes the
 * same bits. When the gradients of these are complete, neap__norm_end (nn/batch/norm_sums.h) turns
 * them into those of W, g and b.
 *
 * The first pass adds up k x and its square over all samples, steps and units of a channel, in the
 * places of the gradient sums that m and v do not need, so that the sums are independent of threads
 * and ranks, and part of a journal. An update of the weights moves m and v towards the statistics
 * of its batch (neap__norm_move).
 */
#ifndef NEAP_NN_CORE_NORM_H
#define NEAP_NN_CORE_NORM_H

#include "nn/core/precision.h"

#define neap__norm_begin NEAP_R(neap__norm_begin)
#define neap__norm_count NEAP_R(neap__norm_count)

/* Makes the weights and the bias that the batch begun uses. */
void neap__norm_begin(struct neap_net *net, const struct neap__layer *layer);
/* Adds k x, all products of a sample's step, to the sums of the batch. */
void neap__norm_count(const struct neap__at *at, const real *x);

#endif
