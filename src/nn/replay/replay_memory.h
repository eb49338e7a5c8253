/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_memory.h: what a group needs to make tapes again from a log (replay_steps.h). A strip is
 * as many units as the kernels move together (net->strip_units); a range is the steps that are
 * replayed at a time. Rows of weights are those of W, then those of V.
 */
#ifndef NEAP_NN_REPLAY_REPLAY_MEMORY_H
#define NEAP_NN_REPLAY_REPLAY_MEMORY_H

#include "base/checked.h"
#include "kern/events.h"
#include "kern/kern.h"
#include "nn/core/net_state.h"
#include "base/bump_alloc.h"

enum {
	NEAP__REPLAY_STEPS = NEAP__GRADIENT_BLOCK, /* steps of a range, at most */
	/* The same where the membranes of all units are kept: they take as much room then. */
	NEAP__WHOLE_STEPS = 16,
	/* Bytes of a strip's rows of weights that are added at a time: they stay in a near cache.
	 */
	NEAP__CACHED_BYTES = 192 << 10,
	NEAP__ALL_UNITS = -1 /* in near_counts: the membranes of all units are kept */
};

struct neap__replay {
	int64_t from;		     /* the first step of the range */
	int steps;		     /* steps of a range, for now */
	int whole_ranges;	     /* ranges to come of which all membranes are kept */
	unsigned char *before;	     /* states of the group before the range */
	struct neap__events *events; /* [layers][sample][NEAP__REPLAY_STEPS + 1] */
	/* Of the range, until its steps are on tape. */
	/*
	 * [layers] -> [sample][neap__value_room] membranes that a walk kept (kern.h), strip after
	 * strip; or of NEAP__WHOLE_STEPS steps all of them, [strip][step][unit].
	 */
	void **values;
	void **near_masks; /* [layers] -> [sample][strip][NEAP__REPLAY_STEPS] a bit a unit */
	int *used;	   /* [sample] values of one layer in use */
	struct neap__found **found; /* [layers] -> [sample][strip] what is not yet on tape */
	int **near_counts; /* [layers] -> [sample][NEAP__REPLAY_STEPS]; or NEAP__ALL_UNITS */
	/* Of one step: */
	uint16_t *ids; /* [widest + NEAP__SPARE] */
	void *row;     /* [widest + NEAP__STRIP_SPARE] membranes */
	/* Of one layer, the rows of weights that arrive (kern.h), part of the weights by part: */
	uint16_t *counts; /* [part][sample][NEAP__REPLAY_STEPS] */
	uint16_t **rows;  /* [part][sample] where theirs begin in list */
	uint16_t *list;	  /* [list_room] */
	uint64_t list_room;
	uint64_t *spiked; /* [sample][words] a bit a unit: spikes of the step before */
	size_t words;
	void *sums; /* [sample][NEAP__REPLAY_STEPS][strip's units] */
};

/* Rows of weights of a layer. */
static inline int64_t neap__walk_rows(const struct neap__layer *layer)
{
	return (int64_t)layer->below + (layer->is_recurrent ? layer->n : 0);
}

/* Parts that the rows are added in, so that a strip of a part stays in a near cache. */
static inline int neap__walk_parts(const struct neap_net *net, const struct neap__layer *layer)
{
	uint64_t bytes = (uint64_t)neap__walk_rows(layer) * net->strip_units * net->ops->real;
	return (int)((bytes + NEAP__CACHED_BYTES - 1) / NEAP__CACHED_BYTES);
}

/* Rows of a part. */
static inline int neap__part_rows(const struct neap_net *net, const struct neap__layer *layer)
{
	int parts = neap__walk_parts(net, layer);
	return (int)((neap__walk_rows(layer) + parts - 1) / parts);
}

/* Strips of a layer. */
static inline int neap__walk_strips(const struct neap_net *net, const struct neap__layer *layer)
{
	return (layer->n + (int)net->strip_units - 1) / (int)net->strip_units;
}

/* Numbers that the walks of a sample may keep. */
static inline int64_t neap__value_most(const struct neap_net *net, const struct neap__layer *layer)
{
	return (int64_t)neap__walk_strips(net, layer) * NEAP__WHOLE_STEPS *
	       (int64_t)net->strip_units;
}

/* Numbers that there is room for: kernels write beyond what they keep. */
static inline size_t neap__value_room(const struct neap_net *net, const struct neap__layer *layer)
{
	return (size_t)neap__value_most(net, layer) + NEAP__STRIP_SPARE;
}

/* Bytes of the masks of a strip. */
static inline size_t neap__near_mask_bytes(const struct neap_net *net)
{
	return NEAP__REPLAY_STEPS * net->strip_units / 8;
}

/* Takes the room for a group of so many samples, of a net that has a log, from a block. */
struct neap__replay *neap__replay_take(
	const struct neap_net *net, struct neap__bump *from, int samples);

#endif
