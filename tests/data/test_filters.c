/* SPDX-License-Identifier: Apache-2.0 */
/* What the auditory model is made of: its filters, resampling and compression. */
#include "spikes.h"
#include "data/sound/encoder.h"
#include "data/sound/gammatone.h"
#include "data/sound/resample.h"

#define PI 3.141592653589793

static void a_tone_finds_its_channel(void **state)
{
	(void)state;
	for (int k = 4; k < 60; k += 11) {
		struct neap__gammatone bank;
		float out[64], peak[64] = {0};
		double f = neap__gammatone_centre(k, 64, 80, 3600);
		ok(neap__gammatone_init(&bank, 64, 80, 3600, 16000));
		for (int i = 0; i < 16000; i++) {
			neap__gammatone_step(&bank, (float)sin(2 * PI * f * i / 16000), out);
			for (int c = 0; i > 8000 && c < 64; c++)
				peak[c] = out[c] > peak[c] ? out[c] : peak[c];
		}
		neap__gammatone_fini(&bank);
		int best = 0;
		for (int c = 1; c < 64; c++)
			best = peak[c] > peak[best] ? c : best;
		assert_int_equal(best, k);
		assert_true(peak[k] > 0.97f && peak[k] < 1.03f);
		/* Half an ERB-scale octave away little is left. */
		assert_true(peak[k < 32 ? k + 16 : k - 16] < 0.1f);
	}
	assert_true(fabs(neap__gammatone_centre(0, 128, 80, 3600) - 80) < 1e-9);
	assert_true(fabs(neap__gammatone_centre(127, 128, 80, 3600) - 3600) < 1e-9);
}

/*
 * The impulse response of a channel is that of four equal poles, C(n + 3, 3) r^n cos(n a), and its
 * bandwidth 1.019 ERB(f), ERB(f) = 24.7 (4.37 f / 1000 + 1) (Glasberg and Moore, 1990).
 */
static void filters_have_their_shape(void **state)
{
	/* Equal parts of the ERB scale from 80 to 3600 Hz. */
	static const double centre[] = {
		80, 350.6749059410373, 858.5813127460694, 1811.639436759212, 3600};
	struct neap__gammatone bank;
	float out[5];
	(void)state;
	ok(neap__gammatone_init(&bank, 5, 80, 3600, 16000));
	for (int n = 0; n < 400; n++) {
		neap__gammatone_step(&bank, n == 0, out);
		for (int c = 0; c < 5; c++) {
			double f = centre[c], erb = 24.7 + 0.107939 * f;
			double r = exp(-2 * PI * 1.019 * erb / 16000), a = 2 * PI * f / 16000;
			double ways = (n + 1.0) * (n + 2) * (n + 3) / 6;
			double want = 2 * pow(1 - r, 4) * ways * pow(r, n) * cos(n * a);
			if (fabs(out[c] - want) >
				1e-3 * 2 * pow(1 - r, 4) * ways * pow(r, n) + 1e-9)
				fail_msg("channel %d, sample %d: %g, not %g", c, n, out[c], want);
		}
		assert_true(fabs(neap__gammatone_centre(n % 5, 5, 80, 3600) / centre[n % 5] - 1) <
			    1e-9);
	}
	neap__gammatone_fini(&bank);
}

/* Just below half the new rate a tone stays; just above it nothing is left. */
static void resampling_has_a_sharp_edge(void **state)
{
	static const struct {
		double hertz, least, most;
	} tones[] = {{3000, 0.999, 1.001}, {3450, 0.99, 1.001}, {4450, 0, 1e-4}, {6000, 0, 1e-4}};
	(void)state;
	for (int k = 0; k < 4; k++) {
		float x[16000], *y;
		int64_t m;
		double peak = 0;
		for (int i = 0; i < 16000; i++)
			x[i] = (float)sin(2 * PI * tones[k].hertz * i / 16000);
		ok(neap__resample(&y, &m, x, 16000, 16000, 8000));
		for (int64_t i = 500; i < m - 500; i++)
			peak = fmax(peak, fabsf(y[i]));
		if (peak < tones[k].least || peak > tones[k].most)
			fail_msg("%g Hz: %g", tones[k].hertz, peak);
		free(y);
	}
}

static void resampling_keeps_tones(void **state)
{
	(void)state;
	static const double rates[] = {8000, 11025, 16000, 22050, 44100, 48000, 96000, 6000};
	for (int r = 0; r < 8; r++) {
		int64_t n = (int64_t)rates[r] / 2, m;
		float *x = malloc((size_t)n * sizeof *x), *y;
		for (int64_t i = 0; i < n; i++)
			x[i] = (float)sin(2 * PI * 1000 * (double)i / rates[r]);
		ok(neap__resample(&y, &m, x, n, rates[r], 8000));
		assert_true(llabs(m - 4000) <= 1);
		double worst = 0;
		for (int64_t i = 200; i < m - 200; i++)
			worst = fmax(worst, fabs(y[i] - sin(2 * PI * 1000 * (double)i / 8000)));
		if (worst > 2e-4)
			fail_msg("%g Hz: %g", rates[r], worst);
		free(y);
		/* A tone above the new band goes. */
		if (rates[r] > 16000) {
			for (int64_t i = 0; i < n; i++)
				x[i] = (float)sin(2 * PI * 5000 * (double)i / rates[r]);
			ok(neap__resample(&y, &m, x, n, rates[r], 8000));
			for (int64_t i = 200; i < m - 200; i++)
				assert_true(fabsf(y[i]) < 1e-3f);
			free(y);
		}
		free(x);
	}
}

/* Ratios that one call of the library does not reach, and single samples. */
static void resampling_reaches_far(void **state)
{
	(void)state;
	int64_t n = 200000, m;
	float *x = malloc((size_t)n * sizeof *x), *y;
	for (int64_t i = 0; i < n; i++)
		x[i] = (float)sin(2 * PI * 1000 * (double)i / 1e7);
	ok(neap__resample(&y, &m, x, n, 1e7, 8000));
	assert_int_equal(m, 160);
	for (int64_t i = 60; i < 100; i++)
		assert_true(fabs(y[i] - sin(2 * PI * 1000 * (double)i / 8000)) < 2e-4);
	free(y);
	ok(neap__resample(&y, &m, x, 1, 100, 8000));
	assert_int_equal(m, 80);
	free(y);
	ok(neap__resample(&y, &m, x, 1, 44100, 8000));
	assert_int_equal(m, 1);
	free(y);
	free(x);
}

/* Of the whole range of levels, to the precision of a float. */
static void compression_is_a_power(void **state)
{
	static const float powers[] = {0.1f, 0.3f, 0.5f, 1, 2.5f};
	float x[64], y[64];
	(void)state;
	for (int p = 0; p < 5; p++)
		for (int i = 0; i < 100; i++) {
			for (int k = 0; k < 64; k++) /* within one octave after the other */
				y[k] = x[k] = ldexpf(1 + (float)k / 64, i - 60);
			y[7] = x[7] = -x[7];
			y[9] = x[9] = 0;
			neap__encoder_compress(y, 64, powers[p]);
			for (int k = 0; k < 64; k++) {
				double want = x[k] > 0 ? pow(x[k], powers[p]) : 0;
				if (!(fabs(y[k] - want) <= 1e-6 * want + 1e-44))
					fail_msg("%g to the power %g: %.9g, not %.9g", x[k],
						powers[p], y[k], want);
			}
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tone_finds_its_channel),
		cmocka_unit_test(filters_have_their_shape),
		cmocka_unit_test(resampling_has_a_sharp_edge),
		cmocka_unit_test(resampling_keeps_tones),
		cmocka_unit_test(resampling_reaches_far),
		cmocka_unit_test(compression_is_a_power),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
