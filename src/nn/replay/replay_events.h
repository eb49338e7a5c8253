/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay_events.h: the events of a range that a group replays, inputs and logged spikes, and the
 * rows of weights that arrive with them. Pointers to events stay valid while the log does.
 */
#ifndef NEAP_NN_REPLAY_REPLAY_EVENTS_H
#define NEAP_NN_REPLAY_REPLAY_EVENTS_H

#include "nn/core/spike_log.h"
#include "nn/core/precision.h"
#include "nn/replay/replay_memory.h"

/* Events of row l (0: the inputs; l: layer l - 1): [0] in the step before the range, then in each
 * step. */
static inline struct neap__events *neap__events_of(const struct neap__group *group, int row, int s)
{
	return group->replay->events + ((size_t)row * group->room + s) * (NEAP__REPLAY_STEPS + 1);
}

/* Events of a layer itself: [0] in the step before the range. */
static inline const struct neap__events *neap__own_events(
	const struct neap__group *group, const struct neap__layer *layer, int s)
{
	return neap__events_of(group, layer->index + 1, s);
}

/* Events that arrive at a layer from below: [t] in step t of the range. */
static inline const struct neap__events *neap__arriving_events(
	const struct neap__group *group, const struct neap__layer *layer, int s)
{
	return neap__events_of(group, layer->index, s) + !(layer->index && layer->delay);
}

/* The bits of an id of layer `index` that are its unit, not a mark; index -1: of an input. */
static inline unsigned neap__unit_bits(const struct neap_net *net, int index)
{
	return index >= 0 && neap__log_marks(&net->layers[index]) ? NEAP__LOG_LAST - 1 : 0xFFFF;
}

/* Steps that the sample in slot s has in [t0, t1). */
static inline int neap__steps_in(
	const struct neap_net *net, const struct neap__group *group, int s, int64_t t0, int64_t t1)
{
	int64_t end = neap__length_of(net, group, s);
	end = end < t1 ? end : t1;
	return end > t0 ? (int)(end - t0) : 0;
}

#define neap__replay_events_fit NEAP_R(neap__replay_events_fit)
#define neap__replay_events_list NEAP_R(neap__replay_events_list)
/* Whether there is room for the rows of [t0, t1), for each layer. */
int neap__replay_events_fit(
	const struct neap_net *net, const struct neap__group *group, int64_t t0, int64_t t1);
/* Fills in `counts` and `rows` of a layer: part by part of the weights, sample by sample. */
void neap__replay_events_list(const struct neap_net *net, struct neap__group *group,
	const struct neap__layer *layer, int64_t t0, int64_t t1);

#endif
