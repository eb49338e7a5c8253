/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encoder.h: parts of the ear model that makes spikes from sound: its options, its sampling rate,
 * its level and its compression. The ear itself is in ear.h.
 */
#ifndef NEAP_DATA_SOUND_ENCODER_H
#define NEAP_DATA_SOUND_ENCODER_H

#include <math.h>
#include <neap/data.h>

#define NEAP__ENCODER_BASE_RATE 8000.0 /* Hz; pre-emphasis is given at this rate */
/* Of the sampling rate: the highest centre of a filter; resample.h keeps as much. */
#define NEAP__ENCODER_BAND 0.45

/* Puts defaults in place of zeros and checks what is left. NEAP_EUSAGE. */
int neap__encoder_settle(
	struct neap_encoder_options *settled, const struct neap_encoder_options *options);
/* The number of settings that are real numbers, and each of them with its name. */
int neap__encoder_numbers(void);
double *neap__encoder_number(struct neap_encoder_options *options, int index, const char **name);
/* Hz at which the model runs. Needs settled options. */
static inline double neap__encoder_rate(const struct neap_encoder_options *settled)
{
	return fmax(NEAP__ENCODER_BASE_RATE, settled->high / NEAP__ENCODER_BAND);
}
/* Inputs of the network: groups of `pool` channels, of which the last may be smaller. */
static inline int neap__encoder_inputs(const struct neap_encoder_options *settled)
{
	return (settled->channels - 1) / settled->pool + 1;
}
/* x_k <- max(0, x_k)^power, what an inner hair cell makes of the output of its filter. */
void neap__encoder_compress(float *x, int n, float power);
/* The largest --high, in Hz, for a sampling rate. */
double neap__encoder_highest(double rate);
/* The least sampling rate for a --high, both in Hz. */
double neap__encoder_least(double high);

/* 0, or NEAP_EUSAGE where recordings at `rate` Hz are not accepted. */
int neap__encoder_takes(const struct neap_encoder_options *settled, double rate);
/* 0, or NEAP_EFORMAT for a sample that is no number; samples[0] is number `first`. */
int neap__encoder_hears(const float *samples, int64_t n, int64_t first);

/*
 * Emphasis of high frequencies at the encoder's rate: x_i <- x_i - share x_{i-1}, over pieces of a
 * sound; `before` is the sample before the next piece.
 */
struct neap__emphasis {
	float share, before;
};
struct neap__emphasis neap__emphasis_of(const struct neap_encoder_options *settled);
void neap__emphasise(struct neap__emphasis *emphasis, float *x, int64_t n);
/* What a sound of this root mean square, after the emphasis, is multiplied by; 0: it is silent. */
float neap__encoder_scale(const struct neap_encoder_options *settled, double rms);

#endif
