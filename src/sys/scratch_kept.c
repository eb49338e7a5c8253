/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scratch_kept.c: kept files, which outlive the process. The header is one page that never
 * changes, compared byte by byte. The lock belongs to the open file, so it goes with the process,
 * however that ends.
 */
#include "sys/scratch.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/print.h"
#include "sys/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct kept_head {
	char magic[8];
	uint32_t version;
	uint32_t order; /* 0x01020304 as this machine writes it */
	uint32_t page;
	char name[44];
};
_Static_assert(sizeof(struct kept_head) == 64, "part of the file's layout");

static void make_head(struct kept_head *head, const char *name)
{
	memset(head, 0, sizeof *head);
	memcpy(head->magic, "neapkept", sizeof head->magic);
	head->version = 1;
	head->order = 0x01020304;
	head->page = NEAP__PAGE;
	neap__print(head->name, sizeof head->name, "%s", name);
}

static int refuse(const struct neap__scratch *scratch, const char *why)
{
	return neap__fail(NEAP_EUSAGE, "'%s' %s", scratch->name, why);
}

/* Refuses files that others own or reach; makes the file private. */
static int check_owner(const struct neap__scratch *scratch, const struct stat *st)
{
	if (!S_ISREG(st->st_mode))
		return refuse(scratch, "is not a regular file. Choose another directory");
	if (st->st_uid != geteuid() || st->st_nlink > 1)
		return refuse(scratch, "belongs to another user or has other hard links. Choose "
				       "another directory");
	if (st->st_mode & 077 && fchmod(scratch->fd, 0600) < 0)
		return neap__fail_errno(errno, "cannot make '%s' private", scratch->name);
	return 0;
}

/* A file that was there must have our header. */
static int check_head(struct neap__scratch *scratch, const char *name)
{
	struct kept_head there, ours;
	make_head(&ours, name);
	if (pread(scratch->fd, &there, sizeof there, 0) != (ssize_t)sizeof there ||
		memcmp(there.magic, ours.magic, sizeof ours.magic) != 0)
		return refuse(scratch, "exists and was not written by neap. Move it away, or "
				       "choose another directory");
	if (memcmp(&there, &ours, sizeof ours) != 0)
		return refuse(scratch, "was written by another version of neap or on another "
				       "machine. Remove it, or choose another directory");
	scratch->existed = 1;
	return 0;
}

/* Flushes the name, so that it outlives the machine's death; some file systems refuse. */
static void sync_name(const struct neap__scratch *scratch)
{
	int fd = open(scratch->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		(void)fsync(fd);
		close(fd);
	}
}

/* Writes the header of a file that is new, or was never written to; removes it on failure. */
static int write_head(struct neap__scratch *scratch, const char *name)
{
	char page[NEAP__PAGE] = {0};
	struct kept_head head;
	make_head(&head, name);
	memcpy(page, &head, sizeof head);
	ssize_t n = pwrite(scratch->fd, page, sizeof page, 0);
	if (n != (ssize_t)sizeof page) {
		int err = n < 0 ? errno : ENOSPC;
		neap__scratch_remove(scratch);
		return neap__fail_errno(err, "cannot write '%s'", scratch->name);
	}
	/* First the header, then the name: a file of that name without one would be refused. */
	(void)fdatasync(scratch->fd);
	sync_name(scratch);
	return 0;
}

/* 1 where the power failed before the header was there. */
static int never_written(const struct neap__scratch *scratch)
{
	static const struct kept_head none;
	struct kept_head there;

	ssize_t n = pread(scratch->fd, &there, sizeof there, 0);
	return n >= 0 && memcmp(&there, &none, (size_t)n) == 0;
}

/* 1 when the file we locked is still the one of that name. */
static int still_there(const struct neap__scratch *scratch, struct stat *st)
{
	struct stat named;
	return fstat(scratch->fd, st) == 0 && lstat(scratch->name, &named) == 0 &&
	       named.st_ino == st->st_ino && named.st_dev == st->st_dev;
}

/* Transfers in flight hold the lock of a process that was killed for a moment: up to 1 s here. */
static int lock(const struct neap__scratch *scratch)
{
	for (int i = 0; i < 100; i++) {
		if (flock(scratch->fd, LOCK_EX | LOCK_NB) == 0)
			return 0;
		if (errno != EWOULDBLOCK)
			return 0; /* a file system without locks */
		neap__sleep(0.01);
	}
	return -1;
}

static int open_locked(struct neap__scratch *scratch, struct stat *st)
{
	for (int i = 0; i < 16; i++) {
		/* O_NONBLOCK: where a pipe has the name, open must not hang. */
		scratch->fd = open(scratch->name,
			O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
		if (scratch->fd < 0 && errno == ELOOP)
			return refuse(scratch, "is a symbolic link, which is not followed. Remove "
					       "it, or choose another directory");
		if (scratch->fd < 0)
			return neap__fail_errno(errno, "cannot open '%s'", scratch->name);
		if (lock(scratch) < 0)
			return refuse(
				scratch, "is in use by another process. Choose another directory");
		if (still_there(scratch, st))
			return 0;
		close(scratch->fd); /* its last user removed it meanwhile */
		scratch->fd = -1;
	}
	return refuse(scratch,
		"appears and disappears: another process changes it. Choose another directory");
}

int neap__scratch_name(char name[NEAP__SCRATCH_NAME], const char *base, const char *suffix)
{
	const char *given = suffix ? suffix : "";
	int plain = strlen(base) + strlen(given) < NEAP__SCRATCH_NAME;
	for (const char *at = given; plain && *at; at++)
		plain = *at != '/' && (unsigned char)*at > ' ' && *at != 0x7f;
	if (!plain)
		return neap__fail(NEAP_EUSAGE,
			"a suffix of %s is at most %d characters, without blanks and '/'", base,
			(int)(NEAP__SCRATCH_NAME - 1 - strlen(base)));
	neap__print(name, NEAP__SCRATCH_NAME, "%s%s", base, given);
	return 0;
}

int neap__scratch_open_kept(
	struct neap__scratch *scratch, const char *path, const char *name, unsigned flags)
{
	struct stat st;
	*scratch = (struct neap__scratch){.fd = -1};
	NEAP_TRY(neap__scratch_directory(&scratch->directory, path));
	int rc = asprintf(&scratch->name, "%s/%s", scratch->directory, name);
	if (rc < 0) {
		scratch->name = NULL;
		rc = neap__fail_errno(ENOMEM, "'%s'", path);
	}
	if (rc >= 0)
		rc = open_locked(scratch, &st);
	if (rc == 0)
		rc = check_owner(scratch, &st);
	if (rc == 0)
		rc = never_written(scratch) ? write_head(scratch, name) : check_head(scratch, name);
	if (rc == 0) {
		rc = neap__scratch_inspect(scratch, flags);
		if (rc < 0 && !scratch->existed)
			neap__scratch_remove(scratch);
	}
	if (rc < 0) {
		neap__scratch_close(scratch);
		return rc;
	}
	scratch->head = NEAP__PAGE;
	scratch->room = neap__sat_add(scratch->room, (uint64_t)st.st_blocks * 512);
	return 0;
}

int neap__scratch_sync(struct neap__scratch *scratch)
{
	int rc;
	do
		rc = fdatasync(scratch->fd);
	while (rc < 0 && errno == EINTR);
	return rc == 0 ? 0
		       : neap__fail_errno(errno, "cannot flush a file in '%s'", scratch->directory);
}

void neap__scratch_remove(struct neap__scratch *scratch)
{
	if (scratch->name)
		(void)unlink(scratch->name);
}
