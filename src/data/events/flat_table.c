/* SPDX-License-Identifier: Apache-2.0 */
/* flat_table.c: positions in FlatBuffers, each checked (flat_table.h). */
#include "data/events/flat_table.h"
#include "data/events/event_words.h"

#include <string.h>

enum { OFFSET = 4 /* bytes of an offset and of a size */, ENTRY = 2 /* of a field's place */ };

/* Are there `width` bytes from `at` on? */
static int inside(const struct neap__flat_table *t, size_t at, size_t width)
{
	return width <= t->bytes && at <= t->bytes - width;
}

int neap__flat_root(
	struct neap__flat_table *t, const unsigned char *data, size_t bytes, const char *identifier)
{
	*t = (struct neap__flat_table){0};
	if (bytes < OFFSET || neap__word32(data) > bytes - OFFSET)
		return -1;
	t->data = data + OFFSET;
	t->bytes = neap__word32(data);
	if (!inside(t, 0, 2 * (size_t)OFFSET))
		return -1;
	if (memcmp(t->data + OFFSET, identifier, OFFSET) != 0)
		return 0;
	t->at = neap__word32(t->data);
	return inside(t, t->at, OFFSET) ? 1 : -1;
}

int neap__flat_field(
	const struct neap__flat_table *t, int index, size_t width, const unsigned char **out)
{
	/* A table begins with how far in front of it the places of its fields are listed, behind
	   the size of that list and of the table. */
	int64_t list = (int64_t)t->at - (int32_t)neap__word32(t->data + t->at);
	size_t entry = ENTRY * (2 + (size_t)index);
	if (list < 0 || !inside(t, (size_t)list, ENTRY))
		return -1;
	size_t size = neap__word16(t->data + list);
	if (!inside(t, (size_t)list, size))
		return -1;
	size_t place = size >= entry + ENTRY ? neap__word16(t->data + list + entry) : 0;
	if (place == 0)
		return 0;
	if (!inside(t, t->at + place, width))
		return -1;
	*out = t->data + t->at + place;
	return 1;
}

int neap__flat_vector(const struct neap__flat_table *t, int index, size_t width,
	const unsigned char **out, size_t *count)
{
	const unsigned char *field;
	int there = neap__flat_field(t, index, OFFSET, &field);
	if (there <= 0)
		return there;
	size_t at = (size_t)(field - t->data) + neap__word32(field);
	if (!inside(t, at, OFFSET))
		return -1;
	*count = neap__word32(t->data + at);
	if (*count > t->bytes / width || !inside(t, at + OFFSET, *count * width))
		return -1;
	*out = t->data + at + OFFSET;
	return 1;
}
