/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_input.c: an input as a text, and as a number. */
#include "fuzz.h"

#include <string.h>

uint64_t fuzz_seed(const uint8_t *data, size_t size)
{
	uint64_t h = 14695981039346656037u; /* FNV-1a */
	for (size_t i = 0; i < size; i++)
		h = (h ^ data[i]) * 1099511628211u;
	return h ^ h >> 29;
}

char *fuzz_text(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	FUZZ_CHECK(text, "out of memory");
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	return text;
}
