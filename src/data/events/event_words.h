/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_words.h: files of events that consist of words of one size, read in pieces of bounded size;
 * and the header of Prophesee's files: lines "% KEY VALUE", of which a line "% end" is the last.
 */
#ifndef NEAP_DATA_EVENTS_EVENT_WORDS_H
#define NEAP_DATA_EVENTS_EVENT_WORDS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <neap/status.h>

/* Calls take for each word of the rest of the file. 0, the negative code of take, NEAP_EFORMAT if
   the last word is cut, or -EIO. */
int neap__event_words(FILE *file, const char *path, size_t bytes,
	int (*take)(void *user, const unsigned char *word), void *user);

/* What the header of a DAT or RAW file specifies. */
struct neap__prophesee {
	int width, height; /* of the sensor; 0: not specified */
	int version;	   /* of DAT; 0: not specified */
	char format[16];   /* of RAW: "EVT2", "EVT21", "EVT3", or another name; "": not specified */
	int swapped;	   /* 1: the halves of the 64-bit words of EVT21 are swapped ("legacy") */
};

/* Reads the header, which may be empty, and stops behind it. 0, NEAP_EFORMAT or -errno. */
int neap__prophesee_header(struct neap__prophesee *header, FILE *file, const char *path);

/* Numbers, least significant byte first. */
static inline uint32_t neap__word16(const unsigned char *p)
{
	return p[0] | (uint32_t)p[1] << 8;
}
static inline uint32_t neap__word32(const unsigned char *p)
{
	return neap__word16(p) | neap__word16(p + 2) << 16;
}
static inline uint64_t neap__word64(const unsigned char *p)
{
	return neap__word32(p) | (uint64_t)neap__word32(p + 4) << 32;
}

#endif
