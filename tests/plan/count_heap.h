/* SPDX-License-Identifier: Apache-2.0 */
/*
 * count_heap.h: the program's allocator counted, below libneap: bytes held and the
 * most there were. Not under AddressSanitizer, where both stay 0. One file a program.
 */
#ifndef NEAP_COUNT_HEAP_H
#define NEAP_COUNT_HEAP_H

#include "test.h"
#include <malloc.h>

#define COUNTED (!TEST_SANITIZED)

static size_t held, most;

#if COUNTED
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *old, size_t size);
void __libc_free(void *block);

static void *count(void *block)
{
	if (block)
		held += malloc_usable_size(block);
	most = held > most ? held : most;
	return block;
}

NEAP_API void *malloc(size_t size)
{
	return count(__libc_malloc(size));
}

NEAP_API void *calloc(size_t n, size_t size)
{
	return count(__libc_calloc(n, size));
}

NEAP_API void *realloc(void *old, size_t size)
{
	size_t before = old ? malloc_usable_size(old) : 0;
	void *block = __libc_realloc(old, size);
	if (block || size == 0)
		held -= before;
	return count(block);
}

NEAP_API void free(void *block)
{
	if (block)
		held -= malloc_usable_size(block);
	__libc_free(block);
}
#endif

#endif
