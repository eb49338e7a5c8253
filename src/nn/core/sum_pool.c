/* SPDX-License-Identifier: Apache-2.0 */
/* sum_pool.c: maxima of sums and their gradients (sum_pool.h). */
#include "nn/core/sum_pool.h"

#include <string.h>

/* The sums of a window: those of the image. */
struct sum_window {
	int top, bottom, left, right;
};

static struct sum_window window_of(const struct neap__layer *layer, int y, int x)
{
	const struct neap__windows *w = &layer->conv_pool;
	int top = y * w->stride[0] - w->pad[0], left = x * w->stride[1] - w->pad[1];
	int bottom = top + w->size[0], right = left + w->size[1];

	return (struct sum_window){top > 0 ? top : 0,
		bottom < layer->sums[0] ? bottom : layer->sums[0], left > 0 ? left : 0,
		right < layer->sums[1] ? right : layer->sums[1]};
}

/* The place in the products of the largest sum of a channel in a window. */
static int best_of(
	const struct neap__layer *layer, const real *products, struct sum_window w, int channel)
{
	int best = (w.top * layer->sums[1] + w.left) * layer->channels + channel;

	for (int y = w.top; y < w.bottom; y++)
		for (int x = w.left; x < w.right; x++) {
			int at = (y * layer->sums[1] + x) * layer->channels + channel;
			if (products[at] > products[best])
				best = at;
		}
	return best;
}

void neap__sum_pool_add(const struct neap__layer *layer, const real *products, real *sums)
{
	for (int y = 0; y < layer->plane.height; y++)
		for (int x = 0; x < layer->plane.width; x++, sums += layer->channels) {
			struct sum_window w = window_of(layer, y, x);
			for (int c = 0; c < layer->channels; c++)
				sums[c] += products[best_of(layer, products, w, c)];
		}
}

void neap__sum_pool_spread(
	const struct neap__layer *layer, const real *products, const real *din, real *spread)
{
	memset(spread, 0, (size_t)layer->wide * sizeof *spread);
	for (int y = 0; y < layer->plane.height; y++)
		for (int x = 0; x < layer->plane.width; x++, din += layer->channels) {
			struct sum_window w = window_of(layer, y, x);
			for (int c = 0; c < layer->channels; c++)
				spread[best_of(layer, products, w, c)] += din[c];
		}
}
