/* SPDX-License-Identifier: Apache-2.0 */
/* scratch.c: unnamed scratch files; reading, writing and reserving both kinds. */
#include "sys/scratch.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/checked.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* The directory meant by `path`: itself, or that of the file it names. */
int neap__scratch_directory(char **out, const char *path)
{
	struct stat st;
	if (path[0] == '\0')
		return neap__fail(NEAP_EUSAGE, "the directory for slow memory is empty");
	if (stat(path, &st) < 0)
		return neap__fail(-errno,
			"cannot use '%s' as a directory for slow memory: %s. Create it (mkdir), or "
			"choose another directory",
			path, neap__error_text(errno));
	if (!S_ISDIR(st.st_mode) && !S_ISREG(st.st_mode))
		return neap__fail(NEAP_EUSAGE,
			"'%s' is neither a directory nor a regular file. Choose a directory for "
			"slow memory",
			path);
	char *copy = strdup(path);
	if (!copy)
		return neap__fail_errno(ENOMEM, "'%s'", path);
	if (!S_ISDIR(st.st_mode)) {
		char *parent = strdup(dirname(copy));
		free(copy);
		if (!parent)
			return neap__fail_errno(ENOMEM, "'%s'", path);
		copy = parent;
	}
	*out = copy;
	return 0;
}

/* Uses O_TMPFILE where the file system has it, else a name that is removed at once. */
static int open_unnamed(const char *directory)
{
	int fd = open(directory, O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT))
		return fd;
	char *name;
	if (asprintf(&name, "%s/.neap-XXXXXX", directory) < 0) {
		errno = ENOMEM;
		return -1;
	}
	fd = mkostemp(name, O_CLOEXEC); /* 0600, O_EXCL: follows no link */
	if (fd >= 0)
		unlink(name);
	int err = errno;
	free(name);
	errno = err;
	return fd;
}

int neap__scratch_inspect(struct neap__scratch *scratch, unsigned flags)
{
	struct statfs fs;
	struct statvfs vfs;
	struct stat st;
	if (fstatfs(scratch->fd, &fs) < 0 || fstatvfs(scratch->fd, &vfs) < 0 ||
		fstat(scratch->fd, &st) < 0)
		return neap__fail_errno(errno, "cannot inspect '%s'", scratch->directory);
	scratch->room = neap__sat_mul(vfs.f_bavail, vfs.f_frsize);
	scratch->device = (uint64_t)st.st_dev;
	scratch->in_memory = fs.f_type == TMPFS_MAGIC || fs.f_type == RAMFS_MAGIC;
	if (scratch->in_memory && !(flags & NEAP__SCRATCH_MEMORY))
		return neap__fail(NEAP_EUSAGE,
			"'%s' is in memory (tmpfs), not on a disk. Choose a directory on a disk, "
			"or allow it with --slow-in-memory",
			scratch->directory);
	if (scratch->in_memory || (flags & NEAP__SCRATCH_CACHED))
		return 0;
	int status = fcntl(scratch->fd, F_GETFL);
	int direct = status >= 0 && fcntl(scratch->fd, F_SETFL, status | O_DIRECT) == 0;
	if (!direct && flags & NEAP__SCRATCH_EITHER)
		return 0;
	if (!direct)
		return neap__fail_errno(errno,
			"the file system of '%s' does not support direct I/O (O_DIRECT). Pass "
			"--page-cache, or choose another directory",
			scratch->directory);
	scratch->direct = 1;
	return 0;
}

int neap__scratch_exists(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0;
}

int neap__scratch_open(struct neap__scratch *scratch, const char *path, unsigned flags)
{
	*scratch = (struct neap__scratch){.fd = -1};
	NEAP_TRY(neap__scratch_directory(&scratch->directory, path));
	scratch->fd = open_unnamed(scratch->directory);
	int rc = scratch->fd < 0 ? neap__fail_errno(errno, "cannot create a file in '%s'",
					   scratch->directory)
				 : neap__scratch_inspect(scratch, flags);
	if (rc < 0)
		neap__scratch_close(scratch);
	return rc;
}

int neap__scratch_reserve(struct neap__scratch *scratch, uint64_t bytes)
{
	if (bytes > INT64_MAX)
		return neap__fail(NEAP_EOVERFLOW,
			"cannot create a file of %llu bytes in '%s': too large",
			(unsigned long long)bytes, scratch->directory);
	struct stat st;
	if (fstat(scratch->fd, &st) < 0 || (uint64_t)st.st_size < bytes)
		NEAP_TRY(neap__scratch_truncate(scratch, bytes));
	if (bytes == 0)
		return 0;
	int rc;
	do
		rc = fallocate(scratch->fd, 0, 0, (off_t)bytes);
	while (rc < 0 && errno == EINTR);
	if (rc == 0 || errno == EOPNOTSUPP)
		return 0; /* without fallocate a full disk fails the write instead */
	int err = errno;
	(void)neap__scratch_truncate(scratch, scratch->head);
	return neap__fail_errno(err, "cannot reserve %llu bytes in '%s'", (unsigned long long)bytes,
		scratch->directory);
}

int neap__scratch_explain(const struct neap__scratch *scratch, int write, int code)
{
	if (code == NEAP_ESHORT)
		return neap__fail(
			code, "the file of slow memory in '%s' is truncated", scratch->directory);
	return neap__fail_errno(-code, "cannot %s slow memory in '%s'", write ? "write to" : "read",
		scratch->directory);
}

/*
 * A direct transfer that ends within a page goes on from the start of that page. Two answers of 0
 * bytes in a row are an error.
 */
int neap__scratch_write(
	struct neap__scratch *scratch, const void *from, size_t bytes, uint64_t offset)
{
	const char *p = from;
	int empty = 0;
	while (bytes > 0) {
		ssize_t n = pwrite(scratch->fd, p, bytes, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return neap__scratch_explain(scratch, 1, -errno);
		if (scratch->direct && (size_t)n < bytes)
			n -= n % NEAP__PAGE;
		if (n == 0 && ++empty > 1)
			return neap__scratch_explain(scratch, 1, -EIO);
		p += n;
		bytes -= (size_t)n;
		offset += (size_t)n;
	}
	return 0;
}

int neap__scratch_read(struct neap__scratch *scratch, void *into, size_t bytes, uint64_t offset)
{
	char *p = into;
	while (bytes > 0) {
		ssize_t n = pread(scratch->fd, p, bytes, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return neap__scratch_explain(scratch, 0, -errno);
		size_t whole = (size_t)n;
		if (scratch->direct && whole < bytes)
			whole -= whole % NEAP__PAGE;
		if (whole == 0)
			return neap__scratch_explain(scratch, 0, NEAP_ESHORT);
		p += whole;
		bytes -= whole;
		offset += whole;
	}
	return 0;
}

int neap__scratch_truncate(struct neap__scratch *scratch, uint64_t bytes)
{
	int rc;
	do
		rc = ftruncate(scratch->fd, (off_t)bytes);
	while (rc < 0 && errno == EINTR);
	return rc == 0 ? 0
		       : neap__fail_errno(errno, "cannot set the length of a file in '%s'",
				 scratch->directory);
}

void neap__scratch_close(struct neap__scratch *scratch)
{
	if (scratch->fd >= 0)
		close(scratch->fd);
	free(scratch->directory);
	free(scratch->name);
	*scratch = (struct neap__scratch){.fd = -1};
}
