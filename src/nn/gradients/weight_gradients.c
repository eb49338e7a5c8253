/* SPDX-License-Identifier: Apache-2.0 */
/* weight_gradients.c: storing d(in), and adding its products now or deferring them. */
#include "nn/gradients/weight_gradients.h"
#include "nn/core/dropout.h"
#include "nn/core/pooling.h"
#include "nn/core/sum_pool.h"
#include "nn/gradients/event_lists.h"

#include <string.h>

/* The row of the sample in a slot: its place among the samples that are summed together. */
static int row_of(const struct neap__group *group, int slot)
{
	return group->first - group->grads->first + slot;
}

static void keep(const struct neap_net *net, struct neap__deferred *deferred, int l, int step,
	int slot, const unsigned char *adjoint)
{
	const struct neap__layer *layer = &net->layers[l];
	if (layer->din_mask)
		memcpy(neap__deferred_row(net, deferred, l, step, slot),
			adjoint + layer->adjoint_at, (size_t)layer->widths.sums * sizeof(real));
}

void neap__weights_begin(
	struct neap_net *net, struct neap__group *group, const unsigned char *adjoint)
{
	struct neap__deferred *deferred = group->deferred;

	group->step = 0;
	for (int s = 0; s < group->size; s++)
		for (int l = 0; l < net->nlayers; l++)
			keep(net, deferred, l, 0, row_of(group, s),
				adjoint + group->adjoint_at + s * net->sample_adjoint);
}

/* Adds the outer products of inputs and d(in) that were put off. */
static void sum_inputs(struct neap_net *net, struct neap__group *group)
{
	struct neap__deferred *deferred = group->deferred;
	int tensor = net->layers[0].weight, rows = net->options.inputs;
	struct neap__outer o = {.columns = (int)net->tensors[tensor].columns,
		.count = deferred->terms,
		.right = (int)net->tensors[tensor].columns,
		.x = (const real *const *)deferred->x,
		.y = (const real *const *)deferred->y,
		.room = deferred->outer_room};

	if (!deferred->terms)
		return;
	for (; o.from < rows; o.from = o.to) {
		o.to = o.from + NEAP__INPUT_TILE < rows ? o.from + NEAP__INPUT_TILE : rows;
		net->kernels->outer((real *)group->grads->part[tensor], &o);
	}
	memset(group->grads->dirty + net->tensors[tensor].row_offset, 1, (size_t)rows);
	deferred->terms = 0;
}

/* Puts off the outer products of a step's inputs. */
static void defer_inputs(struct neap_net *net, struct neap__group *group, int alive)
{
	struct neap__deferred *deferred = group->deferred;

	for (int i = 0; i < alive; i++) {
		const struct neap__at *at = &group->at[i];
		int term = deferred->terms++;
		deferred->x[term] = neap__input_values(
			net, at->sample, at->t, neap__deferred_inputs(net, deferred, term));
		deferred->y[term] = neap__deferred_row(net, deferred, 0, group->step, at->slot);
	}
}

void neap__weights_end(struct neap_net *net, struct neap__group *group)
{
	struct neap__deferred *deferred = group->deferred;
	int source_rows = (group->step + 1) * deferred->samples;

	sum_inputs(net, group);

	for (int l = 0; l < net->nlayers; l++) {
		const struct neap__layer *layer = &net->layers[l];
		neap__event_list_sum(net, group->grads, deferred, l, layer->weight, source_rows);
		if (layer->is_recurrent)
			neap__event_list_sum(
				net, group->grads, deferred, l, layer->recurrent, source_rows);
		if (layer->din_mask)
			memmove(deferred->rows[l],
				neap__deferred_row(net, deferred, l, group->step, 0),
				(size_t)deferred->samples * neap__deferred_stride(net, l));
	}
	group->step = 0;
}

void neap__weights_step(struct neap_net *net, struct neap__group *group)
{
	struct neap__deferred *deferred = group->deferred;
	int full = group->step == deferred->steps;

	for (int i = 0; i < net->ntensors && !full; i++)
		full = deferred->room[i] && deferred->room[i] - deferred->count[i] <
						    (size_t)net->tensors[i].rows * group->size;
	if (full)
		neap__weights_end(net, group);
	group->step++;
}

void neap__weights_store(const struct neap__at *at)
{
	const struct neap__group *group = at->group;
	keep(at->net, group->deferred, at->layer->index, group->step, row_of(group, at->slot),
		at->adjoint);
}

void neap__outputs_store(const struct neap__at *at)
{
	const struct neap__group *group = at->group;
	int l = at->layer->index, row = row_of(group, at->slot);
	const real *outputs = neap__view_of(at, l)->spikes.value;

	memcpy(neap__deferred_outputs(at->net, group->deferred, l, group->step, row, 0), outputs,
		(size_t)at->layer->n * sizeof(real));
	if (neap__drops(at->net, at->layer))
		neap__dropout_all(
			neap__deferred_outputs(at->net, group->deferred, l, group->step, row, 1),
			at->net, group, at->layer, at->slot, outputs, 1);
}

void neap__inputs_store(const struct neap__at *at)
{
	const struct neap__group *group = at->group;
	int row = group->step * group->deferred->samples + row_of(group, at->slot);

	neap__input_values(
		at->net, at->sample, at->t, neap__deferred_inputs(at->net, group->deferred, row));
}

const real *neap__deferred_din(const struct neap__at *at, int layer)
{
	const struct neap__group *group = at->group;
	return neap__deferred_row(
		at->net, group->deferred, layer, group->step - 1, row_of(group, at->slot));
}

/* d(in) of the sample's layer in a stored step, or where none are stored, in the step just made. */
static const real *din_of(const struct neap__at *at, int step)
{
	const struct neap__group *group = at->group;
	int l = at->layer->index;

	if (!at->layer->din_mask)
		return (const real *)(const void *)(at->adjoint + at->layer->adjoint_at);
	return neap__deferred_row(at->net, group->deferred, l, step, at->slot);
}

void neap__weights_add_now(
	struct neap_net *net, struct neap__group *group, int count, int tensor, int row)
{
	struct neap__matrix m = neap__weights(net, tensor, row);
	const struct neap__param *shape = &net->tensors[tensor];
	const struct neap__sample_rows *samples = group->sample_rows;
	uint8_t *dirty = group->grads->dirty + shape->row_offset + row;
	real *part = group->grads->part[tensor];

	if (!shape->row_start) /* compressed rows count from the first number of the tensor */
		part += (size_t)row * (size_t)shape->columns;
	if (shape->filter)
		memset(dirty, 1, (size_t)shape->rows);
	for (int i = 0; i < count && !shape->filter; i++)
		for (int j = 0; j < samples[i].count; j++)
			dirty[samples[i].id[j]] = 1;
	neap__rows(net->kernels, &m)->grad(part, &m, samples, count);
}

void neap__weights_add(struct neap_net *net, struct neap__group *group, int alive,
	const struct neap__layer *layer, const struct neap__layer_source *source)
{
	struct neap__deferred *deferred = group->deferred;
	struct neap__sample_rows *samples = group->sample_rows;
	int tensor = source ? layer->weight : layer->recurrent;
	int from = source ? source->layer : layer->index, next = source ? source->late : 1;
	int count = 0, step = group->step - next, row = source ? source->row : 0;
	int is_input = tensor == net->layers[0].weight && from < 0;
	if (net->tensors[tensor].is_frozen)
		return;
	int drops = source && from >= 0 && !source->is_back && neap__drops(net, &net->layers[from]);

	if (is_input && neap__stores_inputs(net)) {
		defer_inputs(net, group, alive);
		return;
	}
	for (int i = 0; i < alive; i++) {
		const struct neap__at *at = &group->at[i];
		struct neap__list list;
		if (next && at->t + 1 >= at->sequence->length)
			continue; /* outputs of the last step enter no step */
		if (from >= 0)
			list = neap__view_of(at, from)->spikes;
		else if (net->options.values)
			list = neap__input_list(net, at->sample, at->t,
				(real *)group->inputs + (size_t)at->slot * net->options.inputs);
		else
			list = neap__input_events(net, at->sample, at->t);
		if (drops)
			list = neap__dropout_list(net, group, &net->layers[from], at->slot, &list);
		if (source && layer->pooled)
			list = neap__pool_list(net, group, layer, at->slot, &list);
		if (deferred->room[tensor])
			neap__event_list_append(deferred, tensor, row, &list,
				is_input ? group->grads->slot : NULL,
				(uint32_t)step * (uint32_t)deferred->samples + (uint32_t)at->slot);
		else
			samples[count++] = (struct neap__sample_rows){.id = list.id,
				.v = list.value,
				.count = list.count,
				.in = source && layer->wide
					      ? neap__spread_row(net, group, layer, at->slot)
					      : din_of(at, step) + neap__column_of(layer, tensor)};
	}
	if (count)
		neap__weights_add_now(net, group, count, tensor, row);
}

void neap__bias_add(
	struct neap_net *net, struct neap__group *group, int alive, const struct neap__layer *layer)
{
	const struct neap__param *shape = &net->tensors[layer->bias];

	if (shape->is_frozen)
		return;
	group->grads->dirty[shape->row_offset] = 1;
	for (int i = 0; i < alive; i++) {
		real *din = (real *)(void *)(group->at[i].adjoint + layer->adjoint_at);
		for (int at = 0; at < layer->widths.sums; at += (int)shape->columns)
			net->kernels->sum((real *)group->grads->part[layer->bias], din + at,
				(int)shape->columns);
	}
}
