/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c: mappings, with large pages where they pay, and the numbers of /proc and of control
 * groups.
 */
#include "sys/memory.h"
#include "base/fail.h"
#include "base/show.h"
#include "sys/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

/* Bytes of a large page: fewer address look-ups, and fewer separate pieces for a disk to read. */
#define LARGE ((size_t)2 << 20)

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* since Linux 5.14 */
#endif

static atomic_uint_least64_t mapped; /* bytes, by neap__map_partly */

#define POPULATE_LEAST ((size_t)32 << 20)
#define POPULATE_PIECE ((size_t)4 << 20)

static void *map(size_t bytes)
{
	return mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

/*
 * Maps memory that begins with a large page; what is mapped around it is given back. A large page
 * is resident as a whole, so none reaches beyond the bytes that are used.
 */
static void *map_large(size_t bytes, size_t used)
{
	size_t more = LARGE - 4096;
	unsigned char *p = bytes + more < bytes ? MAP_FAILED : map(bytes + more);
	if (p == MAP_FAILED)
		return p;
	size_t before = -(uintptr_t)p % LARGE, end = (bytes + 4095) & ~(size_t)4095;
	if (before)
		munmap(p, before);
	if (before + end < bytes + more)
		munmap(p + before + end, bytes + more - before - end);
	madvise(p + before, used - used % LARGE, MADV_HUGEPAGE);
	return p + before;
}

static uint64_t whole_pages(size_t bytes)
{
	return ((uint64_t)(bytes ? bytes : 1) + 4095) & ~(uint64_t)4095;
}

int neap__map_pages(void **out, size_t bytes)
{
	return neap__map_partly(out, bytes, bytes);
}

int neap__map_partly(void **out, size_t bytes, size_t used)
{
	uint64_t total = used >= LARGE ? neap__memory_total() : 0;
	char needed[24], there[24];

	if (total && used > total)
		return neap__fail(-ENOMEM,
			"%zu bytes (%s) of memory are needed, but this machine has %llu bytes (%s)",
			used, neap__show_size(needed, used), (unsigned long long)total,
			neap__show_size(there, total));
	void *p = used >= LARGE ? map_large(bytes, used) : map(bytes ? bytes : 1);
	if (p == MAP_FAILED)
		return neap__fail_errno(errno, "cannot map %zu bytes of memory", bytes);
	*out = p;
	atomic_fetch_add(&mapped, whole_pages(bytes));
	return 0;
}

void neap__unmap_pages(void *pages, size_t bytes)
{
	if (!pages)
		return;
	munmap(pages, bytes ? bytes : 1);
	atomic_fetch_sub(&mapped, whole_pages(bytes));
}

struct neap__populate {
	pthread_t thread;
	unsigned char *pages;
	size_t bytes;
	atomic_int stop;
};

static void *populate(void *arg)
{
	struct neap__populate *x = arg;
	for (size_t at = 0; at < x->bytes && !atomic_load(&x->stop); at += POPULATE_PIECE) {
		size_t piece = x->bytes - at < POPULATE_PIECE ? x->bytes - at : POPULATE_PIECE;
		if (madvise(x->pages + at, piece, MADV_POPULATE_WRITE) != 0)
			break;
	}
	return NULL;
}

struct neap__populate *neap__populate_start(void *pages, size_t bytes)
{
	if (bytes < POPULATE_LEAST || neap__processors() < 2)
		return NULL;
	struct neap__populate *x = calloc(1, sizeof *x);
	if (!x)
		return NULL;
	x->pages = pages;
	x->bytes = bytes & ~(size_t)4095;
	if (pthread_create(&x->thread, NULL, populate, x) == 0)
		return x;
	free(x);
	return NULL;
}

void neap__populate_end(struct neap__populate *x)
{
	if (!x)
		return;
	atomic_store(&x->stop, 1);
	pthread_join(x->thread, NULL);
	free(x);
}

/* The value of "Key:   123 kB" in a /proc file, in bytes; 0 where absent. */
static uint64_t proc_kilobytes(const char *path, const char *key)
{
	char line[256];
	uint64_t kb = 0;
	FILE *f = fopen(path, "re");
	if (!f)
		return 0;
	while (fgets(line, sizeof line, f)) {
		if (strncmp(line, key, strlen(key)) == 0) {
			kb = strtoull(line + strlen(key), NULL, 10);
			break;
		}
	}
	fclose(f);
	return kb * 1024;
}

void neap__held(struct neap__held *held)
{
	held->files = proc_kilobytes("/proc/self/status", "RssFile:") +
		      proc_kilobytes("/proc/self/status", "RssShmem:");
	held->mapped = atomic_load(&mapped);
	held->heap = 0;
#ifdef __GLIBC__
	struct mallinfo2 heap = mallinfo2();
	held->heap = heap.arena + heap.hblkhd;
#endif
}

uint64_t neap__resident_peak(void)
{
	return proc_kilobytes("/proc/self/status", "VmHWM:");
}

static atomic_uint_least64_t most; /* of the marks that were lowered */

uint64_t neap__resident_most(void)
{
	uint64_t peak = neap__resident_peak(), before = atomic_load(&most);
	return peak > before ? peak : before;
}

int neap__resident_reset(void)
{
	atomic_store(&most, neap__resident_most());
#ifdef __GLIBC__
	malloc_trim(0); /* freed memory must not count */
#endif
	int fd = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int rc = write(fd, "5", 1) == 1 ? 0 : -errno;
	close(fd);
	return rc;
}

static int read_number(const char *path, uint64_t *out)
{
	char text[64] = "";
	FILE *f = fopen(path, "re");
	if (!f)
		return -1;
	char *got = fgets(text, sizeof text, f);
	fclose(f);
	if (!got || text[0] < '0' || text[0] > '9')
		return -1; /* "max", or empty */
	*out = strtoull(text, NULL, 10);
	return 0;
}

/* Control groups, versions 2 and 1: files of the limit and of the bytes in use. */
static const char *const groups[][2] = {
	{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"},
	{"/sys/fs/cgroup/memory/memory.limit_in_bytes",
		"/sys/fs/cgroup/memory/memory.usage_in_bytes"},
};
#define GROUPS (sizeof groups / sizeof groups[0])

uint64_t neap__memory_total(void)
{
	struct sysinfo info;
	uint64_t limit;
	uint64_t least = sysinfo(&info) == 0 ? (uint64_t)info.totalram * info.mem_unit : 0;

	for (size_t i = 0; i < GROUPS; i++)
		if (read_number(groups[i][0], &limit) == 0 && limit < least)
			least = limit;
	return least;
}

uint64_t neap__memory_free(void)
{
	uint64_t least = proc_kilobytes("/proc/meminfo", "MemAvailable:");

	for (size_t i = 0; i < GROUPS; i++) {
		uint64_t limit, used;
		if (read_number(groups[i][0], &limit) < 0 || read_number(groups[i][1], &used) < 0)
			continue;
		uint64_t left = limit > used ? limit - used : 0;
		if (left < least)
			least = left;
	}
	return least;
}
