/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encoder.h: parts of the ear model that makes spikes from sound: its options, its sampling rate
 * and its compression. The model itself is in encoder.c.
 */
#ifndef NEAP_DATA_ENCODER_H
#define NEAP_DATA_ENCODER_H

#include <neap/data.h>

/* Puts defaults in place of zeros and checks what is left. NEAP_EUSAGE. */
int neap__encoder_settle(
	struct neap_encoder_options *settled, const struct neap_encoder_options *options);
/* The number of settings that are real numbers, and each of them with its name. */
int neap__encoder_numbers(void);
double *neap__encoder_number(struct neap_encoder_options *options, int index, const char **name);
/* Hz at which the model runs. Needs settled options. */
double neap__encoder_rate(const struct neap_encoder_options *settled);
/* x_k <- max(0, x_k)^power, what an inner hair cell makes of the output of its filter. */
void neap__encoder_compress(float *x, int n, float power);

#endif
