/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scratch_cache.c: what measurements need of scratch files: how much of a file is in the page cache
 * (mincore over a mapping of it), and a wait until the file system is at rest.
 */
#include "sys/scratch.h"
#include "base/fail.h"
#include "sys/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define REST 0.3 /* seconds: discards follow the commit, and nothing tells when they end */
#define WINDOW (UINT64_C(256) << 20) /* bytes mapped at a time: 64 KiB of answers */

static int count(const struct neap__scratch *scratch, uint64_t at, uint64_t bytes, uint64_t *pages)
{
	unsigned char *there = malloc(WINDOW / NEAP__PAGE);
	if (!there)
		return -ENOMEM;
	void *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, scratch->fd, (off_t)at);
	int rc = map == MAP_FAILED || mincore(map, bytes, there) < 0 ? -errno : 0;
	if (map != MAP_FAILED)
		munmap(map, bytes);
	for (uint64_t i = 0; rc == 0 && i * NEAP__PAGE < bytes; i++)
		*pages += there[i] & 1;
	free(there);
	return rc;
}

int neap__scratch_cached(const struct neap__scratch *scratch, uint64_t *bytes)
{
	struct stat st;
	uint64_t pages = 0;
	int rc = fstat(scratch->fd, &st) < 0 ? -errno : 0;
	for (uint64_t at = 0; rc == 0 && at < (uint64_t)st.st_size; at += WINDOW) {
		uint64_t left = (uint64_t)st.st_size - at;
		rc = count(scratch, at, left < WINDOW ? left : WINDOW, &pages);
	}
	*bytes = pages * NEAP__PAGE;
	return rc < 0 ? neap__fail_errno(
				-rc, "cannot look at the page cache of '%s'", scratch->directory)
		      : 0;
}

int neap__scratch_settle(const char *directory)
{
	int fd = open(directory, O_RDONLY | O_CLOEXEC);
	int err = fd < 0 || syncfs(fd) < 0 ? errno : 0;
	if (fd >= 0)
		close(fd);
	if (err)
		return neap__fail_errno(err, "cannot settle the file system of '%s'", directory);
	neap__sleep(REST);
	return 0;
}
