/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rate_coding.c: a spike in each step by chance: p = gain x + offset, clipped to [0, 1], as in
 * snnTorch's spikegen.rate. A random number is a function of (seed, sample, step, feature), the
 * same in every epoch: four features share a block of Philox (philox.h), 32 bits each.
 */
#include "data/coding/coding.h"
#include "base/philox.h"

#include <math.h>

static const struct neap__coding_key keys[] = {
	{NEAP__CODING_KEY(gain), 0.25, -1e12, 1e12, 0},
	{NEAP__CODING_KEY(offset), 0.5, -1e12, 1e12, 0},
	NEAP__CODING_REPEAT,
	{NEAP__CODING_KEY(seed), -1, 0, 9007199254740992.0, 1},
	{0},
};

static void spikes(
	const struct neap__coding_values *v, const struct neap__coding_step *s, int8_t *spike)
{
	uint64_t blocks = ((uint64_t)s->features + 3) / 4;
	/* A sample has fewer than 2^29 steps and 2^14 blocks a step. */
	uint64_t first = (uint64_t)s->step * blocks;

	for (int f = 0; f < s->features; f += 4) {
		struct neap__philox4 draw = neap__philox((uint64_t)v->seed, NEAP__STREAM_CODING,
			(uint32_t)s->sample, first + (uint64_t)f / 4);
		for (int k = 0; k < 4 && f + k < s->features; k++) {
			double p = fmin(fmax(v->gain * (double)s->now[f + k] + v->offset, 0), 1);
			spike[f + k] = (int8_t)((double)draw.v[k] < p * 0x1p32);
		}
	}
}

const struct neap__coding_kind neap__coding_rate = {.name = "rate", .keys = keys, .spikes = spikes};
