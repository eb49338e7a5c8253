/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record.h: a record on a medium: the payload, then a trailer that says what the record is. A
 * reader takes no byte of a record whose trailer and hash were not checked.
 */
#ifndef NEAP_STORE_RECORD_H
#define NEAP_STORE_RECORD_H

#include <stdint.h>
#include <xxhash.h>
#include <neap/status.h>

struct neap__trailer {
	uint64_t magic;
	uint64_t epoch; /* of the format that the record was written under */
	uint64_t tag;
	uint64_t place;
	uint64_t bytes; /* of the payload */
	uint64_t hash;	/* XXH3, 64 bits, of the payload */
	uint64_t reserved[2];
};
_Static_assert(sizeof(struct neap__trailer) == 64, "part of the medium's layout");

/* Makes the trailer of a payload whose hash is known. */
void neap__record_seal(struct neap__trailer *trailer, uint64_t epoch, uint64_t tag, int64_t place,
	uint64_t bytes, uint64_t hash);

/* Adds bytes to the hash of a payload. */
void neap__record_hash(XXH3_state_t *state, const void *data, size_t bytes);

/* The same for processors with AVX2, where XXH3 is compiled in. */
void neap__record_hash_avx2(XXH3_state_t *state, const void *data, size_t bytes);

/* 0, NEAP_ELOST: another record, or none; NEAP_ECORRUPT: this record, with another payload. */
int neap__record_check(const struct neap__trailer *trailer, uint64_t epoch, uint64_t tag,
	int64_t place, uint64_t bytes, uint64_t hash);

#endif
