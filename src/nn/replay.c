/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/replay.h"

struct neap__replay *neap__replay_take(
	const struct neap_net *net, struct neap__pieces *from, int samples)
{
	struct neap__replay *r = neap__piece(from, 1, sizeof *r), measured;
	uint64_t hidden = (uint64_t)net->nlayers - 1, n = (uint64_t)samples, rows = 0;
	struct neap__replay *to = r ? r : &measured;

	*to = (struct neap__replay){0};
	to->known = neap__piece(
		from, (uint64_t)net->nlayers * n * (NEAP__REPLAYED + 1), sizeof *to->known);
	to->rows = neap__piece(from, hidden, sizeof *to->rows);
	to->kept = neap__piece(from, hidden, sizeof *to->kept);
	for (int l = 0; l < net->nlayers - 1; l++) {
		const struct neap__layer *layer = &net->layers[l];
		uint64_t stride = neap__replay_stride(net, layer);
		uint64_t here = (uint64_t)neap__walk_rows(layer);
		void *row = neap__piece(from, n * (NEAP__REPLAYED + 1) * stride, net->engine->real);
		int *kept = neap__piece(from, n * NEAP__REPLAYED, sizeof *kept);
		if (r) {
			r->rows[l] = row;
			r->kept[l] = kept;
		}
		rows = here > rows ? here : rows;
	}
	to->walkers = neap__piece(from, n, sizeof *to->walkers);
	to->counts = neap__piece(from, n * NEAP__REPLAYED, sizeof *to->counts);
	to->words = (size_t)neap__round_up((uint64_t)net->widest, 512) / 64;
	to->spiked = neap__piece(from, n * to->words, sizeof *to->spiked);
	/* One step in which all units spike; many, where few do. */
	to->list_room = neap__sat_mul(n, rows);
	to->lists = neap__piece(from, to->list_room, sizeof *to->lists);
	return r;
}
