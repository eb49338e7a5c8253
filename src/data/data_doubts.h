/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data_doubts.h: lines about what is probably a mistake in data that can be encoded, and the names
 * of the first few recordings that they are about.
 */
#ifndef NEAP_DATA_DATA_DOUBTS_H
#define NEAP_DATA_DATA_DOUBTS_H

#include <stdint.h>

/* Calls `tell`, if it is not NULL, with a line of at most NEAP__DETAIL_BYTES. */
void neap__doubt(void (*tell)(void *user, const char *line), void *user, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* The number of recordings, and the names of the first of them: "'a.wav', 'b.wav', ...". */
struct neap__first_names {
	int64_t count;
	char text[200];
};
void neap__first_names_add(struct neap__first_names *names, const char *name);

#endif
