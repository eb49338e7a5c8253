/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resample.h: sampling rates of recordings, changed by libsamplerate: sinc interpolation,
 * band-limited to the lower rate (Smith, Gossett, ICASSP 1984). Its medium converter passes 90%
 * of the lower rate's band, which is as much as the ear model uses, with 121 dB above its errors.
 * A sound may come whole or piece by piece: how it is cut changes no sample.
 */
#ifndef NEAP_DATA_SOUND_RESAMPLE_H
#define NEAP_DATA_SOUND_RESAMPLE_H

#include <stdint.h>
#include <neap/status.h>

/*
 * Resamples n samples at rate `from` to *count = max(1, floor(n to / from)) samples at rate `to`,
 * at most 256 times as high. Gives *out, to be freed. 0, NEAP_EOVERFLOW, NEAP_EFORMAT or -ENOMEM.
 */
int neap__resample(
	float **out, int64_t *count, const float *samples, int64_t n, double from, double to);

struct neap__resampler;

/* From `from` to `to` Hz. 0 or -ENOMEM. */
int neap__resampler_new(struct neap__resampler **out, double from, double to);
/*
 * Takes the next n samples; sets *out and *count to those that follow from them, which are valid
 * until the next call and may be changed. 0, NEAP_EFORMAT or -ENOMEM.
 */
int neap__resampler_push(struct neap__resampler *resampler, const float *samples, int64_t n,
	float **out, int64_t *count);
/* The same of the samples that are left at the end of the sound. Or NEAP_EOVERFLOW. */
int neap__resampler_end(struct neap__resampler *resampler, float **out, int64_t *count);
void neap__resampler_free(struct neap__resampler *resampler); /* NULL: nothing */

#endif
