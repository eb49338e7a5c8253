/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outer_products.h: weight gradients of a dense net, one whose hidden layers' outputs are numbers
 * of all units. Groups are then less than what is summed together, so that all threads have some:
 * each first reverses its samples through some steps and keeps d(in) and outputs; then the sums
 * over all their samples and steps are made, in tiles that threads share: rows and columns of a
 * tensor, whose gradient is a sum of outer products.
 *
 * Every sum goes downwards in t and upwards in samples, whatever steps, groups and tiles
 * there are.
 */
#ifndef NEAP_NN_GRADIENTS_OUTER_PRODUCTS_H
#define NEAP_NN_GRADIENTS_OUTER_PRODUCTS_H

#include <stddef.h>
#include <stdint.h>

struct neap_net;

enum neap__outer_tile_kind {
	NEAP__TILE_EVENTS, /* all of a tensor that inputs arrive by */
	NEAP__TILE_OUTER,
	NEAP__TILE_BIAS
};

struct neap__outer_tile {
	enum neap__outer_tile_kind kind;
	int layer, tensor;
	int from, to, left, right; /* OUTER: rows and columns */
};

/* Scratch of a thread. */
struct neap__outer_team {
	const void **x, **y; /* [terms] */
	void *room;	     /* of kernels */
	void *memory;
};

/* Cuts the tensors. */
int neap__outer_tiles_make(struct neap_net *net);
/* Memory for so many terms; and what it takes. */
int neap__outer_team_make(struct neap_net *net, struct neap__outer_team *team, int64_t terms);
size_t neap__outer_team_bytes(const struct neap_net *net, int64_t terms);
void neap__outer_team_free(struct neap__outer_team *team);

#endif
