/* SPDX-License-Identifier: Apache-2.0 */
/* nir_weights.c: weights of a graph in the order of the net's units (nir_weights.h). */
#include "train/nir/nir_weights.h"
#include "nn/core/cell.h"

/* The unit of the graph, (channel, y, x), that is unit i of a convolution of the net; NULL: i. */
static int64_t unit_of(const struct neap__nir_image *image, int64_t i)
{
	return image ? i % image->channels * image->height * image->width + i / image->channels : i;
}

/* The image of what arrives, pooled; or NULL. What repeats a layer has its units in the order of
 * the net. */
static const struct neap__nir_image *image_below(
	const struct neap__nir_chain *chain, const struct neap__nir_feed *feed)
{
	if (feed->origin < 0 || !feed->term || !neap__nir_image_of(&chain->layer[feed->origin]))
		return NULL;
	return feed->term->pool ? &feed->term->pool->to
				: neap__nir_image_of(&chain->layer[feed->origin]);
}

int64_t neap__nir_unit(const struct neap__nir_layer *layer, int64_t unit)
{
	return unit_of(neap__nir_image_of(layer), unit);
}

static void store(const struct neap_param *p, int64_t at, double value)
{
	if (p->precision == NEAP_DOUBLE)
		((double *)p->data)[at] = value;
	else
		((float *)p->data)[at] = (float)value;
}

/* Rows of a tensor. */
struct rows {
	int64_t from, count;
};

/*
 * Takes the weights of a term (NULL: one to one), from units of an image below to units of one; 0:
 * the tensor lacks a connection that has a weight.
 */
static int set_weights(const struct neap_net *net, int tensor, struct rows rows,
	const struct neap__nir_term *term, const struct neap__nir_image *below,
	const struct neap__nir_layer *to)
{
	struct neap_param p;

	if (neap_net_param(net, tensor, &p) < 0 || rows.from + rows.count > p.rows)
		return 0;
	for (int64_t row = rows.from; row < rows.from + rows.count; row++) {
		int64_t k = p.row_start ? p.row_start[row] : 0;
		int64_t in = unit_of(below, row - rows.from);
		int64_t end = p.row_start ? p.row_start[row + 1] : 0;
		for (int64_t column = 0; column < p.columns; column++) {
			int64_t out = unit_of(neap__nir_image_of(to), column);
			double w = term && term->weight ? term->weight[out * term->columns + in]
							: (double)(in == out);
			if (!p.row_start)
				store(&p, row * p.columns + column, w * to->gain[out]);
			else if (k < end && p.column[k] == column)
				store(&p, k++, w * to->gain[out]);
			else if (w != 0)
				return 0;
		}
	}
	return 1;
}

/* The kernels of a convolution: a row for each channel below, y and x. */
static int set_kernels(const struct neap_net *net, int tensor, const struct neap__nir_layer *to)
{
	const struct neap__nir_term *term = to->feed[0].term;
	const struct neap__nir_filter *conv = term->conv;
	int64_t taps = (int64_t)conv->kernel[0] * conv->kernel[1];
	int64_t below = conv->from.channels / conv->groups, own = conv->to.channels / conv->groups;
	struct neap_param p;

	if (neap_net_param(net, tensor, &p) < 0)
		return 0;
	for (int64_t row = 0; row < p.rows; row++)
		for (int64_t column = 0; column < p.columns; column++) {
			int64_t channel = row / taps, out = channel / below * own + column;
			double scale = term->scale ? term->scale[out] : 1,
			       w = conv->weight[(out * below + channel % below) * taps +
						row % taps];
			store(&p, row * p.columns + column,
				w * scale * to->gain[out * (to->n / conv->to.channels)]);
		}
	return 1;
}

/* Weights of all sources of a layer, one after the other. */
static int set_feeds(const struct neap_net *net, const struct neap__nir_chain *chain, int index)
{
	const struct neap__nir_layer *a = &chain->layer[index];
	int tensor = net->layers[index].weight;
	struct rows rows = {0, 0};

	if (neap__nir_conv(a))
		return set_kernels(net, tensor, a);
	for (int i = 0; i < a->feeds; i++) {
		const struct neap__nir_feed *feed = &a->feed[i];
		const struct neap__nir_filter *pool = feed->term ? feed->term->pool : NULL;
		rows.from += rows.count;
		rows.count =
			pool ? pool->to.channels * pool->to.height * pool->to.width : feed->columns;
		if (!set_weights(net, tensor, rows, feed->term, image_below(chain, feed), a))
			return 0;
	}
	return 1;
}

int neap__nir_weights_set(const struct neap_net *net, const struct neap__nir_chain *chain)
{
	struct neap_param p;

	for (int l = 0; l < chain->layers; l++) {
		const struct neap__nir_layer *a = &chain->layer[l];
		const struct neap__layer *b = &net->layers[l];
		if (!set_feeds(net, chain, l) ||
			(a->own && !set_weights(net, b->recurrent, (struct rows){0, a->n}, a->own,
					   neap__nir_image_of(a), a)) ||
			neap_net_param(net, b->bias, &p) < 0)
			return 0;
		for (int64_t i = 0; i < p.count; i++) {
			int64_t unit =
				i * (a->n / p.count); /* the first of a channel, as the others */
			store(&p, i, a->bias ? a->bias[unit] * a->gain[unit] : 0);
		}
	}
	return 1;
}
