/* SPDX-License-Identifier: Apache-2.0 */
/*
 * products.h: weights times what the samples of a group have. Where a sample has outputs of all
 * units of a layer, or asks for gradients of all, its product is dense and made from weights in
 * strips; else from the rows that its list names. In a net whose products are computed in tiles it
 * is also dense if the list names many rows (EIGHTHS). The choice depends on the sample's own list
 * alone, so that the results of a sample do not depend on the other samples.
 */
#ifndef NEAP_NN_CORE_PRODUCTS_H
#define NEAP_NN_CORE_PRODUCTS_H

#include "nn/core/precision.h"

#define neap__products_add NEAP_R(neap__products_add)
#define neap__products_dot NEAP_R(neap__products_dot)
#define neap__strips_fill NEAP_R(neap__strips_fill)

/* Eighths of a matrix's rows that a list names at least where its product is in tiles. */
enum {
	/*
	 * Weights in three planes times spikes took as long on an Intel processor with AMX as the
	 * sum of the rows of 13% of 512 units (measured with a prototype of the kernel).
	 */
	NEAP__ADD_EIGHTHS = 1,
	/*
	 * Gradients are no spikes, so that there are twice as many products of planes, and lists of
	 * dot products take 0.38 of the time of sums of as many rows (measured: neap bench kernels
	 * --only 'avx512 tiles' on an EPYC): 2 * 13% / 0.38 = 68%.
	 */
	NEAP__DOT_EIGHTHS = 6
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
