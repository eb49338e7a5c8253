/* SPDX-License-Identifier: Apache-2.0 */
/* delay_gradients.c: gradients through delayed outputs (delay_gradients.h). */
#include "nn/gradients/delay_gradients.h"
#include "nn/core/dropout.h"
#include "nn/gradients/weight_gradients.h"

#include <string.h>

/* d(in) of the layer in `after` steps; NULL: the sample has ended by then. */
static const real *late_din(const struct neap__at *at, const struct neap__layer *layer, int after)
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

/* out[k] += row id[k] of W . in; nothing where in is NULL */
static void dot(const struct neap_net *net, const struct neap__layer *layer, const uint16_t *id,
	int count, const real *in, real *out)
{
	struct neap__matrix m = neap__weights(net, layer->weight, 0);
	struct neap__sample_rows rows = {.id = id, .count = count, .in = in, .out = out};

	if (in)
		neap__rows(net->kernels, &m)->dot(&m, &rows, 1);
}

/* How many units of a list, from k on, have the whole steps of the k-th. */
static int run_of(const struct neap__delays *delays, const uint16_t *id, int k, int count)
{
	int end = k + 1;
	while (end < count && delays->whole[id[end]] == delays->whole[id[k]])
		end++;
	return end - k;
}

void neap__delays_outputs(
	struct neap_net *net, struct neap__group *group, int alive, const struct neap__layer *above)
{
	const struct neap__delays *delays = &above->delays;
	const real *part = delays->part;
	real *first = group->scratch[0], *second = group->scratch[1];

	for (int i = 0; i < alive; i++) {
		const struct neap__at *at = &group->at[i];
		const struct neap__view *view = neap__view_of(at, at->layer->index);
		const uint16_t *id = view->active_id;
		real *ds = neap__scratch_row(net, group->sums, at->slot);
		for (int k = 0, n; k < view->active; k += n) {
			int whole = delays->whole[id[k]];
			n = run_of(delays, id, k, view->active);
			if (!delays->learns) {
				dot(net, above, id + k, n, late_din(at, above, whole), ds + k);
				continue;
			}
			memset(first, 0, (size_t)n * sizeof *first);
			memset(second, 0, (size_t)n * sizeof *second);
			dot(net, above, id + k, n, late_din(at, above, whole), first);
			dot(net, above, id + k, n, late_din(at, above, whole + 1), second);
			for (int j = 0; j < n; j++)
				ds[k + j] += (1 - part[id[k + j]]) * first[j] +
					     part[id[k + j]] * second[j];
		}
	}
}

/* The row of d(in) that the weights of unit i get, in `room` where it is a sum; NULL: none. */
static const real *mixed_din(
	const struct neap__at *at, const struct neap__layer *layer, int i, real *room)
{
	const struct neap__delays *delays = &layer->delays;
	const real *a = late_din(at, layer, delays->whole[i]), *b;
	real f = ((const real *)delays->part)[i];

	if (!delays->learns || !a)
		return a; /* the step after is later still */
	b = late_din(at, layer, delays->whole[i] + 1);
	for (int c = 0; c < layer->widths.in; c++)
		room[c] = (1 - f) * a[c] + (b ? f * b[c] : 0);
	return room;
}

/* Adds the gradient of the weights, and returns where the outputs from k on go next. */
static int add_weights(struct neap_net *net, struct neap__group *group, const struct neap__at *at,
	const struct neap__layer *layer, const struct neap__list *list, int k)
{
	int n = layer->delays.learns ? 1 : run_of(&layer->delays, list->id, k, list->count);
	const real *in = mixed_din(at, layer, list->id[k], group->scratch[0]);

	if (!in || net->tensors[layer->weight].is_frozen)
		return k + n;
	struct neap__sample_rows *rows = group->sample_rows;
	rows[0] = (struct neap__sample_rows){.id = list->id + k,
		.v = list->value ? (const real *)list->value + k : NULL,
		.count = n,
		.in = in};
	neap__weights_add_now(net, group, 1, layer->weight, 0);
	return k + n;
}

/* Adds the gradient of the delay of the k-th unit. */
static void add_delay(const struct neap__at *at, const struct neap__layer *layer,
	const struct neap__list *list, int k)
{
	struct neap__group *group = at->group;
	const struct neap__delays *delays = &layer->delays;
	real *sum = group->grads->part[delays->tensor], first = 0, second = 0;
	int i = list->id[k], whole = delays->whole[i];

	dot(at->net, layer, &list->id[k], 1, late_din(at, layer, whole), &first);
	dot(at->net, layer, &list->id[k], 1, late_din(at, layer, whole + 1), &second);
	sum[i] += (list->value ? ((const real *)list->value)[k] : 1) * (second - first);
	group->grads->dirty[at->net->tensors[delays->tensor].row_offset] = 1;
}

void neap__delays_weights(
	struct neap_net *net, struct neap__group *group, int alive, const struct neap__layer *layer)
{
	int tensor = layer->delays.tensor;
	int learns = layer->delays.learns && !net->tensors[tensor].is_frozen;
	int drops = neap__drops(net, layer - 1);

	for (int s = 0; s < alive; s++) {
		const struct neap__at *at = &group->at[s];
		struct neap__list list = neap__view_of(at, layer->index - 1)->spikes;
		if (drops)
			list = neap__dropout_list(net, group, layer - 1, at->slot, &list);
		for (int k = 0; k < list.count;)
			k = add_weights(net, group, at, layer, &list, k);
		for (int k = 0; learns && k < list.count; k++)
			add_delay(at, layer, &list, k);
	}
}
