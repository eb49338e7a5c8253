/* SPDX-License-Identifier: Apache-2.0 */
/* command.h: runs another program to its end. */
#ifndef NEAP_SYS_COMMAND_H
#define NEAP_SYS_COMMAND_H

#include <stddef.h>
#include <neap/status.h>

/*
 * Runs argv[0], found as a shell finds it, and keeps the first size - 1 bytes of its
 * standard output, and of its standard error if asked for, ended with 0. Its exit status, or
 * -ENOENT where there is no such program, or another -errno.
 */
int neap__command(const char *const *argv, int with_errors, char *out, size_t size);

#endif
