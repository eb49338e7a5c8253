/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sum_pool.h: maxima of the sums of a convolution, before its bias (nn/filter.h). Each unit gets
 * the largest sum of its window, of equals the first in the order (y, x), which alone gets a
 * gradient. No tape holds which sum that was: the backward pass makes the products of a step once
 * more, with the same bits, from what the tapes say of the layer below.
 */
#ifndef NEAP_NN_CORE_SUM_POOL_H
#define NEAP_NN_CORE_SUM_POOL_H

#include "nn/core/precision.h"

#define neap__sum_pool_add NEAP_R(neap__sum_pool_add)
#define neap__sum_pool_spread NEAP_R(neap__sum_pool_spread)

/* sums[n] += the maxima of products [wide]. */
void neap__sum_pool_add(const struct neap__layer *layer, const real *products, real *sums);
/* spread[wide] = din[n] at the products that are the maxima, 0 elsewhere. */
void neap__sum_pool_spread(
	const struct neap__layer *layer, const real *products, const real *din, real *spread);

/* The gradients of the sums of a sample that a layer pools. */
static inline real *neap__spread_row(const struct neap_net *net, const struct neap__group *group,
	const struct neap__layer *layer, int slot)
{
	size_t row = (size_t)layer->wide_index * (size_t)group->room + (size_t)slot;
	return (real *)(void *)((char *)group->spread + row * net->wide_bytes);
}

/* The products of a sample of a layer that makes them apart. */
static inline real *neap__products_row(
	const struct neap_net *net, const struct neap__group *group, int slot)
{
	return (real *)(void *)((char *)group->products + (size_t)slot * net->wide_bytes);
}

#endif
