/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges of steps of one group, backward: layer by layer from the top over the samples,
 * in their order. Every sum into a weight's gradient goes downwards in t and upwards in
 * samples, however a range was cut.
 */
#include "nn/engine.h"

#include <string.h>

static struct neap__view *view_of(const struct neap__at *at, int layer)
{
	return &at->group->views[(size_t)layer * at->group->room + at->slot];
}

static real *adjoint_row(const struct neap__at *at, const struct neap__layer *layer)
{
	return (real *)(void *)(at->adjoint + layer->adjoint_at);
}

static real *late_row(const struct neap__at *at, const struct neap__layer *layer)
{
	return (real *)at->group->late[layer->index] + (size_t)at->slot * layer->n;
}

static void dot_rows(const struct neap_net *net, struct neap__share *shares, int count, int tensor)
{
	struct neap__matrix m = neap__weights(net, tensor);
	neap__rows(net->kernels, &m)->dot(&m, shares, count);
}

/* dW += S' d(in) in the block's sums. */
static void grad_rows(struct neap_net *net, struct neap__group *group, struct neap__share *shares,
	int count, int tensor)
{
	struct neap__matrix m = neap__weights(net, tensor);
	const struct neap__tensor *shape = &net->tensors[tensor];
	uint8_t *dirty = group->dirty + shape->row_offset;

	for (int i = 0; i < count; i++)
		for (int j = 0; j < shares[i].count; j++)
			dirty[shares[i].id[j]] = 1;
	neap__rows(net->kernels, &m)->grad((real *)group->part + shape->offset, &m, shares, count);
}

static struct neap__share grad_share(const struct neap__list *list, const real *in)
{
	return (struct neap__share){
		.id = list->id, .v = list->value, .count = list->count, .in = in};
}

/* Weight gradients of the connections of `layer` that carry the spikes of `from`. */
static void weight_gradient(struct neap_net *net, struct neap__group *group, int alive,
	const struct neap__layer *layer, int tensor, int from)
{
	struct neap__share *shares = group->shares;
	int count = 0;

	for (int i = 0; i < alive; i++) {
		const struct neap__at *at = &group->at[i];
		struct neap__list events = {0};
		int recurrent = from == layer->index, late = layer->delay && !recurrent;
		if ((recurrent || late) && at->t + 1 >= at->sequence->length)
			continue; /* the spikes of the last step arrive nowhere */
		if (from < 0)
			events = neap__input_events(net, at->sample, at->t);
		shares[count++] = grad_share(from < 0 ? &events : &view_of(at, from)->spikes,
			late ? late_row(at, layer) : adjoint_row(at, layer));
	}
	grad_rows(net, group, shares, count, tensor);
}

static void bias_gradient(
	struct neap_net *net, struct neap__group *group, int alive, const struct neap__layer *layer)
{
	const struct neap__tensor *shape = &net->tensors[layer->bias];

	group->dirty[shape->row_offset] = 1;
	for (int i = 0; i < alive; i++)
		net->kernels->sum((real *)group->part + shape->offset,
			adjoint_row(&group->at[i], layer), (int)shape->columns);
}

/* What reaches the spikes of active units beside products: the penalty and the extra row. */
static void start_ds(const struct neap__at *at, const struct neap__view *view, real *ds)
{
	const struct neap_net *net = at->net;
	const struct neap__layer *layer = at->layer;
	const real *penalty = net->has_penalty ? net->penalty[layer->index] : NULL;
	size_t extra_at = neap__code(layer)->extra_at(layer);
	const real *extra = extra_at ? (const real *)(const void *)(at->adjoint + extra_at) : NULL;

	for (int k = 0; k < view->active; k++)
		ds[k] = (penalty ? penalty[view->active_id[k]] : 0) +
			(extra ? extra[view->active_id[k]] : 0);
}

/* dS of the active units: from the layer above, and through recurrent weights. */
static void spike_gradient(struct neap_net *net, struct neap__group *group, int alive)
{
	const struct neap__layer *layer = group->at->layer, *above = layer + 1;
	struct neap__share *shares = group->shares;
	int count = 0;

	for (int i = 0; i < alive; i++) {
		const struct neap__at *at = &group->at[i];
		const struct neap__view *view = view_of(at, layer->index);
		shares[i] = (struct neap__share){.id = view->active_id,
			.count = view->active,
			.out = neap__scratch_row(net, group->sums, at->slot),
			.in = above->delay ? late_row(at, above) : adjoint_row(at, above)};
		start_ds(at, view, shares[i].out);
	}
	dot_rows(net, shares, alive, above->weight);
	if (!layer->is_recurrent)
		return;
	for (int i = 0; i < alive; i++) {
		const struct neap__at *at = &group->at[i];
		if (at->t + 1 >= at->sequence->length)
			continue;
		shares[count] = shares[i];
		shares[count++].in = adjoint_row(at, layer);
	}
	dot_rows(net, shares, count, layer->recurrent);
}

/* All samples from step t + 1 to t. */
static void reverse_step(
	struct neap_net *net, struct neap__group *group, int alive, const unsigned char *tape)
{
	for (int l = 0; l < net->nlayers; l++)
		for (int i = 0; i < alive; i++) {
			struct neap__at *at = &group->at[i];
			at->layer = &net->layers[l];
			tape += neap__code(at->layer)->view(at, tape, view_of(at, l));
		}
	for (int l = net->nlayers - 1; l >= 0; l--) {
		const struct neap__layer *layer = &net->layers[l];
		for (int i = 0; i < alive; i++) {
			struct neap__at *at = &group->at[i];
			at->layer = layer;
			if (layer->delay)
				memcpy(late_row(at, layer), adjoint_row(at, layer),
					(size_t)layer->n * sizeof(real));
		}
		if (!layer->cell->readout) {
			spike_gradient(net, group, alive);
			if (layer[1].delay)
				weight_gradient(net, group, alive, layer + 1, layer[1].weight, l);
			if (layer->is_recurrent)
				weight_gradient(net, group, alive, layer, layer->recurrent, l);
		}
		for (int i = 0; i < alive; i++) {
			struct neap__at *at = &group->at[i];
			neap__code(layer)->backward(
				at, view_of(at, l), neap__scratch_row(net, group->sums, at->slot));
		}
		bias_gradient(net, group, alive, layer);
		if (!layer->delay)
			weight_gradient(net, group, alive, layer, layer->weight, l - 1);
	}
}

void neap__fold_group(struct neap_net *net, struct neap__group *group)
{
	const struct neap__kernels *k = net->kernels;

	for (int i = 0; i < net->ntensors; i++) {
		const struct neap__tensor *tensor = &net->tensors[i];
		uint8_t *dirty = group->dirty + tensor->row_offset;
		real *part = (real *)group->part + tensor->offset;
		double *total = group->total + tensor->offset;
		for (int64_t row = 0; row < tensor->rows; row++) {
			if (!dirty[row])
				continue;
			int64_t at =
				tensor->row_start ? tensor->row_start[row] : row * tensor->columns;
			int64_t end = tensor->row_start ? tensor->row_start[row + 1]
							: at + tensor->columns;
			dirty[row] = 0;
			k->fold(total + at, part + at, end - at);
		}
	}
}

void neap__backward_group(struct neap_net *net, struct neap__group *group, unsigned char *adjoint,
	int64_t t1, int64_t t0, const unsigned char *tape)
{
	const uint32_t *offset = (const uint32_t *)(const void *)tape;

	for (int64_t t = t1 - 1; t >= t0; t--) {
		int alive = neap__group_alive(net, group, t);
		for (int i = 0; i < alive; i++)
			group->at[i].adjoint = adjoint + group->adjoint_at +
					       group->at[i].slot * net->sample_adjoint;
		if (alive)
			reverse_step(net, group, alive, tape + offset[t - t0]);
		if (t % NEAP__BLOCK == 0 && group->steps > t)
			neap__fold_group(net, group);
	}
}
