/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ear.h: the ear of the encoder, which keeps its state between two pieces of a sound: gammatone
 * filters, compression r = max(0, x)^c, lateral inhibition r_k - a mean(r near k), and a leaky
 * integrate-and-fire neuron a channel.
 */
#ifndef NEAP_DATA_SOUND_EAR_H
#define NEAP_DATA_SOUND_EAR_H

#include "data/dataset.h"
#include "data/sound/gammatone.h"

struct neap__ear {
	struct neap__gammatone bank;
	int channels, refractory, span, pool;
	float decay, drive, inhibition, compression;
	float *value, *potential, *sum; /* [channels], sum [channels + 1] */
	int32_t *rest;			/* [channels]: samples of refractory time left */
	float *share;			/* [channels]: inhibition / channels in reach */
	double rate;			/* Hz */
	int64_t heard;			/* samples so far */
	struct neap__event_buffer out;	/* spikes: seconds since the first sample, inputs */
};

/* Needs settled options. 0 or -ENOMEM; free it in both cases. */
int neap__ear_init(struct neap__ear *ear, const struct neap_encoder_options *settled);
/*
 * Hears n samples at the encoder's rate, of the level that it wants, and adds their spikes to
 * ear->out in the order of time, then inputs. How a sound is cut changes no spike. 0 or -ENOMEM.
 */
int neap__ear_listen(struct neap__ear *ear, const float *x, int64_t n);
void neap__ear_free(struct neap__ear *ear);

#endif
