/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nir_filters.h: nodes of a NIR graph with shared weights, convolutions and pools, and the images
 * that enter and leave nodes. A Conv1d has images of height 1. Weights are those of PyTorch:
 * [out][in of a group][y][x]; units are numbered (channel, y, x).
 */
#ifndef NEAP_DATA_NIR_FILTERS_H
#define NEAP_DATA_NIR_FILTERS_H

#include "data/nir/nir_graph.h"

/* channels 0: the numbers that leave a node have no known place in an image. */
struct neap__nir_image {
	int64_t channels, height, width;
};

struct neap__nir_filter {
	int is_pool, is_average;
	int kernel[2], stride[2], pad[2], dilation[2]; /* vertical, horizontal */
	int groups;
	struct neap__nir_image from, to;
	const double *weight; /* of a convolution; borrowed */
};

/* 1: a node of a type with shared weights. */
int neap__nir_is_filter(enum neap__nir_type type);
/* The image of an Input's shape; none where it has other than 2 or 3 dimensions. */
struct neap__nir_image neap__nir_input_image(const struct neap__nir_array *shape);
/* The size of the image that a convolution node specifies, or none. */
struct neap__nir_image neap__nir_said_image(const struct neap__nir_node *node);
/*
 * Fills in a filter from its node and the image that enters. NULL, or what is wrong with the node,
 * for a line that names it.
 */
const char *neap__nir_filter_make(struct neap__nir_filter *filter,
	const struct neap__nir_node *node, struct neap__nir_image from);

static inline int64_t neap__nir_image_size(const struct neap__nir_image *image)
{
	return image->channels * image->height * image->width;
}

#endif
