/* SPDX-License-Identifier: Apache-2.0 */
/* refusing.c: loaded before libc: a system whose file systems have no O_DIRECT. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>

typedef int control(int fd, int command, ...);

/* `next` is the system's function of that name; the argument passes as it came. */
static int pass(const char *name, int fd, int command, void *argument)
{
	control *next;
	*(void **)&next = dlsym(RTLD_NEXT, name);
	if (command == F_SETFL && (int)(long)argument & O_DIRECT) {
		errno = EINVAL;
		return -1;
	}
	return next(fd, command, argument);
}

/* Under both names that the system's headers give it. */
#define REFUSING(name, symbol)                                                                     \
	__attribute__((visibility("default"))) int name(int fd, int command, ...) __asm__(symbol); \
	int name(int fd, int command, ...)                                                         \
	{                                                                                          \
		va_list more;                                                                      \
		va_start(more, command);                                                           \
		void *argument = va_arg(more, void *);                                             \
		va_end(more);                                                                      \
		return pass(symbol, fd, command, argument);                                        \
	}

REFUSING(control_plain, "fcntl")
REFUSING(control_64, "fcntl64")
