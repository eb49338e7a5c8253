/* SPDX-License-Identifier: Apache-2.0 */
/* replay_memory.c: takes what a group replays in from a block (replay_memory.h). */
#include "nn/replay/replay_memory.h"

/* Takes what lasts until the steps of a range are on tape. */
static void take_layer(const struct neap_net *net, struct neap__bump *from, struct neap__replay *r,
	const struct neap__layer *layer, uint64_t samples)
{
	uint64_t strips = samples * (uint64_t)neap__walk_strips(net, layer);
	void *values =
		neap__bump_take(from, samples * neap__value_room(net, layer), net->ops->real);
	void *near_masks = neap__bump_take(from, strips, neap__near_mask_bytes(net));
	struct neap__found *found = neap__bump_take(from, strips, sizeof *found);
	int *near_counts = neap__bump_take(from, samples * NEAP__REPLAY_STEPS, sizeof *near_counts);

	if (!from->base)
		return;
	r->values[layer->index] = values;
	r->near_masks[layer->index] = near_masks;
	r->found[layer->index] = found;
	r->near_counts[layer->index] = near_counts;
}

struct neap__replay *neap__replay_take(
	const struct neap_net *net, struct neap__bump *from, int samples)
{
	struct neap__replay *r = neap__bump_take(from, 1, sizeof *r), measured;
	uint64_t hidden = (uint64_t)net->nlayers - 1, n = (uint64_t)samples, rows = 0, parts = 0;
	struct neap__replay *to = r ? r : &measured;

	*to = (struct neap__replay){.steps = NEAP__REPLAY_STEPS};
	to->before = neap__bump_take(from, n, net->sample_state);
	to->events = neap__bump_take(
		from, (uint64_t)net->nlayers * n * (NEAP__REPLAY_STEPS + 1), sizeof *to->events);
	to->values = neap__bump_take(from, hidden, sizeof *to->values);
	to->near_masks = neap__bump_take(from, hidden, sizeof *to->near_masks);
	to->found = neap__bump_take(from, hidden, sizeof *to->found);
	to->near_counts = neap__bump_take(from, hidden, sizeof *to->near_counts);
	for (int l = 0; l < net->nlayers - 1; l++) {
		const struct neap__layer *layer = &net->layers[l];
		uint64_t all = (uint64_t)neap__walk_rows(layer);
		uint64_t cut = (uint64_t)neap__walk_parts(net, layer);
		take_layer(net, from, to, layer, n);
		rows = all > rows ? all : rows;
		parts = cut > parts ? cut : parts;
	}
	to->used = neap__bump_take(from, n, sizeof *to->used);
	to->ids = neap__bump_take(from, (uint64_t)net->widest + NEAP__SPARE, sizeof *to->ids);
	to->row = neap__bump_take(from, (uint64_t)net->widest + NEAP__STRIP_SPARE, net->ops->real);
	to->counts = neap__bump_take(from, parts * n * NEAP__REPLAY_STEPS, sizeof *to->counts);
	to->rows = neap__bump_take(from, parts * n, sizeof *to->rows);
	/* Two steps in which all units spike: many steps where few do. */
	to->list_room = neap__sat_mul(2 * n, rows);
	to->list = neap__bump_take(from, to->list_room, sizeof *to->list);
	to->words = (size_t)neap__round_up((uint64_t)net->widest, 512) / 64;
	to->spiked = neap__bump_take(from, n * to->words, sizeof *to->spiked);
	to->sums = neap__bump_take(from,
		(parts > 1 ? n : 1) * NEAP__REPLAY_STEPS * (uint64_t)net->strip_units,
		net->ops->real);
	return r;
}
