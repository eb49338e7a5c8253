/* SPDX-License-Identifier: Apache-2.0 */
/* atomic_file.c: the file beside, its flush and its rename; reading a file of limited size. */
#include "sys/atomic_file.h"
#include "base/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct neap__atomic_file {
	int fd;
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

int neap__atomic_file_open(struct neap__atomic_file **out, const char *path)
{
	struct neap__atomic_file *file = calloc(1, sizeof *file);
	if (!file)
		return neap__fail_errno(ENOMEM, "%s", path);
	file->fd = -1;
	file->path = strdup(path);
	if (!file->path || asprintf(&file->beside, "%s.%ld.part", path, (long)getpid()) < 0) {
		file->beside = NULL;
		release(file);
		return neap__fail_errno(ENOMEM, "%s", path);
	}
	struct stat st;
	if (path[0] == '\0' || (stat(path, &st) == 0 && S_ISDIR(st.st_mode))) {
		int err = path[0] ? EISDIR : ENOENT;
		release(file);
		return neap__fail_errno(err, "cannot write '%s'", path);
	}
	file->fd = open(file->beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
	if (file->fd < 0) {
		int err = errno;
		release(file);
		return neap__fail_errno(err, "cannot write '%s'", path);
	}
	*out = file;
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

static void sync_directory(char *path)
{
	int fd = open(dirname(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0) {
		(void)fsync(fd); /* some file systems refuse; the rename stands */
		close(fd);
	}
}

int neap__atomic_file_commit(struct neap__atomic_file *file)
{
	int rc = 0;
	if (fsync(file->fd) < 0 || rename(file->beside, file->path) < 0) {
		rc = neap__fail_errno(errno, "cannot write '%s'", file->path);
		unlink(file->beside);
	} else {
		sync_directory(file->path);
	}
	release(file);
	return rc;
}

void neap__atomic_file_abort(struct neap__atomic_file *file)
{
	if (!file)
		return;
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
	size_t size = (size_t)st.st_size, got = 0;
	buffer = malloc(size + 1);
	if (!buffer) {
		rc = neap__fail_errno(ENOMEM, "cannot read '%s'", path);
		goto out;
	}
	while (got < size) {
		ssize_t n = read(fd, buffer + got, size - got);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			rc = neap__fail_errno(n < 0 ? errno : EIO, "cannot read '%s'", path);
			goto out;
		}
		got += (size_t)n;
	}
	buffer[size] = '\0';
	*data = buffer;
	*bytes = size;
	buffer = NULL;
out:
	free(buffer);
	close(fd);
	return rc;
}
