/* SPDX-License-Identifier: Apache-2.0 */
/* bump_alloc.h: cuts pieces off a block; with base NULL only adds up what they take. */
#ifndef NEAP_BASE_BUMP_ALLOC_H
#define NEAP_BASE_BUMP_ALLOC_H

#include <stddef.h>
#include <stdint.h>
#include "base/checked.h"

struct neap__pieces {
	unsigned char *base;
	uint64_t used;
};

/* Each on a line of the cache. */
static inline void *neap__piece(struct neap__pieces *from, uint64_t count, uint64_t size)
{
	void *piece = from->base ? from->base + from->used : NULL;
	from->used = neap__sat_add(from->used, neap__sat_mul(count, size));
	from->used = neap__round_up(from->used, 64);
	return piece;
}

#endif
