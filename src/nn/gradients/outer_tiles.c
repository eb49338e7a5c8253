/* SPDX-License-Identifier: Apache-2.0 */
/* outer_tiles.c: cutting tensors into tiles, and the scratch of threads (outer_tiles.h). */
#include "nn/gradients/outer_tiles.h"
#include "nn/core/net_state.h"
#include "base/bump_alloc.h"
#include "base/fail.h"
#include "kern/kern.h"

#include <errno.h>

enum {
	ROWS = 256,	/* of a tile, at most: they and 256 terms fit a second-level cache */
	COLUMNS = 1024, /* so that a tile is long enough to pay for packing its rows */
	STRIP = NEAP__OUTER_STRIP
};

/* The size of equal parts of n, at most `most`, a multiple of `unit`. */
static int part_size(int n, int most, int unit)
{
	int parts = (n + most - 1) / most, size = (n + parts - 1) / parts;
	return (size + unit - 1) / unit * unit;
}

static void put(struct neap_net *net, struct neap__outer_tile tile)
{
	if (net->tensors[tile.tensor].is_frozen)
		return;
	if (net->tiles)
		net->tiles[net->ntiles] = tile;
	net->ntiles++;
}

static void cut(struct neap_net *net, int layer, int tensor)
{
	int rows = (int)net->tensors[tensor].rows, columns = (int)net->tensors[tensor].columns;
	int high = part_size(rows, ROWS, NEAP__OUTER_HIGH),
	    wide = part_size(columns, COLUMNS, STRIP);

	for (int from = 0; from < rows; from += high)
		for (int left = 0; left < columns; left += wide)
			put(net, (struct neap__outer_tile){NEAP__TILE_OUTER, layer, tensor, from,
					 from + high < rows ? from + high : rows, left,
					 left + wide < columns ? left + wide : columns});
}

/* Writes the tiles, or counts them while net->tiles is NULL; those that take longest come first. */
static void cut_all(struct neap_net *net)
{
	net->ntiles = 0;
	if (!net->options.values)
		put(net, (struct neap__outer_tile){.tensor = net->layers[0].weight});
	for (int l = 0; l < net->nlayers; l++) {
		if (l > 0 || net->options.values)
			cut(net, l, net->layers[l].weight);
		if (net->layers[l].is_recurrent)
			cut(net, l, net->layers[l].recurrent);
	}
	for (int l = 0; l < net->nlayers; l++)
		put(net, (struct neap__outer_tile){.kind = NEAP__TILE_BIAS,
				 .layer = l,
				 .tensor = net->layers[l].bias});
}

int neap__outer_tiles_make(struct neap_net *net)
{
	if (!net->dense)
		return 0;
	cut_all(net);
	net->tiles = neap__net_get(net, (uint64_t)net->ntiles, sizeof *net->tiles);
	if (!net->tiles)
		return neap__fail_errno(ENOMEM, "net");
	cut_all(net);
	return 0;
}

static void take(const struct neap_net *net, struct neap__outer_team *team, int64_t terms,
	struct neap__bump *from)
{
	team->x = neap__bump_take(from, (uint64_t)terms, sizeof *team->x);
	team->y = neap__bump_take(from, (uint64_t)terms, sizeof *team->y);
	team->room = neap__bump_take(from, neap__outer_room(ROWS), net->ops->real);
}

uint64_t neap__outer_team_bytes(const struct neap_net *net, int64_t terms)
{
	struct neap__outer_team team;
	struct neap__bump bump = {0};
	take(net, &team, terms, &bump);
	return bump.used;
}

int neap__outer_team_make(struct neap_net *net, struct neap__outer_team *team, int64_t terms)
{
	uint64_t bytes = neap__outer_team_bytes(net, terms);
	void *memory = neap__net_get(net, bytes, 1);

	if (!memory)
		return neap__fail_errno(
			ENOMEM, "%llu bytes for gradients", (unsigned long long)bytes);
	*team = (struct neap__outer_team){.memory = memory};
	take(net, team, terms, &(struct neap__bump){memory, 0});
	return 0;
}

void neap__outer_team_free(struct neap_net *net, struct neap__outer_team *team)
{
	neap__net_put(net, team->memory);
	*team = (struct neap__outer_team){0};
}
