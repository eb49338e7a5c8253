/* SPDX-License-Identifier: Apache-2.0 */
/*
 * resample.h: sampling rates of recordings, changed by libsamplerate: sinc interpolation,
 * band-limited to the lower rate (Smith, Gossett, ICASSP 1984). Its medium converter passes 90%
 * of the lower rate's band, which is as much as the ear model uses, with 121 dB above its errors.
 */
#ifndef NEAP_DATA_RESAMPLE_H
#define NEAP_DATA_RESAMPLE_H

#include <stdint.h>
#include <neap/status.h>

/*
 * Resamples n samples at rate `from` to *count = max(1, floor(n to / from)) samples at rate `to`,
 * at most 256 times as high. Gives *out, to be freed. 0, NEAP_EOVERFLOW, NEAP_EFORMAT or -ENOMEM.
 */
int neap__resample(
	float **out, int64_t *count, const float *samples, int64_t n, double from, double to);

#endif
