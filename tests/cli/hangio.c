/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hangio.c: loaded before libc, makes calls on files open with O_DIRECT hang for ever:
 * NEAP_HANG=read:N:ROW or write:N:ROW, those from the N-th on, ROW of them.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void hang(const char *what, int fd)
{
	static atomic_llong calls;
	const char *asked = getenv("NEAP_HANG");
	size_t n = strlen(what);
	long long first = 0, row = 1;
	if (!asked || strncmp(asked, what, n) != 0 || !(fcntl(fd, F_GETFL) & O_DIRECT))
		return;
	if (sscanf(asked + n, ":%lld:%lld", &first, &row) != 2)
		abort();
	long long call = atomic_fetch_add(&calls, 1) + 1;
	while (call >= first && call < first + row)
		pause();
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
	hang("read", fd);
	return next(fd, into, bytes, offset);
}

ssize_t pwrite64(int fd, const void *from, size_t bytes, off_t offset)
{
	static writer *_Atomic next;
	if (!next)
		next = (writer *)dlsym(RTLD_NEXT, "pwrite64");
	hang("write", fd);
	return next(fd, from, bytes, offset);
}
