/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vlen_index.c: an index of the heap collections that the rows of a data set refer to. A collection
 * is "GCOL" {version 1, 3 unused, size}, then objects {number 2, uses 2, 4 unused, size, bytes
 * padded to 8} (HDF5 File Format Specification 3.0, III.E).
 */
#include "data/formats/h5.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW ((uint64_t)65536) /* bytes that are read at a time */

struct heap_object {
	uint64_t offset, size; /* of its bytes */
	uint32_t number;
};

struct heap_collection {
	uint64_t address;
	int64_t first, count; /* its objects, sorted by number; first -1: not walked yet */
	const char *wrong;    /* what ended the walk early */
};

struct neap__heap_index {
	struct heap_collection *collection; /* sorted by address */
	int64_t collections;
	struct heap_object *object;
	int64_t objects, room;
	uint64_t walked; /* bytes of all collections so far */

	/* What was read last. */
	unsigned char window[65536];
	uint64_t window_at, window_bytes;
};

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

/* By number; of equal ones the first. */
static int by_number(const void *a, const void *b)
{
	const struct heap_object *x = a, *y = b;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

static uint64_t address_of(const struct neap__vlen *vlen, int64_t row)
{
	return neap__h5_little(vlen->reference + (size_t)row * vlen->reference_bytes + 4,
		vlen->file->address_bytes);
}

int neap__heap_index_new(struct neap__vlen *vlen)
{
	struct neap__heap_index *x = calloc(1, sizeof *x);
	uint64_t *address = malloc((size_t)(vlen->rows ? vlen->rows : 1) * sizeof *address);
	int64_t n = 0, distinct = 0;
	vlen->index = x;
	for (int64_t row = 0; address && row < vlen->rows; row++)
		if (neap__vlen_length(vlen, row) > 0)
			address[n++] = address_of(vlen, row);
	if (address)
		qsort(address, (size_t)n, sizeof *address, by_value);
	for (int64_t i = 0; i < n; i++)
		if (i == 0 || address[i] != address[i - 1])
			address[distinct++] = address[i];
	if (x && address)
		x->collection = calloc((size_t)distinct + 1, sizeof *x->collection);
	if (!x || !x->collection) {
		free(address);
		return neap__fail_errno(ENOMEM, "'%s'", vlen->file->path);
	}
	x->collections = distinct;
	for (int64_t i = 0; i < distinct; i++)
		x->collection[i] = (struct heap_collection){.address = address[i], .first = -1};
	free(address);
	return 0;
}

void neap__heap_index_free(struct neap__heap_index *index)
{
	if (!index)
		return;
	free(index->collection);
	free(index->object);
	free(index);
}

/* `bytes` of the file at `at`, through the window, which goes no further than `end`. */
static int look(const struct neap__vlen *vlen, const unsigned char **out, uint64_t at,
	uint64_t bytes, uint64_t end)
{
	struct neap__heap_index *x = vlen->index;
	if (at < x->window_at || at + bytes > x->window_at + x->window_bytes) {
		uint64_t more = end > at && end - at < WINDOW ? end - at : WINDOW;
		x->window_bytes = 0;
		if (more < bytes)
			more = bytes;
		NEAP_TRY(neap__vlen_read_at(vlen, x->window, (size_t)more, at));
		x->window_at = at;
		x->window_bytes = more;
	}
	*out = x->window + (at - x->window_at);
	return 0;
}

static int add_object(struct neap__vlen *vlen, uint32_t number, uint64_t offset, uint64_t size)
{
	struct neap__heap_index *x = vlen->index;
	if (neap__grow(&x->object, &x->room, x->objects + 1, sizeof *x->object) < 0)
		return neap__fail_errno(ENOMEM, "'%s'", vlen->file->path);
	x->object[x->objects++] = (struct heap_object){offset, size, number};
	return 0;
}

static int walk(struct neap__vlen *vlen, struct heap_collection *c)
{
	struct neap__heap_index *x = vlen->index;
	size_t length_bytes = vlen->file->length_bytes, head = 8 + length_bytes;
	const unsigned char *bytes;
	if (c->address > vlen->file->bytes)
		return neap__vlen_damaged(vlen, "a reference points outside the file");
	NEAP_TRY(look(vlen, &bytes, c->address, head, c->address + head));
	uint64_t size = neap__h5_little(bytes + 8, length_bytes);
	if (memcmp(bytes, "GCOL\1", 5) != 0 || size < 16 || size > vlen->file->bytes - c->address)
		return neap__vlen_damaged(vlen, "no heap where a row should be");
	x->walked += size;
	if (x->walked > vlen->file->bytes)
		return neap__vlen_damaged(vlen, "its heaps overlap");
	uint64_t at = c->address + head, end = c->address + size;
	c->first = x->objects;
	while (end - at >= head) {
		NEAP_TRY(look(vlen, &bytes, at, head, end));
		uint32_t number = (uint32_t)neap__h5_little(bytes, 2);
		uint64_t room = end - at - head;
		size = neap__h5_little(bytes + 8, length_bytes);
		if (number == 0)
			break; /* the free space at the end */
		if (size > room) {
			c->wrong = "a heap object is larger than its heap";
			break;
		}
		NEAP_TRY(add_object(vlen, number, at + head, size));
		uint64_t step = head + neap__round_up(size, 8);
		if (step > end - at)
			break;
		at += step;
	}
	c->count = x->objects - c->first;
	if (c->count > 0)
		qsort(x->object + c->first, (size_t)c->count, sizeof *x->object, by_number);
	return 0;
}

static int by_address(const void *key, const void *row)
{
	const uint64_t *address = key;
	const struct heap_collection *c = row;
	return (*address > c->address) - (*address < c->address);
}

int neap__heap_index_find(struct neap__vlen *vlen, uint64_t address, unsigned number,
	uint64_t *offset, uint64_t *size)
{
	struct neap__heap_index *x = vlen->index;
	struct heap_collection *c =
		bsearch(&address, x->collection, (size_t)x->collections, sizeof *c, by_address);
	if (!c)
		return neap__vlen_damaged(vlen, "no heap where a row should be");
	if (c->first < 0) {
		int rc = walk(vlen, c);
		if (rc < 0) {
			c->first = -1;
			return rc;
		}
	}
	int64_t low = c->first, high = c->first + c->count;
	while (low < high) { /* the first of that number */
		int64_t middle = low + (high - low) / 2;
		if (x->object[middle].number < number)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == c->first + c->count || x->object[low].number != number)
		return neap__vlen_damaged(
			vlen, c->wrong ? c->wrong : "a row is missing from its heap");
	*offset = x->object[low].offset;
	*size = x->object[low].size;
	return 0;
}
