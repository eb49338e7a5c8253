/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scratch.h: a private file for records. An unnamed file has no name in its directory: only this
 * process can reach it, and it goes when it is closed. A kept file has a name, a header and a
 * lock, and outlives the process (scratch_kept.c).
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
	NEAP__SCRATCH_EITHER = 4, /* O_DIRECT where the file system has it */
};

struct neap__scratch {
	int fd;		 /* -1: not open */
	int direct;	 /* O_DIRECT */
	int in_memory;	 /* tmpfs or ramfs */
	uint64_t room;	 /* bytes free when it was opened */
	uint64_t device; /* number of the file system */
	char *directory; /* owned */
	char *name;	 /* owned path of a kept one; NULL: unnamed */
	uint64_t head;	 /* bytes of its header, before the records; unnamed: 0 */
	int existed;	 /* 1: a kept file that was there when it was opened */
};

/*
 * Opens one in directory `path`, or beside the existing file `path`. Refusals
 * (missing, in memory, no O_DIRECT) leave a detail line that says what to change.
 */
int neap__scratch_open(struct neap__scratch *scratch, const char *path, unsigned flags);
/* 1 if there is something of that name. */
int neap__scratch_exists(const char *path);
/*
 * The same under `name` in the directory: 0600, one process at a time, no link is
 * followed. A file that is there must be the user's and begin with our header; its
 * bytes are as they were left.
 */
int neap__scratch_open_kept(
	struct neap__scratch *scratch, const char *path, const char *name, unsigned flags);
/*
 * The name of a kept file: `base` and a suffix, which may be NULL. NEAP_EUSAGE where that is too
 * long, or has a '/' or a control character.
 */
#define NEAP__SCRATCH_NAME 40 /* bytes, the end included */
int neap__scratch_name(char name[NEAP__SCRATCH_NAME], const char *base, const char *suffix);
/* Flushes the file to the disk. */
int neap__scratch_sync(struct neap__scratch *scratch);
/*
 * Waits until the file system of a directory has done what it delayed: blocks of removed files
 * are discarded after its next commit, and the disk is busy meanwhile. For measurements.
 */
int neap__scratch_settle(const char *directory);
/* Removes the name of a kept file, which goes when it is closed. */
void neap__scratch_remove(struct neap__scratch *scratch);
/*
 * Makes the file at least `bytes` long, header included, and reserves its blocks where the file
 * system can. A longer file stays so: giving blocks back and taking new ones costs the time of
 * many transfers, when sweeps with different plans use a tier in turns.
 */
int neap__scratch_reserve(struct neap__scratch *scratch, uint64_t bytes);
/* Whole transfers. NEAP_ESHORT where the file ends early. */
int neap__scratch_write(
	struct neap__scratch *scratch, const void *from, size_t bytes, uint64_t offset);
int neap__scratch_read(struct neap__scratch *scratch, void *into, size_t bytes, uint64_t offset);
/* Sets the detail line of a failed transfer on the calling thread; returns `code`. */
int neap__scratch_explain(const struct neap__scratch *scratch, int write, int code);
int neap__scratch_truncate(struct neap__scratch *scratch, uint64_t bytes);
/* Bytes of it that are in the page cache. */
int neap__scratch_cached(const struct neap__scratch *scratch, uint64_t *bytes);
void neap__scratch_close(struct neap__scratch *scratch);

/* Within sys: the directory that a path means; the file system of an open file, and O_DIRECT. */
int neap__scratch_directory(char **directory, const char *path);
int neap__scratch_inspect(struct neap__scratch *scratch, unsigned flags);

#endif
