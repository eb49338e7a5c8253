/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pooling.h: max pooling of what arrives at a layer (nn/filter.h). Of each pool the unit with the
 * largest output passes, of equals the first; units that a list leaves out have the output 0, which
 * none that it holds is below. The filter of the layer then adds up all units of a pool. Where
 * windows overlap, a unit may pass into some of its pools alone: what passes is then a list of
 * pools instead of units, in the order of the first of their units that is listed, with their
 * largest outputs as numbers, and the filter is one of pools.
 */
#ifndef NEAP_NN_CORE_POOLING_H
#define NEAP_NN_CORE_POOLING_H

#include "nn/core/precision.h"

#define neap__pool_list NEAP_R(neap__pool_list)
#define neap__pool_gradient NEAP_R(neap__pool_gradient)
#define neap__pool_products NEAP_R(neap__pool_products)

/* Returns the outputs that pass, or the pools where they overlap, in scratch of the slot. */
struct neap__list neap__pool_list(const struct neap_net *net, struct neap__group *group,
	const struct neap__layer *layer, int slot, const struct neap__list *outputs);
/*
 * Zeroes ds[view->active], which comes down from `layer`, of the units that do not pass. Of a pool
 * without outputs, the first unit does.
 */
void neap__pool_gradient(const struct neap_net *net, struct neap__group *group,
	const struct neap__layer *layer, const struct neap__view *view,
	const struct neap__list *outputs, real *ds);
/*
 * The same where windows overlap: ds[view->active] += the gradients of the pools that each unit
 * passes into, from d(in) of `layer`.
 */
void neap__pool_products(const struct neap_net *net, struct neap__group *group,
	const struct neap__layer *layer, int slot, const struct neap__view *view,
	const struct neap__list *outputs, const real *din, real *ds);

#endif
