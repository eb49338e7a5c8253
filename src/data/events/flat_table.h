/* SPDX-License-Identifier: Apache-2.0 */
/*
 * flat_table.h: reads tables of FlatBuffers (https://flatbuffers.dev/internals) in memory, as far
 * as AEDAT 4 needs them. Every position is checked against the size of the buffer.
 */
#ifndef NEAP_DATA_EVENTS_FLAT_TABLE_H
#define NEAP_DATA_EVENTS_FLAT_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct neap__flat_table {
	const unsigned char *data; /* borrowed: the buffer, behind the size in front of it */
	size_t bytes, at;	   /* of the buffer; where the table begins */
};

/*
 * The root table of a buffer with its size in front, 4 bytes, and with the identifier of 4
 * characters. 1, 0 if the identifier is another one, or -1 if the buffer is damaged.
 */
int neap__flat_root(struct neap__flat_table *table, const unsigned char *data, size_t bytes,
	const char *identifier);
/* Where the field `index` of `width` bytes is: 1; 0 if it has its default; or -1, damaged. */
int neap__flat_field(
	const struct neap__flat_table *table, int index, size_t width, const unsigned char **out);
/* The elements of a vector of structs of `width` bytes, or of the characters of a text: as above.
 */
int neap__flat_vector(const struct neap__flat_table *table, int index, size_t width,
	const unsigned char **out, size_t *count);

#endif
