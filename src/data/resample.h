/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NEAP_DATA_RESAMPLE_H
#define NEAP_DATA_RESAMPLE_H

#include <stdint.h>
#include <neap/status.h>

/*
 * n samples at rate `from` to *count samples at rate `to`, band-limited to the
 * lower rate: sinc interpolation under a Kaiser window (Smith, Gossett, ICASSP
 * 1984). Gives *out, to be freed. 0, NEAP_EOVERFLOW or -ENOMEM.
 */
NEAP_API int neap__resample(
	float **out, int64_t *count, const float *samples, int64_t n, double from, double to);

#endif
