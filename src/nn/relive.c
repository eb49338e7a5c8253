/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relive: the spikes of a group as a log, and its tapes made again from state and log.
 *
 * A group's log of a range: a table of offsets, then steps; in a step samples that have
 * not ended, in them layers whose spikes others than the readout see: a count and ids.
 *
 * All spikes known, a layer's membranes wait for nothing but their own past: strips of
 * units walk over NEAP__REPLAYED steps at a time (kern/walk.c), so that a strip's weights
 * are fetched once for many steps and samples. The walk stops before the reset; from
 * there on each step goes the way of record, to the same tape.
 */
#include "nn/engine.h"

#include <string.h>

/* Spikes known of row l (0: the inputs) and a sample: [0] before the first step, then of each. */
static struct neap__events *known(const struct neap__group *group, int row, int s)
{
	return group->spikes_known + ((size_t)row * group->room + s) * (NEAP__REPLAYED + 1);
}

static int steps_of(
	const struct neap_net *net, const struct neap__group *group, int s, int64_t t0, int64_t t1)
{
	int64_t end = neap__length_of(net, group, s);
	end = end < t1 ? end : t1;
	return end > t0 ? (int)(end - t0) : 0;
}

/* Everything that is known of [t0, t1): inputs, and the log's spikes. */
static void learn(struct neap_net *net, struct neap__group *group, int64_t t0, int64_t t1,
	const unsigned char *const *logs)
{
	for (int s = 0; s < group->size; s++)
		for (int l = 0; l < net->nlayers - 1; l++) {
			const struct neap__list *list =
				neap__list_of(group->spike_lists[!(t0 & 1)], net, s, l);
			*known(group, l + 1, s) = (struct neap__events){list->id, list->count};
		}
	for (int64_t t = t0; t < t1; t++) {
		const unsigned char *p = logs[t - t0];
		for (int s = 0; s < group->size; s++) {
			if (neap__length_of(net, group, s) <= t)
				continue;
			struct neap__list input = neap__input_events(net, group->first + s, t);
			known(group, 0, s)[t - t0 + 1] =
				(struct neap__events){input.id, input.count};
			for (int l = 0; l < net->nlayers - 1; l++) {
				uint16_t count;
				if (!net->layers[l].logged)
					continue;
				memcpy(&count, p, sizeof count);
				p += sizeof count;
				known(group, l + 1, s)[t - t0 + 1] = (struct neap__events){
					(const uint16_t *)(const void *)p, count};
				p += (size_t)count * sizeof(uint16_t);
			}
		}
	}
}

static size_t stride_of(const struct neap_net *net, const struct neap__layer *layer)
{
	return ((size_t)layer->n + net->strip - 1) / net->strip * net->strip;
}

static real *row_of(const struct neap_net *net, const struct neap__group *group,
	const struct neap__layer *layer, int s)
{
	return (real *)group->rows[layer->index] +
	       (size_t)s * NEAP__REPLAYED * stride_of(net, layer);
}

/* The membranes of a layer: strips outside, so that their weights stay near. */
static void walk_layer(struct neap_net *net, struct neap__group *group, unsigned char *state,
	const struct neap__layer *layer, int64_t t0, int64_t t1)
{
	int l = layer->index, strips = (int)(stride_of(net, layer) / net->strip);
	struct neap__walk w = {.n = layer->n,
		.stride = (int)stride_of(net, layer),
		.in_rows = layer->below,
		.bias = net->tensors[layer->bias].data,
		.in = net->packed[layer->weight],
		.own = layer->is_recurrent ? net->packed[layer->recurrent] : NULL};

	neap__code(layer)->walk(layer, &w);
	for (int strip = 0; strip < strips; strip++)
		for (int s = 0; s < group->size; s++) {
			unsigned char *sample = state + group->state_at + s * net->sample_state;
			w.steps = steps_of(net, group, s, t0, t1);
			w.u = (real *)(void *)(sample + layer->state_at);
			w.out = row_of(net, group, layer, s);
			w.spiked = known(group, l + 1, s);
			w.arriving = known(group, l, s) + !(l && layer->delay);
			if (w.steps > 0)
				net->kernels->walk(&w, strip);
		}
}

/* The sums that the walk made of step t. */
static real *walked(
	const struct neap_net *net, const struct neap__group *group, int layer, int slot, int64_t t)
{
	return row_of(net, group, &net->layers[layer], slot) +
	       (size_t)(t - group->walked_from) * stride_of(net, &net->layers[layer]);
}

size_t neap__replay_group(struct neap_net *net, struct neap__group *group, unsigned char *state,
	int64_t t0, int64_t t1, const unsigned char *const *logs, unsigned char *tape)
{
	size_t head = neap__tapes_begin(tape, t1 - t0), bytes = head;
	uint32_t *offset = (uint32_t *)(void *)tape;

	neap__group_load(net, group, state, t0);
	for (int64_t from = t0, to; from < t1; from = to) {
		to = from + NEAP__REPLAYED < t1 ? from + NEAP__REPLAYED : t1;
		group->walked_from = from;
		learn(net, group, from, to, logs + (from - t0));
		for (int l = 0; l < net->nlayers - 1; l++)
			walk_layer(net, group, state, &net->layers[l], from, to);
		for (int64_t t = from; t < to; t++) {
			offset[t - t0] = (uint32_t)bytes;
			bytes += neap__group_step(net, group, state, t, 0, tape + bytes, walked);
		}
	}
	neap__group_save(net, group, state, t0, t1);
	group->tape_bytes += (double)(bytes - head);
	return neap__tapes_end(tape, bytes);
}

void neap__pack_net(struct neap_net *net)
{
	for (int i = 0; i < net->ntensors; i++)
		if (net->packed[i])
			neap__pack(net->packed[i], net->tensors[i].data, (int)net->tensors[i].rows,
				(int)net->tensors[i].columns, (int)net->strip);
}
