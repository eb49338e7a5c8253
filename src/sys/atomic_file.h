/* SPDX-License-Identifier: Apache-2.0 */
/*
 * atomic_file.h: every output of the library and the tool. A regular file is either whole or not
 * there: it is written beside its name, flushed to the disk, then renamed, and its folder flushed.
 * A symbolic link stays, and what it points to is replaced. Devices and FIFOs are written to, and
 * "-" is standard output.
 */
#ifndef NEAP_SYS_ATOMIC_FILE_H
#define NEAP_SYS_ATOMIC_FILE_H

#include <stddef.h>
#include <neap/status.h>

struct neap__atomic_file;

/* Begins a file that will be called `path`. The detail line names the path on failure. */
int neap__atomic_file_open(struct neap__atomic_file **out, const char *path);
/* 0 where `path` could be begun; nothing is left behind, and no FIFO is opened. */
int neap__atomic_file_check(const char *path);
int neap__atomic_file_write(struct neap__atomic_file *file, const void *data, size_t bytes);
/*
 * The name of the file beside, for libraries that write it by name; commit follows. NULL where
 * there is none, since the path is a device, a FIFO or standard output.
 */
const char *neap__atomic_file_name(const struct neap__atomic_file *file);
/* fsync, rename, fsync of the directory; frees `file` in any case. */
int neap__atomic_file_commit(struct neap__atomic_file *file);
/* Removes what was written; frees `file`. NULL is fine. */
void neap__atomic_file_abort(struct neap__atomic_file *file);

/* Flushes the folder that holds `path`, which is cut there. 0 or an errno. */
int neap__sync_name(char *path);

/* Writes a whole file from a buffer. */
int neap__write_file(const char *path, const void *data, size_t bytes);

/* The whole of a regular file of at most `limit` bytes, zero-terminated. Free *data. */
int neap__read_file(char **data, size_t *bytes, const char *path, size_t limit);

#endif
