/* SPDX-License-Identifier: Apache-2.0 */
/* delay_gradients.c: gradients through delayed outputs (delay_gradients.h). */
#include "nn/gradients/delay_gradients.h"
#include "nn/core/dropout.h"
#include "nn/core/pooling.h"
#include "nn/core/sum_pool.h"
#include "nn/gradients/weight_gradients.h"

#include <string.h>

/* A layer, and a source of it whose outputs arrive late. */
struct late_edge {
	const struct neap__layer *layer;
	const struct neap__layer_source *source;
	const uint8_t *whole; /* [units of the source] */
	const real *part;     /* [units of the source] */
};

static struct late_edge edge_of(
	const struct neap__layer *layer, const struct neap__layer_source *source)
{
	return (struct late_edge){.layer = layer,
		.source = source,
		.whole = layer->delays.whole + source->delay_at,
		.part = (const real *)layer->delays.part + source->delay_at};
}

const real *neap__delays_din(const struct neap__at *at, const struct neap__layer *layer, int after)
{
	int64_t t = at->t + after;
	size_t row = (size_t)(t % (layer->delays.most + 1)) * (size_t)layer->widths.in;

	if (t >= at->sequence->length)
		return NULL;
	return (const real *)(const void *)(at->adjoint + layer->delays.adjoint_at) + row;
}

void neap__delays_store(const struct neap__at *at)
{
	const struct neap__layer *layer = at->layer;
	size_t row = (size_t)(at->t % (layer->delays.most + 1)) * (size_t)layer->widths.in;

	memcpy((real *)(void *)(at->adjoint + layer->delays.adjoint_at) + row,
		at->adjoint + layer->adjoint_at, (size_t)layer->widths.in * sizeof(real));
}

/* The same as the products with W see it: of the sums that are pooled, where their maxima are. */
static const real *late_din(const struct neap__at *at, const struct late_edge *edge, int after)
{
	const real *din = neap__delays_din(at, edge->layer, after);

	return din && edge->layer->wide
		       ? neap__spread_row(at->net, at->group, edge->layer, at->slot)
		       : din;
}

/* out[k] += row id[k] of W . in; nothing where in is NULL */
static void dot(const struct neap_net *net, const struct late_edge *edge, const uint16_t *id,
	int count, const real *in, real *out)
{
	struct neap__matrix m = neap__weights(net, edge->layer->weight, edge->source->row);
	struct neap__sample_rows rows = {.id = id, .count = count, .in = in, .out = out};

	if (in)
		neap__rows(net->kernels, &m)->dot(&m, &rows, 1);
}

/* How many units of a list, from k on, have the whole steps of the k-th. */
static int run_of(const struct late_edge *edge, const uint16_t *id, int k, int count)
{
	int end = k + 1;
	while (end < count && edge->whole[id[end]] == edge->whole[id[k]])
		end++;
	return end - k;
}

void neap__delays_outputs(struct neap_net *net, struct neap__group *group, int alive,
	const struct neap__layer *above, const struct neap__layer_source *source)
{
	const struct late_edge edge = edge_of(above, source);
	const real *part = edge.part;
	real *first = group->scratch[0], *second = group->scratch[1];

	for (int i = 0; i < alive; i++) {
		const struct neap__at *at = &group->at[i];
		const struct neap__view *view = neap__view_of(at, at->layer->index);
		const uint16_t *id = view->active_id;
		real *ds = neap__scratch_row(net, group->sums, at->slot);
		for (int k = 0, n; k < view->active; k += n) {
			int whole = edge.whole[id[k]];
			n = run_of(&edge, id, k, view->active);
			if (!above->delays.learns) {
				dot(net, &edge, id + k, n, late_din(at, &edge, whole), ds + k);
				continue;
			}
			memset(first, 0, (size_t)n * sizeof *first);
			memset(second, 0, (size_t)n * sizeof *second);
			dot(net, &edge, id + k, n, late_din(at, &edge, whole), first);
			dot(net, &edge, id + k, n, late_din(at, &edge, whole + 1), second);
			for (int j = 0; j < n; j++)
				ds[k + j] += (1 - part[id[k + j]]) * first[j] +
					     part[id[k + j]] * second[j];
		}
	}
}

/* The row of d(in) that the weights of unit i get, in `room` where it is a sum; NULL: none. */
static const real *mixed_din(
	const struct neap__at *at, const struct late_edge *edge, int i, real *room)
{
	const real *a = late_din(at, edge, edge->whole[i]), *b;
	real f = edge->part[i];

	if (!edge->layer->delays.learns || !a)
		return a; /* the step after is later still */
	b = late_din(at, edge, edge->whole[i] + 1);
	for (int c = 0; c < edge->layer->widths.in; c++)
		room[c] = (1 - f) * a[c] + (b ? f * b[c] : 0);
	return room;
}

/* Adds the gradient of the weights, and returns where the outputs from k on go next. */
static int add_weights(struct neap_net *net, struct neap__group *group, const struct neap__at *at,
	const struct late_edge *edge, const struct neap__list *list, int k)
{
	const struct neap__delays *delays = &edge->layer->delays;
	/* Lists of pools have no units, but there all delays are equal. */
	int n = delays->learns		  ? 1
		: edge->layer->pool_start ? list->count - k
					  : run_of(edge, list->id, k, list->count);
	const real *in = edge->layer->pool_start
				 ? late_din(at, edge, delays->most)
				 : mixed_din(at, edge, list->id[k], group->scratch[0]);

	if (!in || net->tensors[edge->layer->weight].is_frozen)
		return k + n;
	struct neap__sample_rows *rows = group->sample_rows;
	rows[0] = (struct neap__sample_rows){.id = list->id + k,
		.v = list->value ? (const real *)list->value + k : NULL,
		.count = n,
		.in = in};
	neap__weights_add_now(net, group, 1, edge->layer->weight, edge->source->row);
	return k + n;
}

/* Adds the gradient of the delay of the k-th unit; `factor`: see neap__delays_weights. */
static void add_delay(const struct neap__at *at, const struct late_edge *edge,
	const struct neap__list *list, int k, real factor)
{
	struct neap__group *group = at->group;
	int tensor = edge->layer->delays.tensor;
	real *sum = group->grads->part[tensor], first = 0, second = 0;
	int i = list->id[k], whole = edge->whole[i];

	dot(at->net, edge, &list->id[k], 1, late_din(at, edge, whole), &first);
	dot(at->net, edge, &list->id[k], 1, late_din(at, edge, whole + 1), &second);
	sum[edge->source->delay_at + i] +=
		factor * (list->value ? ((const real *)list->value)[k] : 1) * (second - first);
	group->grads->dirty[at->net->tensors[tensor].row_offset] = 1;
}

void neap__delays_weights(struct neap_net *net, struct neap__group *group, int alive,
	const struct neap__layer *layer, const struct neap__layer_source *source)
{
	const struct late_edge edge = edge_of(layer, source);
	const struct neap__layer *below = &net->layers[source->layer];
	int learns = layer->delays.learns && !net->tensors[layer->delays.tensor].is_frozen;
	int drops = neap__drops(net, below);
	/* The delays of one source have the factor of its dropout as a tensor (batch.c); those of
	 * several are one row, whose sources have factors of their own. */
	real factor = drops && layer->nsources > 1 ? (real)neap__dropout_scale(below) : 1;

	for (int s = 0; s < alive; s++) {
		const struct neap__at *at = &group->at[s];
		struct neap__list list = neap__view_of(at, source->layer)->spikes;
		if (drops)
			list = neap__dropout_list(net, group, below, at->slot, &list);
		if (layer->pooled)
			list = neap__pool_list(net, group, layer, at->slot, &list);
		for (int k = 0; k < list.count;)
			k = add_weights(net, group, at, &edge, &list, k);
		for (int k = 0; learns && k < list.count; k++)
			add_delay(at, &edge, &list, k, factor);
	}
}
