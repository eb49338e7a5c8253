/* SPDX-License-Identifier: Apache-2.0 */
/*
 * units.h: numbers with units, as people write them in options, tier lists, nets and data sets. The
 * one place that reads them, so that a size or a time is written alike everywhere. Each function
 * reads the whole text, in the C locale, and returns 0; or -1, with the value as it was, where
 * the text is no such value. Blanks, hexadecimal numbers, "nan" and "inf" are none.
 */
#ifndef NEAP_BASE_UNITS_H
#define NEAP_BASE_UNITS_H

#include <stdint.h>

/* 0.5, -3, 1e-4 */
int neap__units_number(double *number, const char *text);
/* A whole number: 1000, 1e6; with K, M or G, 1000 to the power of 1 to 3: 10K */
int neap__units_count(int64_t *number, const char *text);
/* One of these, of `least` to `most`; `whole`: a whole number. */
int neap__units_within(double *number, const char *text, int whole, double least, double most);
/* Bytes: 4096, 4096B; with K, M, G, T or P, 1024 to the power of 1 to 5: 64M, 64MB, 64MiB, 1.5G */
int neap__units_size(uint64_t *bytes, const char *text);
/* Seconds, 0 or more: 2, 2s, 20ms, 5us, 7ns, 1min, 1h */
int neap__units_time(double *seconds, const char *text);
/* Events a second, 0 or more: 20Hz, 0.2kHz, 20/s; a number alone is one of 1/ms: 0.02 */
int neap__units_frequency(double *hertz, const char *text);
/* Bytes a second, above 0: a size, with /s or without, 500M, 0.5B/s; inf is 0, which stands for
 * a transfer that takes no time */
int neap__units_rate(double *rate, const char *text);

/* The time constant, in seconds, that leaves `decay` (above 0, below 1) of a number after dt. */
double neap__units_tau(double decay, double dt, int euler);

#endif
