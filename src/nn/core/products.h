/* SPDX-License-Identifier: Apache-2.0 */
/*
 * products.h: weights times what the samples of a group have. Where a sample has outputs of all
 * units of a layer, or asks for gradients of all, its product is dense and made from weights in
 * strips; else from the rows that its list names. In a net whose products are computed in tiles it
 * is also dense if the list names at least one row in ADD_PART or DOT_PART. The choice depends on
 * the sample's own list alone, so that the results of a sample do not depend on the other samples.
 */
#ifndef NEAP_NN_CORE_PRODUCTS_H
#define NEAP_NN_CORE_PRODUCTS_H

#include "nn/core/precision.h"

#define neap__products_add NEAP_R(neap__products_add)
#define neap__products_dot NEAP_R(neap__products_dot)
#define neap__strips_fill NEAP_R(neap__strips_fill)

enum {
	/*
	 * A product of weights in three planes with spikes took as long on an Intel processor with
	 * AMX as the sum of rows of 13% of 512 units (measured with a prototype of the kernel).
	 */
	NEAP__ADD_PART = 8,
	/* The same of gradients, which are no spikes, is twice as many products (derived). */
	NEAP__DOT_PART = 4
};

/*
 * As `add` and `dot` of struct neap__row_ops, of samples[count]. `v` of samples may change, and in
 * products in tiles their order.
 */
void neap__products_add(const struct neap_net *net, struct neap__sample_rows *samples, int count,
	int tensor, int row);
void neap__products_dot(const struct neap_net *net, struct neap__sample_rows *samples, int count,
	int tensor, int row);
/* Copies the weights into net->strips and net->turned, where these have room for them. */
void neap__strips_fill(struct neap_net *net);

#endif
