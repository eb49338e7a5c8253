/* SPDX-License-Identifier: Apache-2.0 */
#include "data/resample.h"
#include "base/fail.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Zero crossings a side, table entries between two of them. */
enum { CROSSINGS = 32, DENSITY = 256, ENTRIES = CROSSINGS * DENSITY };
#define PI 3.141592653589793
#define KAISER_BETA 9.0
#define ROLL_OFF 0.94 /* of the lower Nyquist frequency: where the cut begins */

/* Modified Bessel function of order 0, by its series. */
static double bessel(double x)
{
	double sum = 1, term = 1;
	for (int k = 1; k < 64; k++) {
		term *= (x / (2 * k)) * (x / (2 * k));
		sum += term;
	}
	return sum;
}

static void make_table(double *table)
{
	for (int i = 0; i <= ENTRIES; i++) {
		double u = (double)i / DENSITY, w = (double)i / ENTRIES;
		double sinc = i == 0 ? 1 : sin(PI * u) / (PI * u);
		table[i] = sinc * bessel(KAISER_BETA * sqrt(1 - w * w)) / bessel(KAISER_BETA);
	}
	table[ENTRIES + 1] = 0;
}

/* The signal at `at` (in input samples), with the kernel stretched to `cut` of the input's band. */
static double value_at(const float *x, int64_t n, double at, double cut, const double *table)
{
	double reach = CROSSINGS / cut, sum = 0;
	int64_t first = (int64_t)ceil(at - reach), last = (int64_t)floor(at + reach);
	first = first < 0 ? 0 : first;
	last = last > n - 1 ? n - 1 : last;
	for (int64_t i = first; i <= last; i++) {
		double u = fabs((double)i - at) * cut * DENSITY;
		int k = (int)u;
		sum += x[i] * (table[k] + (u - k) * (table[k + 1] - table[k]));
	}
	return sum * cut;
}

int neap__resample(
	float **out, int64_t *count, const float *samples, int64_t n, double from, double to)
{
	double wanted = floor((double)n * to / from + 1e-9);
	if (!(wanted < 1e11))
		return neap__fail(NEAP_EOVERFLOW, "%.3g samples are too many", wanted);
	int64_t m = wanted < 1 ? 1 : (int64_t)wanted;
	float *y = malloc((size_t)m * sizeof *y);
	double *table = malloc((ENTRIES + 2) * sizeof *table);
	if (!y || !table) {
		free(y);
		free(table);
		return neap__fail_errno(ENOMEM, "resampling");
	}
	if (fabs(from - to) < 1e-9 * to && m == n) {
		memcpy(y, samples, (size_t)n * sizeof *y);
	} else {
		double cut = ROLL_OFF * (to < from ? to / from : 1);
		make_table(table);
		for (int64_t i = 0; i < m; i++)
			y[i] = (float)value_at(samples, n, (double)i * from / to, cut, table);
	}
	free(table);
	*out = y;
	*count = m;
	return 0;
}
