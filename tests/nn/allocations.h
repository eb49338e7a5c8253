/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allocations.h: counts every allocation of the process, by replacing the C library's functions
 * with others that call them. One file of a program includes it.
 */
#ifndef NEAP_TEST_ALLOCATIONS_H
#define NEAP_TEST_ALLOCATIONS_H

#include <malloc.h>
#include <stdatomic.h>
#include <stdlib.h>

static atomic_long allocation_count;

static inline long allocations(void)
{
	return atomic_load(&allocation_count);
}

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZER_OWNS_MALLOC
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZER_OWNS_MALLOC
#endif

#ifndef SANITIZER_OWNS_MALLOC
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *old, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);

#define COUNTED __attribute__((visibility("default")))

COUNTED void *malloc(size_t bytes)
{
	atomic_fetch_add(&allocation_count, 1);
	return __libc_malloc(bytes);
}

COUNTED void *calloc(size_t count, size_t bytes)
{
	atomic_fetch_add(&allocation_count, 1);
	return __libc_calloc(count, bytes);
}

COUNTED void *realloc(void *old, size_t bytes)
{
	atomic_fetch_add(&allocation_count, 1);
	return __libc_realloc(old, bytes);
}

COUNTED void *aligned_alloc(size_t alignment, size_t bytes)
{
	atomic_fetch_add(&allocation_count, 1);
	return __libc_memalign(alignment, bytes);
}
#endif

/* 1 when the counter works here: it must see an allocation made by a library. */
static inline int allocations_counted(void)
{
	long before = allocations();
	char *volatile copy = strdup("counted"); /* not to be optimized away */
	free(copy);
	return allocations() > before;
}

#endif
