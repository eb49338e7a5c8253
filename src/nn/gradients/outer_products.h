/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outer_products.h: weight gradients of a dense net, whose hidden layers' outputs are numbers of
 * all units: sums of outer products of outputs and d(in). Samples that are summed together are
 * several groups, so that all threads have work: each group first reverses its samples through some
 * steps and stores d(in) and outputs; then the sums over all samples and steps are made, tile by
 * tile (outer_tiles.h). Every sum goes downwards in t and upwards in samples, so that neither steps
 * nor groups nor tiles change a bit.
 */
#ifndef NEAP_NN_GRADIENTS_OUTER_PRODUCTS_H
#define NEAP_NN_GRADIENTS_OUTER_PRODUCTS_H

#include "nn/core/precision.h"
#include "nn/gradients/outer_tiles.h"

#define neap__outer_tile_add NEAP_R(neap__outer_tile_add)

/* A row of struct neap__precision_ops: adds a tile's gradients of the steps [t0, t1). */
void neap__outer_tile_add(struct neap_net *net, struct neap__grads *grads,
	const struct neap__outer_tile *tile, struct neap__outer_team *team, int64_t t1, int64_t t0);

#endif
