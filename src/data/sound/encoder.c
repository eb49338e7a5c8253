/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encoder.c: settings of the ear model, and what comes before its ear: the mean is removed, the
 * rate changed, high frequencies emphasised, the level set. It runs at a sampling rate of its own
 * (8 kHz unless `high` needs more), so that a sound gives the same spikes from recordings of any
 * sampling rate.
 */
#include "data/sound/encoder.h"
#include "data/dataset.h"
#include "data/sound/ear.h"
#include "data/sound/resample.h"
#include "base/fail.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SILENCE 1e-9 /* root mean square below which a recording counts as silent */

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
			return neap__fail(NEAP_EUSAGE,
				"encoder: %s is %g; it must be between %g and %g", b->name, *value,
				b->least, b->most);
	}
	o.channels = o.channels == 0 ? 128 : o.channels;
	o.span = o.span == 0 ? 12 : o.span;
	if (o.channels < 1 || o.channels > 700)
		return neap__fail(NEAP_EUSAGE,
			"encoder: channels is %d; it must be between 1 and 700", o.channels);
	if (o.span < 1 || o.span > 700)
		return neap__fail(
			NEAP_EUSAGE, "encoder: span is %d; it must be between 1 and 700", o.span);
	o.pool = o.pool == 0 ? 1 : o.pool;
	if (o.pool < 1 || o.pool > o.channels)
		return neap__fail(NEAP_EUSAGE,
			"--pool %d joins more channels than the %d of the ear. Lower --pool, or "
			"raise --channels",
			o.pool, o.channels);
	if (!(o.low < o.high))
		return neap__fail(
			NEAP_EUSAGE, "--low %g Hz must be below --high %g Hz", o.low, o.high);
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

float neap__encoder_scale(const struct neap_encoder_options *settled, double rms)
{
	return rms > SILENCE ? (float)(settled->rms / rms) : 0;
}

struct neap__emphasis neap__emphasis_of(const struct neap_encoder_options *o)
{
	/* Keeps the corner frequency at any rate. */
	double power = NEAP__ENCODER_BASE_RATE / neap__encoder_rate(o);
	return (struct neap__emphasis){
		.share = o->preemphasis > 0 ? (float)pow(o->preemphasis, power) : 0};
}

void neap__emphasise(struct neap__emphasis *emphasis, float *x, int64_t n)
{
	float before = emphasis->before, share = emphasis->share;
	for (int64_t i = 0; i < n; i++) {
		float here = x[i];
		x[i] = here - share * before;
		before = here;
	}
	emphasis->before = before;
}

double neap__encoder_highest(double rate)
{
	return NEAP__ENCODER_BAND * rate;
}

double neap__encoder_least(double high)
{
	return high / NEAP__ENCODER_BAND;
}

int neap__encoder_takes(const struct neap_encoder_options *o, double rate)
{
	if (!(rate >= 100 && rate <= 1e7))
		return neap__fail(NEAP_EUSAGE,
			"the sampling rate is %g Hz; it must be between 100 and 1e7 Hz. Resample "
			"the recording",
			rate);
	if (o->high > NEAP__ENCODER_BAND * rate)
		return neap__fail(NEAP_EUSAGE,
			"the sampling rate is %g Hz, but channels of up to %g Hz (--high) need at "
			"least %.0f Hz. Resample the recording to at least %.0f Hz",
			rate, o->high, ceil(neap__encoder_least(o->high)),
			ceil(neap__encoder_least(o->high)));
	return 0;
}

int neap__encoder_hears(const float *samples, int64_t n, int64_t first)
{
	for (int64_t i = 0; i < n; i++)
		if (!(fabsf(samples[i]) <= 1e12f))
			return neap__fail(NEAP_EFORMAT,
				"sample %lld is %g; samples must be finite. Replace it by 0 and "
				"save the "
				"recording",
				(long long)(first + i), (double)samples[i]);
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
	struct neap__emphasis emphasis = neap__emphasis_of(o);
	neap__emphasise(&emphasis, x, *count);
	for (int64_t i = 0; i < *count; i++)
		square += (double)x[i] * x[i];
	float scale = neap__encoder_scale(o, sqrt(square / (double)*count));
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
	NEAP_TRY(neap__encoder_takes(&o, rate));
	if (n < 1)
		return neap__fail(NEAP_EFORMAT, "the recording is empty");
	NEAP_TRY(neap__encoder_hears(samples, n, 0));
	float *x = NULL;
	int64_t count = 0;
	int sound = prepare(&x, &count, samples, n, rate, &o);
	NEAP_TRY(sound);
	struct neap__ear ear;
	int rc = neap__ear_init(&ear, &o);
	if (rc == 0 && sound)
		rc = neap__ear_listen(&ear, x, count);
	free(x);
	if (rc == 0) {
		*events = ear.out.events;
		memset(&ear.out, 0, sizeof ear.out);
		events->duration = (double)n / rate;
		events->label = events->speaker = -1;
	}
	neap__ear_free(&ear);
	return rc;
}
