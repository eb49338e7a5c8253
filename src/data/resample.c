/* SPDX-License-Identifier: Apache-2.0 */
/* resample.c: the call of libsamplerate, and ratios beyond its reach. */
#include "data/resample.h"
#include "base/fail.h"

#include <errno.h>
#include <math.h>
#include <samplerate.h>
#include <stdlib.h>
#include <string.h>

#define RATIO_MOST 256.0 /* of libsamplerate, up and down */

/* Gives the first m samples at `ratio` of the rate; what the library leaves out stays 0. */
static int convert(float **out, int64_t m, const float *samples, int64_t n, double ratio)
{
	SRC_DATA data = {.data_in = samples,
		.data_out = calloc((size_t)m, sizeof(float)),
		.input_frames = n,
		.output_frames = m,
		.src_ratio = ratio};
	*out = data.data_out;
	if (!*out)
		return neap__fail_errno(ENOMEM, "resampling");
	int error = src_simple(&data, SRC_SINC_MEDIUM_QUALITY, 1);
	if (!error)
		return 0;
	free(*out);
	return neap__fail(
		NEAP_EFORMAT, "resampling to %g of the rate: %s", ratio, src_strerror(error));
}

int neap__resample(
	float **out, int64_t *count, const float *samples, int64_t n, double from, double to)
{
	double ratio = to / from, wanted = fmax(1, floor((double)n * to / from + 1e-9));
	if (!(wanted < 1e11))
		return neap__fail(NEAP_EOVERFLOW, "%.3g samples are too many", wanted);
	*count = (int64_t)wanted;
	if (fabs(from - to) < 1e-9 * to && *count == n) {
		*out = malloc((size_t)n * sizeof **out);
		if (!*out)
			return neap__fail_errno(ENOMEM, "resampling");
		memcpy(*out, samples, (size_t)n * sizeof **out);
		return 0;
	}
	if (ratio >= 1 / RATIO_MOST)
		return convert(out, *count, samples, n, ratio);
	float *between;
	int64_t m = n / (int64_t)RATIO_MOST + 1;
	NEAP_TRY(convert(&between, m, samples, n, 1 / RATIO_MOST));
	int rc = convert(out, *count, between, m, ratio * RATIO_MOST);
	free(between);
	return rc;
}
