/* SPDX-License-Identifier: Apache-2.0 */
/*
 * latency_coding.c: one spike of a feature in a period, the earlier the stronger: x = gain number
 * + offset, clipped to [0, 1], of the row that begins the period of n steps. It is snnTorch's
 * spikegen.latency: with linear=1 the step is tau (1 - x), at most tau (1 - threshold); else tau
 * log(x / (x - threshold)), x at least threshold + EPSILON; rounded, halves to even. Without tau
 * the latest of these is at step n - 1, which snnTorch calls normalised. There the latest is the
 * one that the data has; here it is that of a feature below the threshold, whatever the data.
 * Spikes beyond the period are left out.
 */
#include "data/coding/coding.h"
#include "base/fail.h"

#include <math.h>

#define EPSILON 1e-7 /* of snnTorch */

static const struct neap__coding_key keys[] = {
	{NEAP__CODING_KEY(gain), 0.25, -1e12, 1e12, 0},
	{NEAP__CODING_KEY(offset), 0.5, -1e12, 1e12, 0},
	{NEAP__CODING_KEY(threshold), 0.01, 0, 0.99, 0},
	{NEAP__CODING_KEY(linear), 1, 0, 1, 1},
	{NEAP__CODING_KEY(tau), 0, 0, 1e8, 0},
	{NEAP__CODING_KEY(clip), 0, 0, 1, 1},
	{NEAP__CODING_KEY(period), 0, 0, 1e8, 1},
	NEAP__CODING_REPEAT,
	{0},
};

static int check(const struct neap__coding_values *v)
{
	if (v->linear > 0 || v->threshold >= 1e-6)
		return 0;
	return neap__fail(NEAP_EUSAGE,
		"--encode: threshold=%g is not valid with linear=0; it must be between 1e-06 and "
		"0.99",
		v->threshold);
}

static float delay(const struct neap__coding_values *v, int64_t period, float x)
{
	float threshold = (float)v->threshold;
	float tau = (float)(v->tau > 0 ? v->tau : (double)(period - 1));

	if (v->linear > 0) {
		double span = v->tau > 0 ? v->tau : (double)(period - 1);
		return fminf(-tau * (x - 1), (float)(-span * (v->threshold - 1)));
	}
	float least = (float)(v->threshold + EPSILON);
	float time = logf(fmaxf(x, least) / (fmaxf(x, least) - threshold));
	return v->tau > 0 ? tau * time : time * tau / logf(least / (least - threshold));
}

/* Each number becomes the step of its spike. */
static void prepare(const struct neap__coding_values *v, int64_t period, int features, float *row)
{
	for (int f = 0; f < features; f++) {
		float x = (float)fmin(fmax(v->gain * (double)row[f] + v->offset, 0), 1);
		int none = v->clip > 0 && x < (float)v->threshold;
		row[f] = none ? -1 : rintf(delay(v, period, x));
	}
}

static void spikes(
	const struct neap__coding_values *v, const struct neap__coding_step *s, int8_t *spike)
{
	(void)v;
	for (int f = 0; f < s->features; f++)
		spike[f] = (int8_t)((double)s->now[f] == (double)s->within);
}

const struct neap__coding_kind neap__coding_latency = {.name = "latency",
	.keys = keys,
	.has_periods = 1,
	.check = check,
	.prepare = prepare,
	.spikes = spikes};
