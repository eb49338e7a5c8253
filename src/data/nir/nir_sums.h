/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nir_sums.h: what enters a node of a NIR graph, as a sum of weighted outputs of sources. Sources
 * are the Input node of the outermost graph and nodes with a state; all that lies between (weights,
 * scales, delays, ends of inner graphs) is multiplied out:
 *     in = bias + sum over terms of weight * (output of the source, delay seconds ago)
 * Convolutions and pools are kept as they are: of a source, its outputs may be pooled first; a
 * convolution or weights come then; sums of a convolution may be pooled. Scales behind a
 * convolution, such as a batch normalisation, are multiplied out to one factor of each channel.
 */
#ifndef NEAP_DATA_NIR_SUMS_H
#define NEAP_DATA_NIR_SUMS_H

#include "data/nir/nir_filters.h"

struct neap__nir_term {
	int source;   /* a node */
	double delay; /* seconds */
	int64_t columns;
	double *weight; /* [n][columns]; NULL: one to one, n is columns; or a convolution */
	/* NULL: none. Pools before and behind the convolution. */
	const struct neap__nir_filter *pool, *conv, *behind;
	double *scale; /* [channels of conv]; NULL: 1 */
};

struct neap__nir_sum {
	int64_t n;
	double *bias; /* [n]; NULL: 0 */
	struct neap__nir_term *term;
	int terms;
};

struct neap__nir_sums {
	const struct neap__nir_graph *graph;
	const char *path;		 /* for messages; borrowed, as the graph */
	int64_t *size;			 /* [nodes] numbers that leave the node */
	struct neap__nir_sum *sum;	 /* [nodes] what enters it */
	unsigned char *state;		 /* [nodes] */
	struct neap__nir_image *image;	 /* [nodes] what leaves the node */
	struct neap__nir_filter *filter; /* [nodes] of nodes that are one */
	double left;			 /* numbers that may still be allocated */
};

/* 1: the node has a state, or is where the outermost graph begins. */
int neap__nir_is_source(const struct neap__nir_node *node);

/*
 * Finds the sizes of all nodes and what enters those with a state and the last one. 0; NEAP_EFORMAT
 * where sizes contradict each other or connections without a state make a circle; -ENOMEM. To be
 * freed in any case.
 */
int neap__nir_sums_make(
	struct neap__nir_sums *sums, const struct neap__nir_graph *graph, const char *path);
void neap__nir_sums_free(struct neap__nir_sums *sums);

#endif
