/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_npy.c: arrays of NumPy, alone (.npy) and in archives (.npz, beginning "PK"). */
#include "data/npy/npz.h"
#include "fuzz_files.h"

#include <string.h>

static void read_text(struct neap__npy *array)
{
	char **text;
	int count, rc = neap__npy_strings(array, 1000, &text, &count);
	fuzz_line(rc);
	for (int i = 0; rc == 0 && i < count; i++)
		free(text[i]);
	if (rc == 0)
		free(text);
}

static void read_array(struct neap__npy *array, size_t size)
{
	const struct neap__npy_header *h = neap__npy_shape(array);
	double value[64];
	int64_t whole[64], n = h->count < 64 ? h->count : 64;
	/* Deflate packs 1032 bytes into one at best. */
	FUZZ_CHECK(h->count <= (int64_t)size * 1032, "%lld elements", (long long)h->count);
	for (int f = 0; f < h->fields; f++) {
		FUZZ_CHECK(h->field[f].offset + h->field[f].bytes <= h->item_bytes, "field %d", f);
		fuzz_line(neap__npy_doubles(array, f, 0, n, value));
		fuzz_line(neap__npy_doubles(array, f, h->count - n, n, value));
		fuzz_line(neap__npy_integers(array, f, 0, n, whole));
	}
	read_text(array);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *path = fuzz_path("array");
	struct neap__npz *archive;
	struct neap__npy *array;

	fuzz_write(path, data, size);
	if (size < 2 || memcmp(data, "PK", 2) != 0) {
		int rc = neap__npy_open(&array, path);
		fuzz_line(rc);
		if (rc == 0) {
			read_array(array, size);
			neap__npy_close(array);
		}
		return 0;
	}
	int rc = neap__npz_open(&archive, path);
	fuzz_line(rc);
	for (int64_t i = 0; rc == 0 && i < neap__npz_arrays(archive); i++) {
		int got = neap__npz_array(&array, archive, neap__npz_name(archive, i));
		fuzz_line(got);
		if (got == 0) {
			read_array(array, size);
			neap__npy_close(array);
		}
	}
	if (rc == 0)
		neap__npz_close(archive);
	return 0;
}
