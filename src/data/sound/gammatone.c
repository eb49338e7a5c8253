/* SPDX-License-Identifier: Apache-2.0 */
/* gammatone.c: poles and gains of the filters; one sample through all channels. */
#include "data/sound/gammatone.h"
#include "base/fail.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { STAGES = 4 };
#define TWO_PI 6.283185307179586

double neap__gammatone_centre(int channel, int channels, double low, double high)
{
	double from = 21.4 * log10(1 + 0.00437 * low), to = 21.4 * log10(1 + 0.00437 * high);
	double e = channels > 1 ? from + (to - from) * channel / (channels - 1) : (from + to) / 2;
	return (pow(10, e / 21.4) - 1) / 0.00437;
}

int neap__gammatone_init(
	struct neap__gammatone *bank, int channels, double low, double high, double rate)
{
	size_t n = (size_t)channels;
	float *memory = calloc(n * (3 + 2 * STAGES), sizeof *memory);
	if (!memory)
		return neap__fail_errno(ENOMEM, "%d filters", channels);
	*bank = (struct neap__gammatone){.channels = channels,
		.pole_re = memory,
		.pole_im = memory + n,
		.gain = memory + 2 * n,
		.re = memory + 3 * n,
		.im = memory + (3 + STAGES) * n,
		.memory = memory};
	for (int k = 0; k < channels; k++) {
		double f = neap__gammatone_centre(k, channels, low, high);
		double erb = 24.7 * (4.37 * f / 1000 + 1);
		double radius = exp(-TWO_PI * 1.019 * erb / rate), angle = TWO_PI * f / rate;
		bank->pole_re[k] = (float)(radius * cos(angle));
		bank->pole_im[k] = (float)(radius * sin(angle));
		/* A real tone holds half its amplitude at +f. */
		bank->gain[k] = (float)(2 * pow(1 - radius, STAGES));
	}
	return 0;
}

void neap__gammatone_fini(struct neap__gammatone *bank)
{
	free(bank->memory);
	bank->memory = NULL;
}

/* Channels lie side by side, so that the compiler can use vector instructions. */
static void stage(int channels, const float *restrict pole_re, const float *restrict pole_im,
	const float *restrict in_re, const float *restrict in_im, float *restrict re,
	float *restrict im)
{
	for (int k = 0; k < channels; k++) {
		float a = in_re[k] + pole_re[k] * re[k] - pole_im[k] * im[k];
		float b = in_im[k] + pole_re[k] * im[k] + pole_im[k] * re[k];
		re[k] = a;
		im[k] = b;
	}
}

static void first_stage(int channels, const float *restrict pole_re, const float *restrict pole_im,
	const float *restrict gain, float x, float *restrict re, float *restrict im)
{
	for (int k = 0; k < channels; k++) {
		float a = gain[k] * x + pole_re[k] * re[k] - pole_im[k] * im[k];
		float b = pole_re[k] * im[k] + pole_im[k] * re[k];
		re[k] = a;
		im[k] = b;
	}
}

void neap__gammatone_step(struct neap__gammatone *bank, float x, float *out)
{
	int n = bank->channels;
	float *re = bank->re, *im = bank->im;
	first_stage(n, bank->pole_re, bank->pole_im, bank->gain, x, re, im);
	for (int s = 1; s < STAGES; s++)
		stage(n, bank->pole_re, bank->pole_im, re + (s - 1) * n, im + (s - 1) * n,
			re + s * n, im + s * n);
	for (int k = 0; k < n; k++)
		out[k] = re[(STAGES - 1) * n + k];
}
