/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recording.c: loaded before libc, writes a log of all that a program does to the files of the
 * folder NEAP_RECORDED, in order, to the file NEAP_RECORD: creations, writes with their bytes,
 * sizes, flushes, renames, removals. What a flush was for is known from the log alone, so that
 * power.py can work out what a disk may hold when the power fails at any moment.
 *
 *     create PATH INODE | make PATH | write INODE OFFSET BYTES, then the bytes | size INODE BYTES
 *     flush INODE | flush_folder PATH | rename PATH PATH | remove PATH
 */
#undef _FILE_OFFSET_BITS /* open and open64 are two functions here */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static const char *recorded;
static int record = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("NEAP_RECORD");
	recorded = getenv("NEAP_RECORDED");
	if (path && recorded)
		record = (int)syscall(SYS_openat, AT_FDCWD, path,
			O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static void put(const void *data, size_t n)
{
	if (syscall(SYS_write, record, data, n) != (long)n)
		abort();
}

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *format, ...)
{
	char line[2 * PATH_MAX + 64];
	va_list args;
	va_start(args, format);
	int n = vsnprintf(line, sizeof line, format, args);
	va_end(args);
	put(line, (size_t)n);
}

/* The path as the folder's own, or NULL where it lies elsewhere. */
static const char *inside(char room[PATH_MAX], const char *path)
{
	char whole[PATH_MAX], folder[PATH_MAX];
	size_t n = recorded ? strlen(recorded) : 0;

	if (record < 0)
		return NULL;
	snprintf(folder, sizeof folder, "%s", path);
	char *slash = strrchr(folder, '/');
	const char *name = slash ? path + (slash - folder) + 1 : path;
	if (slash)
		*slash = '\0';
	if (!realpath(!slash ? "." : slash == folder ? "/" : folder, whole))
		return NULL;
	if (snprintf(room, PATH_MAX, "%s/%s", whole, name) >= PATH_MAX)
		return NULL;
	return strncmp(room, recorded, n) == 0 && (room[n] == '/' || !room[n]) ? room : NULL;
}

/* Where an open file lies; NULL where that is elsewhere, or nowhere any more. */
static const char *path_of(char room[PATH_MAX], int fd)
{
	char link[64];
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	ssize_t n = record < 0 ? -1 : readlink(link, room, PATH_MAX - 1);
	if (n <= 0)
		return NULL;
	room[n] = '\0';
	size_t k = strlen(recorded);
	if (strncmp(room, recorded, k) != 0 || (room[k] != '/' && room[k]))
		return NULL;
	return strstr(room, " (deleted)") ? NULL : room;
}

static unsigned long long inode(int fd)
{
	struct stat st;
	return fstat(fd, &st) < 0 ? 0 : (unsigned long long)st.st_ino;
}

#define NEXT(name, type)                                                                           \
	static type *_Atomic next;                                                                 \
	if (!next)                                                                                 \
	next = (type *)dlsym(RTLD_NEXT, name)

static int open_recorded(const char *name, const char *path, int flags, mode_t mode)
{
	typedef int opener(const char *, int, ...);
	opener *next = (opener *)dlsym(RTLD_NEXT, name);
	char room[PATH_MAX];
	struct stat st;

	pthread_mutex_lock(&lock);
	const char *at = (flags & O_TMPFILE) == O_TMPFILE ? NULL : inside(room, path);
	int there = at && lstat(path, &st) == 0;
	int fd = next(path, flags, mode), err = errno;
	if (fd >= 0 && at && !there)
		note("create %s %llu\n", at, inode(fd));
	else if (fd >= 0 && at && flags & O_TRUNC)
		note("size %llu 0\n", inode(fd));
	pthread_mutex_unlock(&lock);
	errno = err;
	return fd;
}

#define OPENER(name)                                                                               \
	EXPORT int name(const char *path, int flags, ...)                                          \
	{                                                                                          \
		va_list args;                                                                      \
		va_start(args, flags);                                                             \
		mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;            \
		va_end(args);                                                                      \
		return open_recorded(#name, path, flags, mode);                                    \
	}
#undef open
#undef open64
OPENER(open)
OPENER(open64)

static void note_write(int fd, const void *data, ssize_t n, off64_t at)
{
	char room[PATH_MAX];
	if (n <= 0 || !path_of(room, fd))
		return;
	note("write %llu %lld %lld\n", inode(fd), (long long)at, (long long)n);
	put(data, (size_t)n);
}

EXPORT ssize_t write(int fd, const void *data, size_t n)
{
	typedef ssize_t function(int, const void *, size_t);
	NEXT("write", function);
	pthread_mutex_lock(&lock);
	ssize_t done = next(fd, data, n);
	int err = errno;
	if (done > 0 && record >= 0)
		note_write(fd, data, done, lseek64(fd, 0, SEEK_CUR) - done);
	pthread_mutex_unlock(&lock);
	errno = err;
	return done;
}

EXPORT ssize_t pwrite64(int fd, const void *data, size_t n, off64_t at)
{
	typedef ssize_t function(int, const void *, size_t, off64_t);
	NEXT("pwrite64", function);
	pthread_mutex_lock(&lock);
	ssize_t done = next(fd, data, n, at);
	int err = errno;
	note_write(fd, data, done, at);
	pthread_mutex_unlock(&lock);
	errno = err;
	return done;
}

EXPORT ssize_t pwrite(int fd, const void *data, size_t n, off_t at)
{
	return pwrite64(fd, data, n, at);
}

static int note_size(int fd, int rc)
{
	char room[PATH_MAX];
	struct stat st;
	int err = errno;
	if (rc == 0 && path_of(room, fd) && fstat(fd, &st) == 0)
		note("size %llu %lld\n", (unsigned long long)st.st_ino, (long long)st.st_size);
	errno = err;
	return rc;
}

static int note_flush(int fd, int rc)
{
	char room[PATH_MAX];
	struct stat st;
	int err = errno;
	const char *at = rc == 0 ? path_of(room, fd) : NULL;
	if (at && fstat(fd, &st) == 0) {
		if (S_ISDIR(st.st_mode))
			note("flush_folder %s\n", at);
		else
			note("flush %llu\n", (unsigned long long)st.st_ino);
	}
	errno = err;
	return rc;
}

#define CALL(name, parameters, arguments, noted)                                                   \
	EXPORT int name parameters                                                                 \
	{                                                                                          \
		typedef int function parameters;                                                   \
		NEXT(#name, function);                                                             \
		pthread_mutex_lock(&lock);                                                         \
		int rc = noted(fd, next arguments);                                                \
		pthread_mutex_unlock(&lock);                                                       \
		return rc;                                                                         \
	}
#undef ftruncate64
#undef ftruncate
#undef fallocate64
CALL(ftruncate64, (int fd, off64_t n), (fd, n), note_size)
CALL(ftruncate, (int fd, off_t n), (fd, n), note_size)
CALL(fallocate64, (int fd, int mode, off64_t at, off64_t n), (fd, mode, at, n), note_size)
CALL(fsync, (int fd), (fd), note_flush)
CALL(fdatasync, (int fd), (fd), note_flush)

EXPORT int rename(const char *from, const char *to)
{
	typedef int function(const char *, const char *);
	NEXT("rename", function);
	char a[PATH_MAX], b[PATH_MAX];
	pthread_mutex_lock(&lock);
	const char *was = inside(a, from), *is = inside(b, to);
	int rc = next(from, to), err = errno;
	if (rc == 0 && was && is)
		note("rename %s %s\n", was, is);
	pthread_mutex_unlock(&lock);
	errno = err;
	return rc;
}

EXPORT int mkdir(const char *path, mode_t mode)
{
	typedef int function(const char *, mode_t);
	NEXT("mkdir", function);
	char room[PATH_MAX];
	pthread_mutex_lock(&lock);
	int rc = next(path, mode), err = errno;
	const char *at = rc == 0 ? inside(room, path) : NULL;
	if (at)
		note("make %s\n", at);
	pthread_mutex_unlock(&lock);
	errno = err;
	return rc;
}

EXPORT int unlink(const char *path)
{
	typedef int function(const char *);
	NEXT("unlink", function);
	char room[PATH_MAX];
	pthread_mutex_lock(&lock);
	const char *at = inside(room, path);
	int rc = next(path), err = errno;
	if (rc == 0 && at)
		note("remove %s\n", at);
	pthread_mutex_unlock(&lock);
	errno = err;
	return rc;
}

EXPORT int unlinkat(int folder, const char *path, int flags)
{
	typedef int function(int, const char *, int);
	NEXT("unlinkat", function);
	char room[PATH_MAX];
	pthread_mutex_lock(&lock);
	const char *in = path_of(room, folder);
	int rc = next(folder, path, flags), err = errno;
	if (rc == 0 && in)
		note("remove %s/%s\n", in, path);
	pthread_mutex_unlock(&lock);
	errno = err;
	return rc;
}
