/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_safetensors.c: model files. Every tensor lies within the file and is as large as it says. */
#include "fuzz_files.h"
#include "train/safetensors.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct neap__safetensors file;
	/* A copy, so that a byte beyond the end is seen. */
	uint8_t *copy = malloc(size ? size : 1);
	FUZZ_CHECK(copy, "no memory");
	if (size)
		memcpy(copy, data, size);
	int rc = neap__safetensors_parse(&file, copy, size);
	fuzz_line(rc);
	for (int i = 0; rc == 0 && i < file.tensors; i++) {
		const struct neap__file_tensor *t = &file.tensor[i];
		uint64_t count = 1;
		for (int d = 0; d < t->dims; d++)
			count *= t->shape[d];
		FUZZ_CHECK(count * neap__dtype_bytes(t->dtype) == t->bytes, "%s", t->name);
		const uint8_t *at = t->data;
		FUZZ_CHECK(t->bytes == 0 || (at >= copy && at + t->bytes <= copy + size), "%s",
			t->name);
	}
	for (int i = 0; rc == 0 && i < file.pairs; i++)
		FUZZ_CHECK(file.pair[i].key && file.pair[i].value, "pair %d", i);
	neap__safetensors_free(&file);
	free(copy);
	return 0;
}
