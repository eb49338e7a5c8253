/* SPDX-License-Identifier: Apache-2.0 */
/* record.c: makes and checks trailers. */
#include "store/records/record.h"
#include "base/fail.h"

#include <inttypes.h>

#define MAGIC UINT64_C(0x316472637061656e) /* "neapcrd1" */

void neap__record_seal(struct neap__trailer *trailer, uint64_t epoch, uint64_t tag, int64_t place,
	uint64_t bytes, uint64_t hash)
{
	*trailer = (struct neap__trailer){
		.magic = MAGIC,
		.epoch = epoch,
		.tag = tag,
		.place = (uint64_t)place,
		.bytes = bytes,
		.hash = hash,
	};
}

int neap__record_check(const struct neap__trailer *trailer, uint64_t epoch, uint64_t tag,
	int64_t place, uint64_t bytes, uint64_t hash)
{
	if (trailer->magic != MAGIC || trailer->epoch != epoch || trailer->tag != tag ||
		trailer->place != (uint64_t)place || trailer->bytes != bytes)
		return neap__fail(NEAP_ELOST,
			"place %" PRId64 " of a slow tier does not hold the record sought (%" PRIu64
			" bytes, tag %" PRIx64 ")",
			place, bytes, tag);
	if (trailer->hash != hash)
		return neap__fail(NEAP_ECORRUPT,
			"the record at place %" PRId64
			" of a slow tier changed: checksum %016" PRIx64 ", not %016" PRIx64,
			place, hash, trailer->hash);
	return 0;
}
