/* SPDX-License-Identifier: Apache-2.0 */
/* replay_memory.h: what a group needs to make tapes again from a log (replay_steps.c). */
#ifndef NEAP_NN_REPLAY_REPLAY_MEMORY_H
#define NEAP_NN_REPLAY_REPLAY_MEMORY_H

#include "base/checked.h"
#include "kern/events.h"
#include "kern/kern.h"
#include "nn/core/net_state.h"
#include "base/bump_alloc.h"

enum {
	NEAP__REPLAY_STEPS = NEAP__GRADIENT_BLOCK, /* steps replayed at a time, at most */
	NEAP__WHOLE_STEPS = 16,		/* the same where the membranes of all units are kept */
	NEAP__CACHED_BYTES = 192 << 10, /* of a strip's rows that are added at a time */
};

struct neap__replay {
	int64_t from;		     /* the first of those steps */
	int steps;		     /* so many at a time, for now */
	int whole_ranges;	     /* of so many ranges to come all membranes are kept */
	unsigned char *before;	     /* states of the group before them */
	struct neap__events *events; /* [layers][sample][NEAP__REPLAY_STEPS + 1] */
	/*
	 * [layers] reals [sample][neap__value_room]: membranes that the walk kept (kern.h),
	 * strip after strip; or of NEAP__WHOLE_STEPS steps all, [strip][step][unit].
	 */
	void **values;
	void **near_masks;	    /* [layers] [sample][strip][NEAP__REPLAY_STEPS] a bit a unit */
	int *used;		    /* [sample] of the values of one layer */
	struct neap__found **found; /* [layers] [sample][strip] what is not yet on tape */
	int **near_counts; /* [layers] [sample][NEAP__REPLAY_STEPS] how many; NEAP__ALL_UNITS */
	/* Of one step: units and membranes. */
	uint16_t *ids;
	void *row;
	/* Of one layer (kern.h): rows that arrive, part of the weights by part. */
	uint16_t *counts; /* [part][sample][NEAP__REPLAY_STEPS] */
	uint16_t **rows;  /* [part][sample] where theirs begin in: */
	uint16_t *list;
	uint64_t list_room;
	uint64_t *spiked; /* [sample][words] in the step before */
	size_t words;
	void *sums; /* reals [sample][NEAP__REPLAY_STEPS][strip's units] */
};
enum { NEAP__ALL_UNITS = -1 };

/* Rows of weights that a walk reads: W and V. */
static inline int64_t neap__walk_rows(const struct neap__layer *layer)
{
	return (int64_t)layer->below + (layer->is_recurrent ? layer->n : 0);
}

/* Parts that they are added in, so that a strip of a part stays near; rows of one. */
static inline int neap__walk_parts(const struct neap_net *net, const struct neap__layer *layer)
{
	uint64_t bytes = (uint64_t)neap__walk_rows(layer) * net->strip_units * net->ops->real;
	return (int)((bytes + NEAP__CACHED_BYTES - 1) / NEAP__CACHED_BYTES);
}

static inline int neap__part_rows(const struct neap_net *net, const struct neap__layer *layer)
{
	int parts = neap__walk_parts(net, layer);
	return (int)((neap__walk_rows(layer) + parts - 1) / parts);
}

static inline int neap__walk_strips(const struct neap_net *net, const struct neap__layer *layer)
{
	return (layer->n + (int)net->strip_units - 1) / (int)net->strip_units;
}

/* Numbers that the walks of a sample may keep, and room for what they write. */
static inline int64_t neap__value_most(const struct neap_net *net, const struct neap__layer *layer)
{
	return (int64_t)neap__walk_strips(net, layer) * NEAP__WHOLE_STEPS *
	       (int64_t)net->strip_units;
}

static inline size_t neap__value_room(const struct neap_net *net, const struct neap__layer *layer)
{
	return (size_t)neap__value_most(net, layer) + NEAP__STRIP_SPARE;
}

/* Bytes of bits of a strip. */
static inline size_t neap__near_mask_bytes(const struct neap_net *net)
{
	return NEAP__REPLAY_STEPS * net->strip_units / 8;
}

/* Room for a group of so many samples, of a net that has a log. */
struct neap__replay *neap__replay_take(
	const struct neap_net *net, struct neap__pieces *from, int samples);

#endif
