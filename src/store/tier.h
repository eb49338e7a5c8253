/* SPDX-License-Identifier: Apache-2.0 */
/* tier.h: what the engines and the sweep see of a tier beyond neap/tier.h. */
#ifndef NEAP_STORE_TIER_H
#define NEAP_STORE_TIER_H

#include <neap/tier.h>

/* Requests an engine takes before the first is waited for: a sweep's, and its repairs. */
#define NEAP__REQUESTS (NEAP__TICKETS_OF_A_SCHEDULE + 64)
#define NEAP__TICKETS_OF_A_SCHEDULE 256

struct neap_tier {
	struct neap_tier_ops ops;
	void *self;
	struct neap_tier_spec spec; /* capacity in bytes of the medium */
	char about[320];
	/* As formatted last; bytes == 0: not at all. */
	uint64_t bytes;
	int64_t places;
	void *staging;
	/* Optional [bytes]: what a record of `bytes` takes of the capacity. */
	uint64_t (*footprint)(void *self, uint64_t bytes);
	/*
	 * Optional: damages what the medium holds, for tests. Flips the bits `mask`
	 * of a byte of the record at `place`; mask 0 cuts the medium short there.
	 */
	int (*poke)(void *self, int64_t place, uint64_t offset, unsigned mask);
};

/* 1 when the last format gives room for such records with this staging. */
NEAP_API int neap__tier_fits(
	const struct neap_tier *tier, uint64_t bytes, int64_t places, const void *staging);

NEAP_API int neap__tier_poke(struct neap_tier *tier, int64_t place, uint64_t offset, unsigned mask);

#endif
