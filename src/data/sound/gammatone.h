/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gammatone.h: a bank of fourth-order complex gammatone filters, as the inner ear has them. Their
 * centres f (Hz) are spaced evenly on the scale of equivalent rectangular bandwidths (Glasberg and
 * Moore, Hearing Research 47, 1990): E = 21.4 log10(1 + 0.00437 f), with bandwidths of 1.019 ERB,
 * ERB = 24.7 (4.37 f/1000 + 1) Hz. Each filter is four one-pole filters in a row.
 */
#ifndef NEAP_DATA_SOUND_GAMMATONE_H
#define NEAP_DATA_SOUND_GAMMATONE_H

#include <neap/status.h>

struct neap__gammatone {
	int channels;
	float *pole_re, *pole_im, *gain; /* [channels] */
	float *re, *im; /* [4 * channels]: of the four filters, one behind the other */
	void *memory;
};

/* 0 or -ENOMEM. */
int neap__gammatone_init(
	struct neap__gammatone *bank, int channels, double low, double high, double rate);
void neap__gammatone_fini(struct neap__gammatone *bank);
/* Returns the centre of a channel in Hz. */
double neap__gammatone_centre(int channel, int channels, double low, double high);
/* Filters one sample; out[channels] gets the real parts, 0 dB at the centres. */
void neap__gammatone_step(struct neap__gammatone *bank, float x, float *out);

#endif
