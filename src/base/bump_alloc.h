/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bump_alloc.h: takes pieces off a block of memory, one after the other. With base NULL it only
 * adds up their bytes, so that one function both sizes a block and divides it.
 */
#ifndef NEAP_BASE_BUMP_ALLOC_H
#define NEAP_BASE_BUMP_ALLOC_H

#include <stddef.h>
#include <stdint.h>
#include "base/checked.h"

struct neap__bump {
	unsigned char *base;
	uint64_t used;
};

/* The next piece, of count * size bytes, aligned to 64 bytes (a cache line) within the block. */
static inline void *neap__bump_take(struct neap__bump *from, uint64_t count, uint64_t size)
{
	void *piece = from->base ? from->base + from->used : NULL;
	from->used = neap__sat_add(from->used, neap__sat_mul(count, size));
	from->used = neap__round_up(from->used, 64);
	return piece;
}

#endif
