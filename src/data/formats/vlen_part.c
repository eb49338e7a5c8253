/* SPDX-License-Identifier: Apache-2.0 */
/* vlen_part.c: reads a range of a row of variable length. */
#include "data/formats/h5.h"
#include "base/fail.h"

int neap__vlen_part(const struct neap__vlen *vlen, const struct neap__vlen_place *place,
	uint32_t first, uint32_t count, void *out)
{
	if (count == 0)
		return 0;
	if (first > place->length || count > place->length - first)
		return neap__vlen_damaged(vlen, "a row ends early");
	NEAP_TRY(neap__vlen_read_at(vlen, out, (size_t)count * vlen->base_bytes,
		place->offset + (uint64_t)first * vlen->base_bytes));
	return neap__vlen_numbers(vlen, count, out, out);
}
