/* SPDX-License-Identifier: Apache-2.0 */
/* replay.h: what a group needs to make tapes again from a log (relive.c). */
#ifndef NEAP_NN_REPLAY_H
#define NEAP_NN_REPLAY_H

#include "base/checked.h"
#include "kern/events.h"
#include "kern/kern.h"
#include "nn/inside.h"
#include "nn/pieces.h"

enum {
	NEAP__REPLAYED = 16, /* steps replayed at a time, at most */
	/* Numbers behind a row, for membranes and for units that the walk writes beyond. */
	NEAP__ROW_SPARE = NEAP__STRIP_SPARE * 3 / 2
};

/*
 * A list of a log: ascending units, the last one marked, or NEAP__LOG_NONE. Of a layer whose
 * units take all 16 bits: a count and the units.
 */
enum { NEAP__LOG_LAST = 0x8000, NEAP__LOG_NONE = 0xFFFF };

static inline int neap__log_marks(const struct neap__layer *layer)
{
	return layer->n < NEAP__LOG_LAST;
}

struct neap__replay {
	int64_t from;		    /* the first of those steps */
	struct neap__events *known; /* [layers][sample][NEAP__REPLAYED + 1] */
	/*
	 * [layers] reals [sample][NEAP__REPLAYED + 1][stride]. Of a step the membranes before
	 * the reset, or of the units inside the support alone, and these units behind them; in
	 * the last row what the layer began with.
	 */
	void **rows;
	int **kept; /* [layers] [sample][NEAP__REPLAYED] how many; NEAP__ALL_UNITS */
	/* Of one layer (kern.h): samples, spikes that arrive in a step, and their rows. */
	struct neap__walker *walkers; /* [sample] */
	int *counts;		      /* [sample][NEAP__REPLAYED] */
	uint32_t *lists;
	uint64_t list_room;
	uint64_t *spiked; /* [sample][words] in the step before */
	size_t words;
};
enum { NEAP__ALL_UNITS = -1 };

/* Rows of weights that a walk reads: W and V. */
static inline int64_t neap__walk_rows(const struct neap__layer *layer)
{
	return (int64_t)layer->below + (layer->is_recurrent ? layer->n : 0);
}

/* Numbers from one row to the next. */
static inline size_t neap__replay_stride(
	const struct neap_net *net, const struct neap__layer *layer)
{
	return (size_t)neap__round_up((uint64_t)layer->n, net->strip) + NEAP__ROW_SPARE;
}

/* Units inside the support of which a row has room for membranes and numbers. */
static inline int neap__replay_most(const struct neap_net *net, const struct neap__layer *layer)
{
	size_t bytes = net->engine->real;
	return (int)((size_t)layer->n * bytes / (bytes + sizeof(uint16_t)));
}

/* Room for a group of so many samples, of a net that has a log. */
struct neap__replay *neap__replay_take(
	const struct neap_net *net, struct neap__pieces *from, int samples);

#endif
