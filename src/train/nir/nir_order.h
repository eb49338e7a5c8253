/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nir_order.h: the order in which a step computes the nodes with a state. An edge from a to b
 * closes a cycle if all paths from the Input to a pass b (b dominates a: Lowry and Medlock 1969);
 * what it carries arrives one step later. If a cycle remains without these edges, a graph does not
 * say which of its nodes comes first, and is refused.
 */
#ifndef NEAP_TRAIN_NIR_NIR_ORDER_H
#define NEAP_TRAIN_NIR_NIR_ORDER_H

#include "data/nir/nir_sums.h"

struct neap__nir_order {
	int input, output;
	int *node; /* [nodes] those with a state, in order */
	int nodes;
	int *place; /* [nodes of the graph] in `node`; -1: it has no state */
};

/* 0, NEAP_EFORMAT or -ENOMEM. To be freed in any case. */
int neap__nir_order_make(struct neap__nir_order *order, const struct neap__nir_sums *sums);
void neap__nir_order_free(struct neap__nir_order *order);
/* 1: what leaves node `from` arrives at `to`, of the order or its Output, one step later. */
int neap__nir_is_back(const struct neap__nir_order *order, int from, int to);

#endif
