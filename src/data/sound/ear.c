/* SPDX-License-Identifier: Apache-2.0 */
/* ear.c: the filters, the inhibition and the neurons, one sample of sound after the other. */
#include "data/sound/ear.h"
#include "data/sound/encoder.h"
#include "base/fail.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Added to the sound: keeps the filters from denormal numbers, which are slow, in silence. */
#define FLOOR 1e-12f

int neap__ear_init(struct neap__ear *ear, const struct neap_encoder_options *o)
{
	size_t n = (size_t)o->channels;
	memset(ear, 0, sizeof *ear);
	ear->channels = o->channels;
	ear->rate = neap__encoder_rate(o);
	ear->refractory = o->refractory > 0 ? (int)lround(o->refractory * ear->rate) : 0;
	ear->span = o->span;
	ear->pool = o->pool;
	ear->decay = (float)exp(-1 / (o->tau * ear->rate));
	ear->drive = (float)(o->gain * -expm1(-1 / (o->tau * ear->rate)));
	ear->inhibition = (float)o->inhibition;
	ear->compression = (float)o->compression;
	NEAP_TRY(neap__gammatone_init(&ear->bank, o->channels, o->low, o->high, ear->rate));
	ear->value = calloc(n, sizeof(float));
	ear->potential = calloc(n, sizeof(float));
	ear->sum = calloc(n + 1, sizeof(float));
	ear->share = calloc(n, sizeof(float));
	ear->rest = calloc(n, sizeof *ear->rest);
	if (!ear->value || !ear->potential || !ear->sum || !ear->share || !ear->rest)
		return neap__fail_errno(ENOMEM, "%d channels", o->channels);
	for (int k = 0; k < o->channels; k++) {
		int from = k < o->span ? 0 : k - o->span;
		int to = k + o->span >= o->channels ? o->channels - 1 : k + o->span;
		ear->share[k] = (float)(o->inhibition / (to - from + 1));
	}
	return 0;
}

void neap__ear_free(struct neap__ear *ear)
{
	neap__gammatone_fini(&ear->bank);
	neap__event_buffer_free(&ear->out);
	free(ear->value);
	free(ear->potential);
	free(ear->sum);
	free(ear->share);
	free(ear->rest);
}

void neap__encoder_compress(float *x, int n, float power)
{
	for (int k = 0; k < n; k++)
		x[k] = x[k] > 0 ? powf(x[k], power) : 0;
}

/* r_k <- max(0, r_k - inhibition * mean of r within reach). */
static void inhibit(struct neap__ear *ear)
{
	int n = ear->channels, span = ear->span;
	float total = 0;
	for (int k = 0; k < n; k++) {
		ear->sum[k] = total;
		total += ear->value[k];
	}
	ear->sum[n] = total;
	for (int k = 0; k < n; k++) {
		int from = k < span ? 0 : k - span, to = k + span >= n ? n : k + span + 1;
		float r = ear->value[k] - ear->share[k] * (ear->sum[to] - ear->sum[from]);
		ear->value[k] = r > 0 ? r : 0;
	}
}

static int add_spike(struct neap__ear *ear, int input, double time)
{
	struct neap_events *e = &ear->out.events;
	NEAP_TRY(neap__event_buffer_grow(&ear->out, e->count + 1));
	e->time[e->count] = time;
	e->unit[e->count++] = (uint16_t)input;
	return 0;
}

/* Steps the membranes, also in the refractory time, which only holds spikes back. Returns 1 where
 * any neuron is to spike. */
static int integrate(struct neap__ear *ear)
{
	int n = ear->channels, any = 0;
	float *restrict v = ear->potential;
	const float *restrict r = ear->value;
	int32_t *restrict rest = ear->rest;
	for (int k = 0; k < n; k++) {
		v[k] = v[k] * ear->decay + ear->drive * r[k];
		rest[k] -= rest[k] > 0;
		any |= (v[k] >= 1.0f) & (rest[k] == 0);
	}
	return any;
}

int neap__ear_listen(struct neap__ear *ear, const float *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++, ear->heard++) {
		neap__gammatone_step(&ear->bank, x[i] + FLOOR, ear->value);
		neap__encoder_compress(ear->value, ear->channels, ear->compression);
		if (ear->inhibition > 0)
			inhibit(ear);
		if (!integrate(ear))
			continue;
		for (int k = 0; k < ear->channels; k++) {
			if (ear->potential[k] < 1.0f || ear->rest[k] > 0)
				continue;
			ear->potential[k] -= 1.0f;
			ear->rest[k] = ear->refractory;
			NEAP_TRY(add_spike(ear, k / ear->pool, (double)ear->heard / ear->rate));
		}
	}
	return 0;
}
