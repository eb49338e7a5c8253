/* SPDX-License-Identifier: Apache-2.0 */
/* vlen_part.c: where a row of variable length lies in the file, and reading a range of it. */
#include "data/formats/h5.h"
#include "base/checked.h"
#include "base/fail.h"

#include <string.h>

int neap__vlen_place(struct neap__vlen *vlen, int64_t row, struct neap__vlen_place *place)
{
	const unsigned char *reference = vlen->reference + (size_t)row * vlen->reference_bytes;
	size_t address_bytes = vlen->file->address_bytes, length_bytes = vlen->file->length_bytes;
	uint64_t at = neap__h5_little(reference + 4, address_bytes), end;
	uint64_t number = neap__h5_little(reference + 4 + address_bytes, 4);
	size_t head = 8 + length_bytes;
	unsigned char object[16];

	*place = (struct neap__vlen_place){0, neap__vlen_length(vlen, row)};
	if (place->length == 0)
		return 0;
	NEAP_TRY(neap__vlen_read_at(vlen, object, head, at));
	uint64_t size = neap__h5_little(object + 8, length_bytes);
	if (memcmp(object, "GCOL\1", 5) != 0 || size < 16 || size > vlen->file->bytes - at)
		return neap__vlen_damaged(vlen, "no heap where a row should be");
	end = at + size;
	for (at += head; end - at >= head;) {
		NEAP_TRY(neap__vlen_read_at(vlen, object, head, at));
		uint64_t found = neap__h5_little(object, 2), room = end - at - head;
		size = neap__h5_little(object + 8, length_bytes);
		if (found == 0)
			break; /* the free space at the end */
		if (size > room)
			return neap__vlen_damaged(vlen, "a heap object is larger than its heap");
		if (found == number) {
			if (size < (uint64_t)place->length * vlen->base_bytes)
				return neap__vlen_damaged(
					vlen, "a row is longer than what is stored of it");
			place->offset = at + head;
			return 0;
		}
		uint64_t step = head + neap__round_up(size, 8);
		if (step > end - at)
			break;
		at += step;
	}
	return neap__vlen_damaged(vlen, "a row is missing from its heap");
}

int neap__vlen_part(const struct neap__vlen *vlen, const struct neap__vlen_place *place,
	uint32_t first, uint32_t count, hid_t type, void *out)
{
	if (count == 0)
		return 0;
	if (first > place->length || count > place->length - first)
		return neap__vlen_damaged(vlen, "a row ends early");
	NEAP_TRY(neap__vlen_read_at(vlen, out, (size_t)count * vlen->base_bytes,
		place->offset + (uint64_t)first * vlen->base_bytes));
	if (H5Tconvert(vlen->base, type, count, out, NULL, H5P_DEFAULT) < 0)
		return neap__fail(NEAP_EFORMAT, "'%s': '%s' has a type that cannot be converted",
			vlen->file->path, vlen->name);
	return 0;
}
