/* SPDX-License-Identifier: Apache-2.0 */
/* spike_lists.c: bitmaps and numbers of the state to lists and back (spike_lists.h). */
#include "nn/core/spike_lists.h"

#include <string.h>

_Static_assert(
	__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words are searched from the lowest byte");

static int bitmap_read(uint16_t *id, const unsigned char *bits, int n)
{
	int count = 0;

	for (int base = 0; base < n; base += 64) {
		uint64_t word = 0;
		int bytes = (n - base + 7) / 8;
		memcpy(&word, bits + base / 8, bytes < 8 ? (size_t)bytes : 8);
		for (; word; word &= word - 1)
			id[count++] = (uint16_t)(base + __builtin_ctzll(word));
	}
	return count;
}

static void bitmap_write(unsigned char *bits, const struct neap__list *list, int n)
{
	memset(bits, 0, (size_t)(n + 7) / 8);
	for (int k = 0; k < list->count; k++)
		bits[list->id[k] >> 3] |= (unsigned char)(1 << (list->id[k] & 7));
}

/* Fills in the lists of the step before t0 from the state of the sample in slot s. */
static void load_lists(
	struct neap_net *net, struct neap__group *group, unsigned char *state, int s, int64_t t0)
{
	int parity = !(t0 & 1);

	for (int l = 0; l < net->nlayers - 1; l++) {
		const struct neap__layer *layer = &net->layers[l];
		struct neap__list *list = neap__list_of(group->spike_lists[parity], net, s, l);
		struct neap__list *near = neap__list_of(group->support_lists[parity], net, s, l);
		list->count = near->count = 0;
		if (layer->keeps_spikes && layer->outputs == NEAP__OUTPUT_ALL) {
			memcpy(list->value_room, state + layer->spikes_at,
				(size_t)layer->n * sizeof(real));
			list->id = net->identity;
			list->value = list->value_room;
			list->count = layer->n;
		} else if (layer->keeps_spikes) {
			list->count = bitmap_read(list->room, state + layer->spikes_at, layer->n);
			if (layer->outputs == NEAP__OUTPUT_VALUES)
				neap__code(layer)->recall(layer, state, list);
		}
		if (layer->keeps_support)
			near->count = bitmap_read(near->room, state + layer->support_at, layer->n);
	}
}

/* Writes the lists of step t1 - 1 into the state of the sample in slot s. */
static void save_lists(
	struct neap_net *net, struct neap__group *group, unsigned char *state, int s, int64_t t1)
{
	int parity = !(t1 & 1);

	for (int l = 0; l < net->nlayers - 1; l++) {
		const struct neap__layer *layer = &net->layers[l];
		struct neap__list *list = neap__list_of(group->spike_lists[parity], net, s, l);
		if (layer->keeps_spikes && layer->outputs == NEAP__OUTPUT_ALL)
			memcpy(state + layer->spikes_at, list->value,
				(size_t)layer->n * sizeof(real));
		else if (layer->keeps_spikes)
			bitmap_write(state + layer->spikes_at, list, layer->n);
		if (layer->keeps_support)
			bitmap_write(state + layer->support_at,
				neap__list_of(group->support_lists[parity], net, s, l), layer->n);
	}
}

void neap__group_load(
	struct neap_net *net, struct neap__group *group, unsigned char *state, int64_t t0)
{
	state += group->state_at;
	for (int s = 0; s < group->size; s++)
		if (neap__length_of(net, group, s) > t0)
			load_lists(net, group, state + s * net->sample_state, s, t0);
}

void neap__group_save(struct neap_net *net, struct neap__group *group, unsigned char *state,
	int64_t t0, int64_t t1)
{
	state += group->state_at;
	for (int s = 0; s < group->size; s++) {
		int64_t length = neap__length_of(net, group, s), end = length < t1 ? length : t1;
		if (end > t0)
			save_lists(net, group, state + s * net->sample_state, s, end);
	}
}
