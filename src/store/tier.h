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
	uint64_t tape_bytes; /* of records of tapes */
	int64_t tape_places;
	int holds; /* records that an earlier process may want back: not to be overwritten */
	/* Optional [bytes]: what a record of `bytes` takes of the capacity. */
	uint64_t (*footprint)(void *self, uint64_t bytes);
	/*
	 * Optional: damages what the medium holds, for tests. Flips the bits `mask`
	 * of a byte of the record at `place`; mask 0 cuts the medium short there.
	 */
	int (*poke)(void *self, int tapes, int64_t place, uint64_t offset, unsigned mask);
};

/* Records of one size: states, or tapes. */
struct neap__records {
	uint64_t bytes;
	int64_t places;
};

/* 1 when the last format gives room for such records with this staging. */
NEAP_API int neap__tier_fits(const struct neap_tier *tier, struct neap__records states,
	struct neap__records tapes, const void *staging);
/* What they take of the medium; its size is spec.capacity. Saturates. */
NEAP_API uint64_t neap__tier_needs(
	const struct neap_tier *tier, struct neap__records states, struct neap__records tapes);

/* neap_tier_ops.sync and adopt; nothing where the engine has none. */
NEAP_API int neap__tier_sync(struct neap_tier *tier);
NEAP_API int neap__tier_adopt(struct neap_tier *tier, uint64_t epoch);

/* tapes: of a record of tapes, else of a state's. */
NEAP_API int neap__tier_poke(
	struct neap_tier *tier, int tapes, int64_t place, uint64_t offset, unsigned mask);

#endif
