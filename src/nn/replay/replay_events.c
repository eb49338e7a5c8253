/* SPDX-License-Identifier: Apache-2.0 */
/* replay_events.c: rows of weights from lists of events (replay_events.h). */
#include "nn/replay/replay_events.h"

static int rows_of(const struct neap__group *group, const struct neap__layer *layer, int s, int t)
{
	int count = neap__arriving_events(group, layer, s)[t].count;
	return count + (layer->is_recurrent ? neap__own_events(group, layer, s)[t].count : 0);
}

int neap__replay_events_fit(
	const struct neap_net *net, const struct neap__group *group, int64_t t0, int64_t t1)
{
	for (int l = 0; l < net->nlayers - 1; l++) {
		uint64_t rows = 0;
		for (int s = 0; s < group->size; s++)
			for (int t = 0; t < neap__steps_in(net, group, s, t0, t1); t++)
				rows += (uint64_t)rows_of(group, &net->layers[l], s, t);
		if (rows > group->replay->list_room)
			return 0;
	}
	return 1;
}

/* How many of the events are of units below `end`: a binary search. */
static int below(const struct neap__events *e, unsigned unit, int end)
{
	int low = 0, high = e->count;

	if (end <= 0)
		return 0;
	if (high == 0 || (int)(e->id[high - 1] & unit) < end)
		return high;
	while (low < high) {
		int middle = (low + high) / 2;
		if ((int)(e->id[middle] & unit) < end)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Writes the rows [from, to), counted from `from`, of a tensor whose own rows begin at `first`. */
static uint16_t *put_rows(
	uint16_t *row, const struct neap__events *e, unsigned unit, int first, int from, int to)
{
	int end = below(e, unit, to - first);

	for (int k = below(e, unit, from - first); k < end; k++)
		*row++ = (uint16_t)(first + (int)(e->id[k] & unit) - from);
	return row;
}

void neap__replay_events_list(const struct neap_net *net, struct neap__group *group,
	const struct neap__layer *layer, int64_t t0, int64_t t1)
{
	struct neap__replay *r = group->replay;
	int parts = neap__walk_parts(net, layer), rows = neap__part_rows(net, layer);
	unsigned below_bits = neap__unit_bits(net, layer->index - 1);
	unsigned own_bits = neap__unit_bits(net, layer->index);
	uint16_t *row = r->list;

	for (int part = 0; part < parts; part++) {
		int from = part * rows, to = from + rows;
		for (int s = 0; s < group->size; s++) {
			size_t at = (size_t)part * group->room + s;
			uint16_t *count = r->counts + at * NEAP__REPLAY_STEPS;
			int steps = neap__steps_in(net, group, s, t0, t1);
			r->rows[at] = row;
			for (int t = 0; t < steps; t++) {
				uint16_t *begin = row;
				row = put_rows(row, neap__arriving_events(group, layer, s) + t,
					below_bits, 0, from, to);
				if (layer->is_recurrent)
					row = put_rows(row, neap__own_events(group, layer, s) + t,
						own_bits, layer->below, from, to);
				count[t] = (uint16_t)(row - begin);
			}
		}
	}
}
