/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delta_coding.c: a spike where a feature changes by `threshold` or more from one step to the next:
 * x(t) - x(t-1) >= threshold. Where it is at most -threshold, the feature's second channel
 * spikes, if it has one. It is delta modulation as snnTorch's spikegen.delta has it, which writes
 * -1 in place of a second channel (Eshraghian et al., "Training spiking neural networks using
 * lessons from deep learning", Proceedings of the IEEE 111, 2023).
 */
#include "data/coding/coding.h"

static const struct neap__coding_key keys[] = {
	{NEAP__CODING_KEY(threshold), 0.1, 1e-12, 1e12, 0},
	{NEAP__CODING_KEY(off), 1, 0, 1, 1},
	{NEAP__CODING_KEY(padding), 0, 0, 1, 1},
	NEAP__CODING_REPEAT,
	{0},
};

static void spikes(
	const struct neap__coding_values *v, const struct neap__coding_step *s, int8_t *spike)
{
	float threshold = (float)v->threshold;
	int pads = !s->before && v->padding > 0;

	for (int f = 0; f < s->features; f++) {
		float before = s->before ? s->before[f] : pads ? s->now[f] : 0;
		float change = s->now[f] - before;
		spike[f] = (int8_t)(change >= threshold			 ? 1
				    : change <= -threshold && v->off > 0 ? -1
									 : 0);
	}
}

const struct neap__coding_kind neap__coding_delta = {
	.name = "delta", .keys = keys, .looks_back = 1, .spikes = spikes};
