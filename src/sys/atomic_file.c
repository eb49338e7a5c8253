/* SPDX-License-Identifier: Apache-2.0 */
/*
 * atomic_file.c: the file beside, its flush and its rename; what cannot be replaced is written to;
 * reading a file of limited size.
 */
#include "sys/atomic_file.h"
#include "base/fail.h"
#include "base/print.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LINKS_MOST 40 /* symbolic links followed, as the kernel does */
#define TRIES 1000    /* names beside, of which other processes have left some */

struct neap__atomic_file {
	int fd;
	int in_place; /* a device, a FIFO or standard output: there is no file beside */
	char *path, *beside;
};

static void release(struct neap__atomic_file *file)
{
	if (file->fd >= 0)
		close(file->fd);
	free(file->path);
	free(file->beside);
	free(file);
}

/* What the symbolic link at `path` points to, seen from here; NULL where it is none or on failure.
 */
static char *link_target(const char *path)
{
	char target[PATH_MAX], *whole = NULL;
	ssize_t n = readlink(path, target, sizeof target - 1);

	if (n <= 0)
		return NULL;
	target[n] = '\0';
	const char *slash = strrchr(path, '/');
	if (target[0] == '/' || !slash)
		return strdup(target);
	return asprintf(&whole, "%.*s%s", (int)(slash - path + 1), path, target) < 0 ? NULL : whole;
}

/* Replaces file->path by what it points to at last, which may not be there yet. 0 or an errno. */
static int follow_links(struct neap__atomic_file *file)
{
	struct stat st;

	for (int i = 0; lstat(file->path, &st) == 0 && S_ISLNK(st.st_mode); i++) {
		char *next = i < LINKS_MOST ? link_target(file->path) : NULL;
		if (!next)
			return i < LINKS_MOST ? errno : ELOOP;
		free(file->path);
		file->path = next;
	}
	return 0;
}

/* Opens a new file beside, with the permissions of the one that it replaces. 0 or an errno. */
static int open_beside(struct neap__atomic_file *file, const struct stat *replaced)
{
	static atomic_uint number; /* tells files of one process apart */

	for (int i = 0; i < TRIES; i++) {
		free(file->beside);
		if (asprintf(&file->beside, "%s.%ld-%u.part", file->path, (long)getpid(),
			    atomic_fetch_add_explicit(&number, 1, memory_order_relaxed)) < 0) {
			file->beside = NULL;
			return ENOMEM;
		}
		file->fd = open(
			file->beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
		if (file->fd >= 0) {
			if (replaced)
				(void)fchmod(file->fd, replaced->st_mode & 0777);
			return 0;
		}
		if (errno != EEXIST)
			break;
	}
	return errno;
}

static int open_in_place(struct neap__atomic_file *file)
{
	file->in_place = 1;
	file->fd = open(file->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	return file->fd < 0 ? errno : 0;
}

/* Opens what file->path is. 0 or an errno. */
static int open_any(struct neap__atomic_file *file)
{
	struct stat st;

	if (file->path[0] == '\0')
		return ENOENT;
	if (strcmp(file->path, "-") == 0) {
		file->in_place = 1;
		file->fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
		return file->fd < 0 ? errno : 0;
	}
	int err = follow_links(file);
	if (err)
		return err;
	if (stat(file->path, &st) < 0)
		return errno == ENOENT ? open_beside(file, NULL) : errno;
	if (S_ISDIR(st.st_mode))
		return EISDIR;
	return S_ISREG(st.st_mode) ? open_beside(file, &st) : open_in_place(file);
}

/* The line about a file that cannot be created, with what to do. */
static int cannot_write(int err, const char *path)
{
	if (err == EISDIR)
		return neap__fail(-err,
			"'%s' is a folder. Add the name of a file in it: '%s%sNAME'", path, path,
			path[strlen(path) - 1] == '/' ? "" : "/");
	if (err == EACCES || err == EPERM || err == EROFS || err == ENOENT)
		return neap__fail(-err,
			"cannot write '%s': %s. Choose a folder that exists and that you may write "
			"to",
			path, neap__error_text(err));
	return neap__fail_errno(err, "cannot write '%s'", path);
}

int neap__atomic_file_open(struct neap__atomic_file **out, const char *path)
{
	struct neap__atomic_file *file = calloc(1, sizeof *file);
	if (!file)
		return neap__fail_errno(ENOMEM, "%s", path);
	file->fd = -1;
	file->path = strdup(path);
	int err = file->path ? open_any(file) : ENOMEM;
	if (err) {
		release(file);
		return cannot_write(err, path);
	}
	*out = file;
	return 0;
}

int neap__atomic_file_check(const char *path)
{
	struct neap__atomic_file *file;
	struct stat st;

	/* A FIFO is not opened, since its reader would see an end. */
	if (strcmp(path, "-") == 0)
		return 0;
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
		return access(path, W_OK) == 0 ? 0 : cannot_write(errno, path);
	NEAP_TRY(neap__atomic_file_open(&file, path));
	neap__atomic_file_abort(file);
	return 0;
}

int neap__atomic_file_write(struct neap__atomic_file *file, const void *data, size_t bytes)
{
	const char *p = data;
	while (bytes > 0) {
		ssize_t n = write(file->fd, p, bytes);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return neap__fail_errno(
				n < 0 ? errno : EIO, "cannot write '%s'", file->path);
		p += n;
		bytes -= (size_t)n;
	}
	return 0;
}

const char *neap__atomic_file_name(const struct neap__atomic_file *file)
{
	return file->beside;
}

/* 0 or an errno. Some file systems refuse to flush a directory; the rename stands. */
int neap__sync_name(char *path)
{
	int err = 0, fd = open(dirname(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	if (fsync(fd) < 0 && errno != EINVAL && errno != EROFS && errno != ENOTSUP)
		err = errno;
	close(fd);
	return err;
}

int neap__atomic_file_commit(struct neap__atomic_file *file)
{
	int err = 0;
	if (!file->in_place && (fsync(file->fd) < 0 || rename(file->beside, file->path) < 0)) {
		err = errno;
		unlink(file->beside);
	} else if (file->in_place) {
		err = close(file->fd) < 0 ? errno : 0;
		file->fd = -1;
	}
	int rc = err ? neap__fail_errno(err, "cannot write '%s'", file->path) : 0;
	if (!err && !file->in_place && (err = neap__sync_name(file->path)) != 0)
		rc = neap__fail_errno(err, "cannot flush the folder '%s'", file->path);
	release(file);
	return rc;
}

void neap__atomic_file_abort(struct neap__atomic_file *file)
{
	if (!file)
		return;
	if (!file->in_place)
		unlink(file->beside);
	release(file);
}

int neap__write_file(const char *path, const void *data, size_t bytes)
{
	struct neap__atomic_file *file;
	NEAP_TRY(neap__atomic_file_open(&file, path));
	int rc = neap__atomic_file_write(file, data, bytes);
	if (rc < 0) {
		neap__atomic_file_abort(file);
		return rc;
	}
	return neap__atomic_file_commit(file);
}

/* Reads `size` bytes. 0 or -errno. */
static int read_all(int fd, char *buffer, size_t size, const char *path)
{
	size_t got = 0;

	while (got < size) {
		ssize_t n = read(fd, buffer + got, size - got);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return neap__fail_errno(n < 0 ? errno : EIO, "cannot read '%s'", path);
		got += (size_t)n;
	}
	return 0;
}

int neap__read_file(char **data, size_t *bytes, const char *path, size_t limit)
{
	int rc = 0;
	char *buffer = NULL;
	struct stat st;
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC); /* a pipe would be waited for */
	if (fd < 0)
		return neap__fail_errno(errno, "cannot read '%s'", path);
	if (fstat(fd, &st) < 0) {
		rc = neap__fail_errno(errno, "cannot read '%s'", path);
		goto out;
	}
	if (!S_ISREG(st.st_mode)) {
		rc = neap__fail(NEAP_EFORMAT, "'%s' is not a regular file", path);
		goto out;
	}
	if ((size_t)st.st_size > limit) {
		rc = neap__fail(NEAP_EFORMAT, "'%s' has %lld bytes; at most %zu are accepted", path,
			(long long)st.st_size, limit);
		goto out;
	}
	size_t size = (size_t)st.st_size;
	buffer = malloc(size + 1);
	if (!buffer) {
		rc = neap__fail_errno(ENOMEM, "cannot read '%s'", path);
		goto out;
	}
	rc = read_all(fd, buffer, size, path);
	if (rc < 0)
		goto out;
	buffer[size] = '\0';
	*data = buffer;
	*bytes = size;
	buffer = NULL;
out:
	free(buffer);
	close(fd);
	return rc;
}
