/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encoder.c: the ear model, one sample of sound after the other: level, gammatone filters,
 * compression r = max(0, x)^c, lateral inhibition r_k - a mean(r near k), and a leaky
 * integrate-and-fire neuron a channel. It runs at a sampling rate of its own (8 kHz unless `high`
 * needs more), so that a sound gives the same spikes from recordings of any sampling rate.
 */
#include "data/encoder.h"
#include "data/dataset.h"
#include "data/gammatone.h"
#include "data/resample.h"
#include "base/fail.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define BASE_RATE 8000.0 /* Hz; pre-emphasis is given at this rate */
#define BAND                                                                                       \
	0.45 /* of the sampling rate: the highest centre of a filter; resample.h keeps as much */
#define SILENCE 1e-9 /* root mean square below which a recording counts as silent */
/* Added to the sound: keeps the filters from denormal numbers, which are slow, in silence. */
#define FLOOR 1e-12f

static const struct bound {
	const char *name;
	size_t offset;
	double fallback, least, most;
	int may_be_off; /* negative: none */
} bounds[] = {
	{"low", offsetof(struct neap_encoder_options, low), 80, 1, 1e6, 0},
	{"high", offsetof(struct neap_encoder_options, high), 3600, 2, 1e6, 0},
	{"rms", offsetof(struct neap_encoder_options, rms), 0.05, 1e-6, 1e6, 0},
	{"preemphasis", offsetof(struct neap_encoder_options, preemphasis), 0.95, 0, 1, 1},
	{"gain", offsetof(struct neap_encoder_options, gain), 20, 1e-6, 1e6, 0},
	{"tau", offsetof(struct neap_encoder_options, tau), 10e-3, 1e-4, 1e3, 0},
	{"refractory", offsetof(struct neap_encoder_options, refractory), 1e-3, 0, 1, 1},
	{"inhibition", offsetof(struct neap_encoder_options, inhibition), 0.8, 0, 100, 1},
	{"compression", offsetof(struct neap_encoder_options, compression), 0.3, 1e-3, 10, 0},
};

int neap__encoder_settle(
	struct neap_encoder_options *settled, const struct neap_encoder_options *options)
{
	struct neap_encoder_options o = {0};
	if (options)
		memcpy(&o, options, options->size < sizeof o ? options->size : sizeof o);
	o.size = sizeof o;
	for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
		const struct bound *b = &bounds[i];
		double *value = (double *)((char *)&o + b->offset);
		if (*value == 0)
			*value = b->fallback;
		if (b->may_be_off && *value < 0)
			*value = -1;
		else if (!(*value >= b->least && *value <= b->most))
			return neap__fail(NEAP_EUSAGE, "encoder: %s of %g; %g to %g is accepted",
				b->name, *value, b->least, b->most);
	}
	o.channels = o.channels == 0 ? 128 : o.channels;
	o.span = o.span == 0 ? 12 : o.span;
	if (o.channels < 1 || o.channels > 700)
		return neap__fail(
			NEAP_EUSAGE, "encoder: %d channels; 1 to 700 are accepted", o.channels);
	if (o.span < 1 || o.span > 700)
		return neap__fail(NEAP_EUSAGE, "encoder: span of %d; 1 to 700 is accepted", o.span);
	if (!(o.low < o.high))
		return neap__fail(NEAP_EUSAGE, "encoder: low of %g Hz is not below high of %g Hz",
			o.low, o.high);
	*settled = o;
	return 0;
}

int neap__encoder_numbers(void)
{
	return sizeof bounds / sizeof bounds[0];
}

double *neap__encoder_number(struct neap_encoder_options *options, int index, const char **name)
{
	*name = bounds[index].name;
	return (double *)((char *)options + bounds[index].offset);
}

double neap__encoder_rate(const struct neap_encoder_options *settled)
{
	return fmax(BASE_RATE, settled->high / BAND);
}

struct ear {
	struct neap__gammatone bank;
	int channels, refractory, span;
	float decay, drive, inhibition, compression;
	float *value, *potential, *sum; /* [channels], sum [channels + 1] */
	int32_t *rest;			/* [channels]: samples of refractory time left */
	float *share;			/* [channels]: inhibition / channels in reach */
	double rate;
	struct neap__event_buffer out;
};

static int ear_init(struct ear *ear, const struct neap_encoder_options *o)
{
	size_t n = (size_t)o->channels;
	memset(ear, 0, sizeof *ear);
	ear->channels = o->channels;
	ear->rate = neap__encoder_rate(o);
	ear->refractory = o->refractory > 0 ? (int)lround(o->refractory * ear->rate) : 0;
	ear->span = o->span;
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

static void ear_fini(struct ear *ear)
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
static void inhibit(struct ear *ear)
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

static int add_spike(struct ear *ear, int channel, double time)
{
	struct neap_events *e = &ear->out.events;
	NEAP_TRY(neap__event_buffer_grow(&ear->out, e->count + 1));
	e->time[e->count] = time;
	e->unit[e->count++] = (uint16_t)channel;
	return 0;
}

/* Steps the membranes, also in the refractory time, which only holds spikes back. Returns 1 where
 * any neuron is to spike. */
static int integrate(struct ear *ear)
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

static int listen(struct ear *ear, const float *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
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
			NEAP_TRY(add_spike(ear, k, (double)i / ear->rate));
		}
	}
	return 0;
}

/* Removes the mean, resamples to the model's rate, emphasises high frequencies and sets the level.
 * Returns 1, or 0 for silence. */
static int prepare(float **out, int64_t *count, const float *samples, int64_t n, double rate,
	const struct neap_encoder_options *o)
{
	double mean = 0, square = 0, model = neap__encoder_rate(o);
	float *level = malloc((size_t)n * sizeof *level), *x = NULL;
	if (!level)
		return neap__fail_errno(ENOMEM, "%lld samples", (long long)n);
	for (int64_t i = 0; i < n; i++)
		mean += samples[i];
	mean /= (double)n;
	for (int64_t i = 0; i < n; i++)
		level[i] = (float)(samples[i] - mean);
	int rc = neap__resample(&x, count, level, n, rate, model);
	free(level);
	NEAP_TRY(rc);
	/* Keeps the corner frequency at any rate. */
	float a = o->preemphasis > 0 ? (float)pow(o->preemphasis, BASE_RATE / model) : 0;
	for (int64_t i = *count - 1; i > 0; i--)
		x[i] -= a * x[i - 1];
	for (int64_t i = 0; i < *count; i++)
		square += (double)x[i] * x[i];
	double rms = sqrt(square / (double)*count);
	float scale = rms > SILENCE ? (float)(o->rms / rms) : 0;
	for (int64_t i = 0; i < *count; i++)
		x[i] *= scale;
	*out = x;
	return scale > 0;
}

int neap_encode(struct neap_events *events, const float *samples, int64_t n, double rate,
	const struct neap_encoder_options *options)
{
	NEAP_NEED(events);
	struct neap_encoder_options o;
	memset(events, 0, sizeof *events);
	NEAP_TRY(neap__encoder_settle(&o, options));
	if (!(rate >= 100 && rate <= 1e7))
		return neap__fail(
			NEAP_EUSAGE, "a sampling rate of %g Hz; 100 to 1e7 Hz is accepted", rate);
	if (o.high > BAND * rate)
		return neap__fail(NEAP_EUSAGE,
			"high of %g Hz; at most %g Hz at a sampling rate of %g Hz", o.high,
			BAND * rate, rate);
	if (n < 1)
		return neap__fail(NEAP_EFORMAT, "the recording is empty");
	for (int64_t i = 0; i < n; i++)
		if (!(fabsf(samples[i]) <= 1e12f))
			return neap__fail(NEAP_EFORMAT,
				"sample %lld is %g; finite numbers are accepted", (long long)i,
				(double)samples[i]);
	float *x = NULL;
	int64_t count = 0;
	int sound = prepare(&x, &count, samples, n, rate, &o);
	NEAP_TRY(sound);
	struct ear ear;
	int rc = ear_init(&ear, &o);
	if (rc == 0 && sound)
		rc = listen(&ear, x, count);
	free(x);
	if (rc == 0) {
		*events = ear.out.events;
		memset(&ear.out, 0, sizeof ear.out);
		events->duration = (double)n / rate;
		events->label = events->speaker = -1;
	}
	ear_fini(&ear);
	return rc;
}
