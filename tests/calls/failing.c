/* SPDX-License-Identifier: Apache-2.0 */
/*
 * failing.c: loaded before libc, makes one call of the program's own code fail: the NEAP_FAIL-th of
 * those listed below, counted over all of them from 1. Calls that libraries make are passed on.
 * At the end the number of calls is written to the file NEAP_CALLS. With NEAP_FAIL_LIBRARIES the
 * calls of libraries count and fail instead.
 */
#undef _FILE_OFFSET_BITS /* open and open64 are two functions here */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static uintptr_t text_begin, text_end; /* of the program */
static atomic_llong calls;
static long long fails_at;
static int of_libraries;

static int find_program(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)size;
	(void)unused;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		if (p->p_type == PT_LOAD && p->p_flags & PF_X) {
			text_begin = info->dlpi_addr + p->p_vaddr;
			text_end = text_begin + p->p_memsz;
		}
	}
	return 1; /* the program comes first */
}

__attribute__((constructor)) static void begin(void)
{
	const char *n = getenv("NEAP_FAIL");
	fails_at = n ? atoll(n) : 0;
	of_libraries = getenv("NEAP_FAIL_LIBRARIES") != NULL;
	dl_iterate_phdr(find_program, NULL);
}

__attribute__((destructor)) static void end(void)
{
	const char *path = getenv("NEAP_CALLS");
	char text[32];
	int fd = path ? (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0600)
		      : -1;
	int n = snprintf(text, sizeof text, "%lld\n", (long long)atomic_load(&calls));
	if (fd >= 0) {
		syscall(SYS_write, fd, text, (size_t)n);
		syscall(SYS_close, fd);
	}
}

/* Where a debugger breaks, to see which call it is. */
EXPORT void neap_call_fails(int err);
EXPORT __attribute__((noinline)) void neap_call_fails(int err)
{
	errno = err;
}

/* 1, and errno, where the call of this caller is the one. */
static int fails(const void *caller, int err)
{
	uintptr_t at = (uintptr_t)caller;
	int is_ours = at >= text_begin && at < text_end;
	if (is_ours == of_libraries || text_end == 0)
		return 0;
	if (atomic_fetch_add(&calls, 1) + 1 != fails_at)
		return 0;
	neap_call_fails(err);
	return 1;
}

#define FAILS(err) fails(__builtin_return_address(0), err)

/* The next function of that name. */
#define NEXT(name, type)                                                                           \
	static type *_Atomic next;                                                                 \
	if (!next)                                                                                 \
	next = (type *)dlsym(RTLD_NEXT, name)

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *block, size_t bytes);

EXPORT void *malloc(size_t bytes)
{
	return FAILS(ENOMEM) ? NULL : __libc_malloc(bytes);
}

EXPORT void *calloc(size_t count, size_t bytes)
{
	return FAILS(ENOMEM) ? NULL : __libc_calloc(count, bytes);
}

EXPORT void *realloc(void *block, size_t bytes)
{
	return FAILS(ENOMEM) ? NULL : __libc_realloc(block, bytes);
}

#undef strdup
EXPORT char *strdup(const char *text)
{
	size_t n = strlen(text) + 1;
	char *copy = FAILS(ENOMEM) ? NULL : __libc_malloc(n);
	return copy ? memcpy(copy, text, n) : NULL;
}

static int open_next(const char *name, const char *path, int flags, mode_t mode)
{
	typedef int opener(const char *, int, ...);
	opener *next = (opener *)dlsym(RTLD_NEXT, name);
	return next(path, flags, mode);
}

static mode_t mode_of(int flags, va_list args)
{
	return flags & (O_CREAT | O_TMPFILE) ? va_arg(args, mode_t) : 0;
}

#define OPENER(name)                                                                               \
	EXPORT int name(const char *path, int flags, ...)                                          \
	{                                                                                          \
		va_list args;                                                                      \
		va_start(args, flags);                                                             \
		mode_t mode = mode_of(flags, args);                                                \
		va_end(args);                                                                      \
		return FAILS(flags & O_CREAT ? ENOSPC : EMFILE)                                    \
			       ? -1                                                                \
			       : open_next(#name, path, flags, mode);                              \
	}
#undef open
#undef open64
OPENER(open)
OPENER(open64)

#define CALL(result, failure, err, name, parameters, arguments)                                    \
	EXPORT result name parameters                                                              \
	{                                                                                          \
		typedef result function parameters;                                                \
		NEXT(#name, function);                                                             \
		return FAILS(err) ? failure : next arguments;                                      \
	}
#undef pread64
#undef pwrite64
#undef ftruncate64
#undef fallocate64
#undef mmap64
CALL(ssize_t, -1, EIO, read, (int fd, void *data, size_t n), (fd, data, n))
CALL(ssize_t, -1, ENOSPC, write, (int fd, const void *data, size_t n), (fd, data, n))
CALL(ssize_t, -1, EIO, pread64, (int fd, void *data, size_t n, off64_t at), (fd, data, n, at))
CALL(ssize_t, -1, ENOSPC, pwrite64, (int fd, const void *data, size_t n, off64_t at),
	(fd, data, n, at))
CALL(int, -1, EIO, fsync, (int fd), (fd))
CALL(int, -1, EIO, fdatasync, (int fd), (fd))
CALL(int, -1, EIO, rename, (const char *from, const char *to), (from, to))
CALL(int, -1, ENOSPC, ftruncate64, (int fd, off64_t n), (fd, n))
CALL(int, -1, ENOSPC, fallocate64, (int fd, int mode, off64_t at, off64_t n), (fd, mode, at, n))
CALL(void *, MAP_FAILED, ENOMEM, mmap64,
	(void *at, size_t n, int prot, int flags, int fd, off64_t offset),
	(at, n, prot, flags, fd, offset))
int io_uring_submit(void *ring);
int io_uring_queue_init(unsigned entries, void *ring, unsigned flags);
CALL(int, -EIO, EIO, io_uring_submit, (void *ring), (ring))
CALL(int, -ENOSYS, ENOSYS, io_uring_queue_init, (unsigned entries, void *ring, unsigned flags),
	(entries, ring, flags))
