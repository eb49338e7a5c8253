/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threshold_coding.c: a spike where a feature rises to `level` or above from below, x(t-1) < level
 * <= x(t). Where it falls below, the feature's second channel spikes, if it has one. The first
 * step has no spike.
 */
#include "data/coding/coding.h"

static const struct neap__coding_key keys[] = {
	{NEAP__CODING_KEY(level), 0, -1e12, 1e12, 0},
	{NEAP__CODING_KEY(off), 1, 0, 1, 1},
	NEAP__CODING_REPEAT,
	{0},
};

static void spikes(
	const struct neap__coding_values *v, const struct neap__coding_step *s, int8_t *spike)
{
	float level = (float)v->level;

	for (int f = 0; f < s->features; f++) {
		int is = s->now[f] >= level, was = s->before ? s->before[f] >= level : is;
		spike[f] = (int8_t)(is > was ? 1 : was > is && v->off > 0 ? -1 : 0);
	}
}

const struct neap__coding_kind neap__coding_threshold = {
	.name = "threshold", .keys = keys, .looks_back = 1, .spikes = spikes};
