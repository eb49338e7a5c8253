/* SPDX-License-Identifier: Apache-2.0 */
/* event_lists.c: appending events, and the sum of them sorted by rows (event_lists.h). */
#include "nn/gradients/event_lists.h"
#include "nn/core/dropout.h"

#include <string.h>

real *neap__deferred_row(const struct neap_net *net, const struct neap__deferred *deferred,
	int layer, int step, int row)
{
	size_t at = (size_t)(step & net->layers[layer].din_mask) * deferred->samples + row;
	return (real *)(void *)((char *)deferred->rows[layer] +
				at * neap__deferred_stride(net, layer));
}

real *neap__deferred_outputs(const struct neap_net *net, const struct neap__deferred *deferred,
	int layer, int step, int row, int up)
{
	size_t at = (size_t)step * deferred->samples + row,
	       stride = neap__deferred_outputs_stride(net, layer);
	size_t behind = up && neap__drops(net, &net->layers[layer]) ? stride / 2 : 0;
	return (real *)(void *)((char *)deferred->outputs[layer] + at * stride + behind);
}

real *neap__deferred_inputs(
	const struct neap_net *net, const struct neap__deferred *deferred, int row)
{
	real *inputs = deferred->inputs; /* NULL where the net takes spikes */
	return inputs ? inputs + (size_t)row * net->options.inputs : NULL;
}

void neap__event_list_append(struct neap__deferred *deferred, int tensor, int first,
	const struct neap__list *list, const uint16_t *slot, uint32_t from)
{
	struct neap__deferred_event *to = deferred->events[tensor] + deferred->count[tensor];

	for (int k = 0; k < list->count; k++)
		to[k] = (struct neap__deferred_event){
			slot ? slot[list->id[k]] : (uint32_t)(first + list->id[k]), from};
	deferred->count[tensor] += (size_t)list->count;
}

/* A counting sort by rows, so that each row of the gradient is read and written once. */
void neap__event_list_sum(struct neap_net *net, struct neap__grads *grads,
	struct neap__deferred *deferred, int l, int tensor, int source_rows)
{
	const struct neap__deferred_event *events = deferred->events[tensor];
	const struct neap__param *t = &net->tensors[tensor];
	uint8_t *dirty = grads->dirty + t->row_offset;
	uint32_t *start = deferred->start, sum = 0;
	size_t count = deferred->count[tensor], rows = (size_t)neap__sum_rows(net, grads, tensor);
	struct neap__scatter scatter = {.row = deferred->row,
		.start = start,
		.from = deferred->from,
		.source_rows = source_rows,
		.strip = deferred->strip,
		.x = (real *)deferred->rows[l] + neap__column_of(&net->layers[l], tensor),
		.stride = neap__deferred_stride(net, l) / sizeof(real)};

	if (count == 0)
		return;
	memset(start, 0, (rows + 1) * sizeof *start);
	for (size_t i = 0; i < count; i++)
		start[events[i].row]++;
	for (size_t i = 0; i < rows; i++) {
		uint32_t n = start[i];
		start[i] = sum;
		sum += n;
	}
	for (size_t i = 0; i < count; i++)
		deferred->from[start[events[i].row]++] = events[i].from;
	/* Now start[i] is where row i ends; rows without events are left out. */
	sum = 0;
	for (size_t i = 0; i < rows; i++) {
		uint32_t end = start[i];
		if (end == sum)
			continue;
		deferred->row[scatter.rows] = (uint16_t)i;
		start[scatter.rows++] = sum;
		dirty[i] = 1;
		sum = end;
	}
	start[scatter.rows] = sum;
	net->kernels->gather((real *)grads->part[tensor], (int)t->columns, &scatter);
	deferred->count[tensor] = 0;
}
