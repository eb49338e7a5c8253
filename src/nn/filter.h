/* SPDX-License-Identifier: Apache-2.0 */
/*
 * filter.h: connections with shared weights: 2-D convolution, and pooling before it, behind it or
 * before dense weights. What arrives is an image of `from.channels` channels. A window of `pool`
 * counts as one unit, and so does a window of `conv_pool` of the sums of the convolution:
 *     K[o](y, x) = sum over c, i, j of
 *         W[c, i, j][o] P[c](stride y + dilation i - pad, stride x + dilation j - pad)
 *     in[o](y, x) = b[o] + f sum over windows (i, j) of conv_pool of K[o](...)
 * with P the pooled outputs, c the channels of the group of o, and f 1 or, for means, 1 / (units of
 * a window); or the largest K of the window (core/sum_pool.h). This is the Conv2d of PyTorch and
 * NIR (a cross-correlation); a Conv1d has images of height 1. The bias is one of each channel.
 * Windows are those of PyTorch's pools: what is left over at the lower and right edges enters none,
 * padding is 0 and counts in means; windows may overlap.
 *
 * The table of a layer (struct neap__filter) lists, for each place of the image, the taps of a unit
 * there: the place of the window that it belongs to, or where windows overlap its own place. Taps
 * already lead to the windows of conv_pool, so that these cost no step of their own. The units of a
 * convolution are numbered (y, x, channel), so that a tap is a row of consecutive numbers; inputs,
 * and the units of other layers, are numbered (channel, y, x), as event files and arrays have them.
 * A spike reads conv[0] x conv[1] / stride rows of W, and so does the gradient of an output. W has
 * a row for each (c, i, j), c above, and for each channel of a group of o a column.
 *
 * Max pooling passes on the unit of a pool whose output is largest, of equals the first in the
 * order (y, x); it alone gets a gradient, and where no unit spiked, the first (as in PyTorch).
 * Where its windows overlap, the table is one of pools instead of units (core/pooling.h).
 */
#ifndef NEAP_NN_FILTER_H
#define NEAP_NN_FILTER_H

#include "nn/core/net_state.h"

/*
 * Fills in what follows from the keys of a layer and from what arrives (the inputs, or the layer
 * before it): from, plane and n. 0, or NEAP_EUSAGE with a line about the keys.
 */
int neap__filter_settle(const struct neap_net *net, struct neap__layer *layer);

/* What arrives at a layer with a filter, after pooling. */
struct neap__plane neap__pooled_plane(const struct neap__layer *layer);

/* Makes the table of a layer, where it has one. 0, NEAP_EUSAGE or -ENOMEM. */
int neap__filter_make(struct neap_net *net, struct neap__layer *layer);

/* Rows and columns of a layer's weights, numbers of its bias, and inputs of a unit for its scale.
 */
int neap__filter_rows(const struct neap__layer *layer);
int neap__filter_columns(const struct neap__layer *layer);
int neap__filter_biases(const struct neap__layer *layer);
int neap__filter_fan(const struct neap__layer *layer);

/* The unit of an image at a place; of a convolution, or of the inputs and other layers. */
static inline int neap__plane_unit(
	const struct neap__plane *plane, int is_conv, int channel, int y, int x)
{
	return is_conv ? (y * plane->width + x) * plane->channels + channel
		       : (channel * plane->height + y) * plane->width + x;
}

/* 1: what arrives at a layer are the units of a convolution, in their order. */
static inline int neap__from_conv(const struct neap__layer *layer)
{
	const struct neap__layer *below = neap__source_of(layer, 0);
	return layer->nsources == 1 && below && below->conv[0] > 0;
}

#endif
