/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outer_tiles.h: the weight gradients of a dense net cut into tiles, the unit of work that threads
 * share (outer_products.h), and the scratch of a thread.
 */
#ifndef NEAP_NN_GRADIENTS_OUTER_TILES_H
#define NEAP_NN_GRADIENTS_OUTER_TILES_H

#include <stddef.h>
#include <stdint.h>

struct neap_net;

enum neap__outer_tile_kind {
	NEAP__TILE_EVENTS, /* the whole tensor that spikes arrive by from the inputs */
	NEAP__TILE_OUTER,  /* rows and columns of another tensor */
	NEAP__TILE_BIAS	   /* a whole bias */
};

struct neap__outer_tile {
	enum neap__outer_tile_kind kind;
	int layer, tensor;
	int from, to, left, right; /* OUTER: rows [from, to), columns [left, right) */
};

/* Scratch of a thread. */
struct neap__outer_team {
	const void **x, **y; /* [terms] outputs and d(in) of a sample and step */
	void *room;	     /* of kernels: struct neap__outer */
	void *memory;
};

/* Fills in net->tiles. 0, or -ENOMEM. */
int neap__outer_tiles_make(struct neap_net *net);
/* Memory for so many terms. 0, or -ENOMEM. */
int neap__outer_team_make(struct neap_net *net, struct neap__outer_team *team, int64_t terms);
/* Bytes that neap__outer_team_make takes; saturates. */
uint64_t neap__outer_team_bytes(const struct neap_net *net, int64_t terms);
void neap__outer_team_free(struct neap_net *net, struct neap__outer_team *team);

#endif
