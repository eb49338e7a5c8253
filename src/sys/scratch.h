/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scratch.h: an unnamed private file for records: it has no name in its
 * directory, only this process can reach it, and it goes when it is closed.
 */
#ifndef NEAP_SYS_SCRATCH_H
#define NEAP_SYS_SCRATCH_H

#include <stddef.h>
#include <stdint.h>
#include <neap/status.h>

#define NEAP__PAGE 4096 /* offsets, lengths and addresses of direct transfers */

enum neap__scratch_flags {
	NEAP__SCRATCH_CACHED = 1, /* through the page cache, not O_DIRECT */
	NEAP__SCRATCH_MEMORY = 2, /* a file system in memory will do; it is never direct */
};

struct neap__scratch {
	int fd;		 /* -1: not open */
	int direct;	 /* O_DIRECT */
	int in_memory;	 /* tmpfs or ramfs */
	uint64_t room;	 /* bytes free when it was opened */
	char *directory; /* owned */
};

/*
 * Opens one in directory `path`, or beside the existing file `path`. Refusals
 * (missing, in memory, no O_DIRECT) leave a detail line that names the mend.
 */
NEAP_API int neap__scratch_open(struct neap__scratch *scratch, const char *path, unsigned flags);
/* Makes it exactly `bytes` long, blocks reserved where the file system can. */
NEAP_API int neap__scratch_reserve(struct neap__scratch *scratch, uint64_t bytes);
/* Whole transfers. NEAP_ESHORT where the file ends early. */
NEAP_API int neap__scratch_write(
	struct neap__scratch *scratch, const void *from, size_t bytes, uint64_t offset);
NEAP_API int neap__scratch_read(
	struct neap__scratch *scratch, void *into, size_t bytes, uint64_t offset);
NEAP_API int neap__scratch_truncate(struct neap__scratch *scratch, uint64_t bytes);
NEAP_API void neap__scratch_close(struct neap__scratch *scratch);

#endif
