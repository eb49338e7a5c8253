/* SPDX-License-Identifier: Apache-2.0 */
/* deferred_sums.c: the memory of deferred sums (deferred_sums.h). */
#include "nn/gradients/deferred_sums.h"
#include "kern/kern.h"
#include "nn/core/net_state.h"
#include "base/bump_alloc.h"
#include "base/fail.h"

#include <errno.h>

enum {
	/* Rows of a layer, about: 1024 strips of 512 bytes stay in a second-level cache. */
	SAMPLE_STEPS = 1024,
	/* Events of a tensor, at least; more where one step may bring more. 128 KiB. */
	EVENTS_LEAST = 16384
};

size_t neap__deferred_stride(const struct neap_net *net, int layer)
{
	size_t bytes = (size_t)net->layers[layer].widths.sums * net->ops->real;
	return neap__round_up(bytes, 64);
}

size_t neap__deferred_outputs_stride(const struct neap_net *net, int layer)
{
	const struct neap__layer *l = &net->layers[layer];
	return neap__round_up((size_t)l->n * net->ops->real, 64) * (l->dropout > 0 ? 2 : 1);
}

int neap__deferred_steps(int samples)
{
	int steps = SAMPLE_STEPS / samples;
	return steps < 1 ? 1 : steps > NEAP__GRADIENT_BLOCK ? NEAP__GRADIENT_BLOCK : steps;
}

int neap__is_deferred(const struct neap_net *net, int tensor)
{
	if (net->dense)
		return tensor == net->layers[0].weight && !net->options.values;
	return !net->options.smooth && neap__has_plain_rows(&net->tensors[tensor]) &&
	       net->tensors[tensor].takes_spikes;
}

int neap__stores_inputs(const struct neap_net *net)
{
	return net->options.values && net->layers[0].nsources == 1 &&
	       neap__has_plain_rows(&net->tensors[net->layers[0].weight]);
}

/* Takes what the gradient of weights needs that numbers come in by. */
static void take_inputs(const struct neap_net *net, struct neap__deferred *deferred, uint64_t rows,
	struct neap__bump *from)
{
	int stores = neap__stores_inputs(net), outer = stores && !net->dense;
	uint64_t inputs = (uint64_t)net->options.inputs;
	uint64_t tile = inputs < NEAP__INPUT_TILE ? inputs : NEAP__INPUT_TILE;

	deferred->inputs = deferred->outer_room = NULL;
	deferred->x = deferred->y = NULL;
	deferred->terms = 0;
	if (stores && net->ops->real != sizeof(float))
		deferred->inputs = neap__bump_take(from, rows, inputs * net->ops->real);
	if (!outer)
		return;
	deferred->x = neap__bump_take(from, rows, sizeof *deferred->x);
	deferred->y = neap__bump_take(from, rows, sizeof *deferred->y);
	deferred->outer_room = neap__bump_take(
		from, neap__outer_room(neap__round_up(tile, NEAP__OUTER_HIGH)), net->ops->real);
}

/* Takes all arrays of `deferred` from a block. */
static void take_all(const struct neap_net *net, struct neap__deferred *deferred, int samples,
	struct neap__bump *from)
{
	uint64_t rows = ((uint64_t)neap__deferred_steps(samples) + 1) * samples;
	uint64_t most_rows = 0, most = 0;

	deferred->samples = samples;
	deferred->steps = neap__deferred_steps(samples);
	deferred->rows = neap__bump_take(from, net->nlayers, sizeof *deferred->rows);
	deferred->outputs = neap__bump_take(from, net->nlayers, sizeof *deferred->outputs);
	deferred->events = neap__bump_take(from, net->ntensors, sizeof *deferred->events);
	deferred->count = neap__bump_take(from, net->ntensors, sizeof *deferred->count);
	deferred->room = neap__bump_take(from, net->ntensors, sizeof *deferred->room);
	for (int l = 0; l < net->nlayers; l++) {
		int mask = net->layers[l].din_mask, few = mask ? 2 * samples : 0;
		void *row = neap__bump_take(
			from, mask < 0 ? rows : (uint64_t)few, neap__deferred_stride(net, l));
		if (from->base)
			deferred->rows[l] = row;
	}
	for (int l = 0; net->dense && l < net->nlayers - 1; l++) {
		void *row = neap__bump_take(from, rows, neap__deferred_outputs_stride(net, l));
		if (from->base)
			deferred->outputs[l] = row;
	}
	take_inputs(net, deferred, rows, from);
	for (int i = 0; i < net->ntensors; i++) {
		uint64_t all = (uint64_t)net->tensors[i].rows, step = all * samples;
		uint64_t room =
			neap__is_deferred(net, i) ? step > EVENTS_LEAST ? step : EVENTS_LEAST : 0;
		void *events = neap__bump_take(from, room, sizeof **deferred->events);
		most_rows = all > most_rows ? all : most_rows;
		most = room > most ? room : most;
		if (from->base) {
			deferred->events[i] = events;
			deferred->room[i] = room;
		}
	}
	deferred->start = neap__bump_take(from, most_rows + 1, sizeof *deferred->start);
	deferred->row = neap__bump_take(from, most_rows, sizeof *deferred->row);
	deferred->from = neap__bump_take(from, most, sizeof *deferred->from);
	deferred->strip = neap__bump_take(from, rows, NEAP__STRIP_BYTES);
}

uint64_t neap__deferred_bytes(const struct neap_net *net, int samples)
{
	struct neap__deferred deferred;
	struct neap__bump bump = {0};
	take_all(net, &deferred, samples, &bump);
	return bump.used;
}

int neap__deferred_make(struct neap_net *net, struct neap__deferred *deferred, int samples)
{
	uint64_t bytes = neap__deferred_bytes(net, samples);
	void *memory = neap__net_get_zeroed(net, bytes, 1);

	if (!memory)
		return neap__fail_errno(ENOMEM, "%llu bytes for gradients of %d samples",
			(unsigned long long)bytes, samples);
	*deferred = (struct neap__deferred){.memory = memory};
	take_all(net, deferred, samples, &(struct neap__bump){memory, 0});
	return 0;
}

void neap__deferred_free(struct neap_net *net, struct neap__deferred *deferred)
{
	neap__net_put(net, deferred->memory);
	*deferred = (struct neap__deferred){0};
}
