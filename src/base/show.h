/* SPDX-License-Identifier: Apache-2.0 */
/*
 * show.h: sizes, numbers and times as reports write them: three digits, no exponent, in the C
 * locale. Each function fills `room` and returns it.
 */
#ifndef NEAP_BASE_SHOW_H
#define NEAP_BASE_SHOW_H

#include <stdint.h>

const char *neap__show_size(char room[24], uint64_t bytes);  /* 16 MiB, 999 KiB */
const char *neap__show_least(char room[24], uint64_t bytes); /* the same, rounded up */
const char *neap__show_time(char room[24], double seconds);  /* 3.2 ms, 1:05 min, 1:02:03 */
const char *neap__show_number(char room[24], double value);  /* 0.25, 12.5, 31400 */

#endif
