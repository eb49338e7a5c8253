/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gradients of weights: dW += S' d(in), summed downwards in t and upwards in samples,
 * however a range was cut: at once, or kept for many steps (kept.h).
 */
#include "nn/engine.h"
#include "nn/kept.h"

#include <string.h>

static real *kept_row(
	const struct neap_net *net, const struct neap__kept *kept, int layer, int step, int slot)
{
	size_t row = (size_t)step * kept->samples + slot;
	return (real *)(void *)((char *)kept->rows[layer] + row * neap__kept_stride(net, layer));
}

static void keep(const struct neap_net *net, struct neap__kept *kept, int l, int step, int slot,
	const unsigned char *adjoint)
{
	const struct neap__layer *layer = &net->layers[l];
	memcpy(kept_row(net, kept, l, step, slot), adjoint + layer->adjoint_at,
		(size_t)layer->at.sums * sizeof(real));
}

void neap__weights_begin(
	struct neap_net *net, struct neap__group *group, const unsigned char *adjoint)
{
	struct neap__kept *kept = group->kept;

	kept->step = 0;
	for (int s = 0; s < group->size; s++)
		for (int l = 0; l < net->nlayers; l++)
			keep(net, kept, l, 0, s,
				adjoint + group->adjoint_at + s * net->sample_adjoint);
}

/* Where in d(in) the columns of a tensor begin. */
static int column_of(const struct neap__layer *layer, int tensor)
{
	return tensor == layer->recurrent ? layer->at.own_at : 0;
}

/* Adds what was noted of a tensor, sorted by rows. */
static void add_noted(struct neap_net *net, struct neap__group *group, int l, int tensor)
{
	struct neap__kept *kept = group->kept;
	const struct neap__noted *noted = kept->noted[tensor];
	const struct neap__tensor *t = &net->tensors[tensor];
	uint8_t *dirty = group->dirty + t->row_offset;
	uint32_t *start = kept->start, sum = 0;
	size_t count = kept->count[tensor], rows = (size_t)t->rows;
	struct neap__bundle bundle = {.row = kept->row,
		.start = start,
		.from = kept->from,
		.lenders = (kept->step + 1) * kept->samples,
		.strip = kept->strip,
		.x = (real *)kept->rows[l] + column_of(&net->layers[l], tensor),
		.stride = neap__kept_stride(net, l) / sizeof(real)};

	if (count == 0)
		return;
	memset(start, 0, (rows + 1) * sizeof *start);
	for (size_t i = 0; i < count; i++)
		start[noted[i].row]++;
	for (size_t i = 0; i < rows; i++) {
		uint32_t n = start[i];
		start[i] = sum;
		sum += n;
	}
	for (size_t i = 0; i < count; i++)
		kept->from[start[noted[i].row]++] = noted[i].from;
	/* start[i] is where row i ends: rows without spikes drop out. */
	sum = 0;
	for (size_t i = 0; i < rows; i++) {
		uint32_t end = start[i];
		if (end == sum)
			continue;
		kept->row[bundle.rows] = (uint16_t)i;
		start[bundle.rows++] = sum;
		dirty[i] = 1;
		sum = end;
	}
	start[bundle.rows] = sum;
	net->kernels->gather((real *)group->part + t->offset, (int)t->columns, &bundle);
	kept->count[tensor] = 0;
}

void neap__weights_end(struct neap_net *net, struct neap__group *group)
{
	struct neap__kept *kept = group->kept;

	for (int l = 0; l < net->nlayers; l++) {
		const struct neap__layer *layer = &net->layers[l];
		add_noted(net, group, l, layer->weight);
		if (layer->is_recurrent)
			add_noted(net, group, l, layer->recurrent);
		memmove(kept->rows[l], kept_row(net, kept, l, kept->step, 0),
			(size_t)kept->samples * neap__kept_stride(net, l));
	}
	kept->step = 0;
}

void neap__weights_step(struct neap_net *net, struct neap__group *group)
{
	struct neap__kept *kept = group->kept;
	int full = kept->step == kept->steps;

	for (int i = 0; i < net->ntensors && !full; i++)
		full = kept->room[i] &&
		       kept->room[i] - kept->count[i] < (size_t)net->tensors[i].rows * group->size;
	if (full)
		neap__weights_end(net, group);
	kept->step++;
}

void neap__weights_keep(const struct neap__at *at)
{
	keep(at->net, at->group->kept, at->layer->index, at->group->kept->step, at->slot,
		at->adjoint);
}

const real *neap__kept_din(const struct neap__at *at, int layer)
{
	const struct neap__kept *kept = at->group->kept;
	return kept_row(at->net, kept, layer, kept->step - 1, at->slot);
}

static void note(struct neap__kept *kept, int tensor, const struct neap__list *list, uint32_t from)
{
	struct neap__noted *to = kept->noted[tensor] + kept->count[tensor];

	for (int k = 0; k < list->count; k++)
		to[k] = (struct neap__noted){list->id[k], from};
	kept->count[tensor] += (size_t)list->count;
}

void neap__weights_add_now(struct neap_net *net, struct neap__group *group, int count, int tensor)
{
	struct neap__matrix m = neap__weights(net, tensor);
	const struct neap__tensor *shape = &net->tensors[tensor];
	const struct neap__share *shares = group->shares;
	uint8_t *dirty = group->dirty + shape->row_offset;

	for (int i = 0; i < count; i++)
		for (int j = 0; j < shares[i].count; j++)
			dirty[shares[i].id[j]] = 1;
	neap__rows(net->kernels, &m)->grad((real *)group->part + shape->offset, &m, shares, count);
}

void neap__weights_add(struct neap_net *net, struct neap__group *group, int alive,
	const struct neap__layer *layer, int tensor, int from, int next)
{
	struct neap__kept *kept = group->kept;
	struct neap__share *shares = group->shares;
	int count = 0, step = kept->step - next;
	int drops = tensor == layer->weight && from >= 0 && neap__drops(net, layer - 1);

	for (int i = 0; i < alive; i++) {
		const struct neap__at *at = &group->at[i];
		struct neap__list list;
		if (next && at->t + 1 >= at->sequence->length)
			continue; /* the spikes of the last step arrive nowhere */
		list = from < 0 ? neap__input_events(net, at->sample, at->t)
				: neap__view_of(at, from)->spikes;
		if (drops)
			list = neap__dropout_list(net, group, layer - 1, at->slot, &list);
		if (kept->room[tensor])
			note(kept, tensor, &list,
				(uint32_t)step * (uint32_t)kept->samples + (uint32_t)at->slot);
		else
			shares[count++] = (struct neap__share){.id = list.id,
				.v = list.value,
				.count = list.count,
				.in = kept_row(net, kept, layer->index, step, at->slot) +
				      column_of(layer, tensor)};
	}
	if (count)
		neap__weights_add_now(net, group, count, tensor);
}

void neap__bias_add(
	struct neap_net *net, struct neap__group *group, int alive, const struct neap__layer *layer)
{
	const struct neap__tensor *shape = &net->tensors[layer->bias];

	group->dirty[shape->row_offset] = 1;
	for (int i = 0; i < alive; i++)
		net->kernels->sum((real *)group->part + shape->offset,
			(real *)(void *)(group->at[i].adjoint + layer->adjoint_at),
			(int)shape->columns);
}
