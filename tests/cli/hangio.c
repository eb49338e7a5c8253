/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hangio.c: loaded before libc, makes calls on files open with O_DIRECT hang for ever, fail with
 * EIO or move fewer bytes: NEAP_HANG, NEAP_EIO or NEAP_SHORT=read:N:ROW or write:N:ROW, those from
 * the N-th on, ROW of them.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Is call `call` of `what` one of those that the variable names? */
static int asked(const char *variable, const char *what, long long call)
{
	const char *rows = getenv(variable);
	size_t n = strlen(what);
	long long first = 0, row = 1;
	if (!rows || strncmp(rows, what, n) != 0)
		return 0;
	if (sscanf(rows + n, ":%lld:%lld", &first, &row) != 2)
		abort();
	return call >= first && call < first + row;
}

/* Hangs; or returns -1 where the call is to fail, 1 where it is to be short, else 0. */
static int trouble(const char *what, atomic_llong *calls, int fd)
{
	if (!(fcntl(fd, F_GETFL) & O_DIRECT))
		return 0;
	long long call = atomic_fetch_add(calls, 1) + 1;
	while (asked("NEAP_HANG", what, call))
		pause();
	if (asked("NEAP_EIO", what, call)) {
		errno = EIO;
		return -1;
	}
	return asked("NEAP_SHORT", what, call);
}

typedef ssize_t reader(int, void *, size_t, off_t);
typedef ssize_t writer(int, const void *, size_t, off_t);

#undef pread64
#undef pwrite64
ssize_t pread64(int fd, void *into, size_t bytes, off_t offset)
{
	static reader *_Atomic next;
	if (!next)
		next = (reader *)dlsym(RTLD_NEXT, "pread64");
	static atomic_llong calls;
	int rc = trouble("read", &calls, fd);
	return rc < 0 ? rc : next(fd, into, rc > 0 ? 0 : bytes, offset);
}

ssize_t pwrite64(int fd, const void *from, size_t bytes, off_t offset)
{
	static writer *_Atomic next;
	if (!next)
		next = (writer *)dlsym(RTLD_NEXT, "pwrite64");
	static atomic_llong calls;
	int rc = trouble("write", &calls, fd);
	return rc < 0 ? rc : next(fd, from, rc > 0 ? 0 : bytes, offset);
}
