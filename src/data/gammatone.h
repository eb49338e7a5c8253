/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gammatone.h: a bank of fourth-order complex gammatone filters, spaced evenly on
 * the scale of equivalent rectangular bandwidths (Glasberg and Moore, Hearing
 * Research 47, 1990): E = 21.4 log10(1 + 0.00437 f), ERB = 24.7 (4.37 f/1000 + 1),
 * bandwidth 1.019 ERB. Each filter is four one-pole stages in a row.
 */
#ifndef NEAP_DATA_GAMMATONE_H
#define NEAP_DATA_GAMMATONE_H

#include <neap/status.h>

struct neap__gammatone {
	int channels;
	float *pole_re, *pole_im, *gain; /* [channels] */
	float *re, *im;			 /* [4 * channels]: stages, one behind the other */
	void *memory;
};

/* 0 or -ENOMEM. */
NEAP_API int neap__gammatone_init(
	struct neap__gammatone *bank, int channels, double low, double high, double rate);
NEAP_API void neap__gammatone_fini(struct neap__gammatone *bank);
/* Centre of a channel in Hz. */
NEAP_API double neap__gammatone_centre(int channel, int channels, double low, double high);
/* One sample in; out[channels] the real parts, 0 dB at the centre. */
NEAP_API void neap__gammatone_step(struct neap__gammatone *bank, float x, float *out);

#endif
