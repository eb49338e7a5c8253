/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_memory.c: memory of the fake device. An allocation is filled with a pattern and lies between
 * pages without access, close to the second one; it has no access itself but while work is done.
 */
#include "fake_streams.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ALLOCATIONS 4096
#define PAGE 4096
#define ALIGNED 256 /* what the driver promises */
#define PATTERN 0xA5

struct allocation {
	unsigned char *mapped, *at;
	size_t pages, bytes; /* with those around it; of the caller */
};

static struct allocation device[ALLOCATIONS], pinned[ALLOCATIONS];
static int opened;

static int protect(const struct allocation *a, int access)
{
	return mprotect(a->mapped + PAGE, a->pages - 2 * PAGE, access);
}

static void protect_all(int access)
{
	for (int i = 0; i < ALLOCATIONS; i++)
		if (device[i].bytes && protect(&device[i], access) != 0)
			abort();
}

void fake_memory_open(void)
{
	if (!opened)
		protect_all(PROT_READ | PROT_WRITE);
	opened = 1;
}

void fake_memory_close(void)
{
	if (opened)
		protect_all(PROT_NONE);
	opened = 0;
}

static struct allocation *vacant(struct allocation *table)
{
	for (int i = 0; i < ALLOCATIONS; i++)
		if (!table[i].bytes)
			return &table[i];
	return NULL;
}

uint64_t fake_memory_used(void)
{
	uint64_t used = 0;
	for (int i = 0; i < ALLOCATIONS; i++)
		used += device[i].bytes;
	return used;
}

int fake_memory_alloc(uint64_t *at, size_t bytes)
{
	const struct fake_driver *driver = fake_driver();
	struct allocation *a = vacant(device);
	size_t used = (bytes + driver->misalign + ALIGNED - 1) / ALIGNED * ALIGNED;
	if (!a || bytes == 0 || bytes > driver->total_bytes - fake_memory_used())
		return -1;
	a->pages = (used + PAGE - 1) / PAGE * PAGE + 2 * PAGE;
	a->mapped = mmap(NULL, a->pages, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (a->mapped == MAP_FAILED)
		return -1;
	a->at = a->mapped + a->pages - PAGE - used + driver->misalign;
	a->bytes = bytes;
	protect(a, PROT_READ | PROT_WRITE);
	memset(a->mapped + PAGE, PATTERN, a->pages - 2 * PAGE);
	if (!opened)
		protect(a, PROT_NONE);
	*at = (uint64_t)(uintptr_t)a->at;
	return 0;
}

int fake_memory_free(uint64_t at)
{
	for (int i = 0; i < ALLOCATIONS; i++)
		if (device[i].bytes && (uint64_t)(uintptr_t)device[i].at == at) {
			munmap(device[i].mapped, device[i].pages);
			device[i].bytes = 0;
			return 0;
		}
	return -1;
}

int fake_memory_holds(const void *at, size_t bytes)
{
	const unsigned char *p = at;
	for (int i = 0; i < ALLOCATIONS; i++) {
		const struct allocation *a = &device[i];
		if (a->bytes && p >= a->at && p <= a->at + a->bytes)
			return bytes <= (size_t)(a->at + a->bytes - p);
	}
	return fake_driver()->foreign && fake_memory_is_host(at, bytes);
}

int fake_memory_is_host(const void *at, size_t bytes)
{
	const unsigned char *p = at;
	for (int i = 0; i < ALLOCATIONS; i++) {
		const struct allocation *a = &device[i];
		if (a->bytes && p < a->mapped + a->pages && p + bytes > a->mapped)
			return 0;
	}
	return 1;
}

int fake_pinned_alloc(void **at, size_t bytes)
{
	struct allocation *a = vacant(pinned);
	if (!a || bytes == 0)
		return -1;
	a->at = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);
	if (!a->at)
		return -1;
	a->bytes = bytes;
	memset(a->at, PATTERN, bytes);
	*at = a->at;
	return 0;
}

int fake_pinned_free(void *at)
{
	for (int i = 0; i < ALLOCATIONS; i++)
		if (pinned[i].bytes && pinned[i].at == at) {
			free(at);
			pinned[i].bytes = 0;
			return 0;
		}
	return -1;
}

void fake_driver_damage_pinned(uint64_t offset)
{
	struct allocation *largest = &pinned[0];
	for (int i = 0; i < ALLOCATIONS; i++)
		if (pinned[i].bytes > largest->bytes)
			largest = &pinned[i];
	largest->at[offset] ^= 0xff;
}
