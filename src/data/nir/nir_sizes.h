/* SPDX-License-Identifier: Apache-2.0 */
/* nir_sizes.h: sizes of the nodes of a NIR graph. */
#ifndef NEAP_DATA_NIR_SIZES_H
#define NEAP_DATA_NIR_SIZES_H

#include "data/nir/nir_sums.h"

/* NEAP_EFORMAT, with the line that node `node` of the graph `what`, such as "has no size". */
int neap__nir_refuse(const struct neap__nir_sums *s, int node, const char *what);

/*
 * Fills in the sizes, images and filters of all nodes: hands sizes on along edges until nothing
 * changes. Nodes that specify none are as large as what enters. 0 or NEAP_EFORMAT.
 */
int neap__nir_sizes(struct neap__nir_sums *s);

#endif
