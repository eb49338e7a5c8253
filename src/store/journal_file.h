/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal_file.h: a kept file, DIR/neap.journal, that holds a subject (what it is about)
 * and the last two commits, each in an area of its own, so that one of them is whole
 * whenever the process or the machine dies. A commit is a stream of bytes with a
 * checksum over all of it; one that is torn or was changed is not there.
 *
 *     begin(subject)                                     starts anew
 *     commit_begin, write..., write_pages..., commit_end what is to be kept
 *     load, read..., read_pages...                       the newest whole one, as written
 *
 * Pages go to the disk and come back from where they lie, past the page cache where
 * that can be. Nothing is allocated after begin or load but by open.
 */
#ifndef NEAP_STORE_JOURNAL_FILE_H
#define NEAP_STORE_JOURNAL_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <neap/status.h>

#define NEAP__JOURNAL_NAME "neap.journal"
#define NEAP__JOURNAL_BUFFER (64 << 10) /* bytes of memory a journal takes */

struct neap__journal;

/* In an existing directory; `in_memory`: which may lie in memory. */
NEAP_API int neap__journal_open(struct neap__journal **journal, const char *dir, int in_memory);
/* NULL is fine. The file stays, unless it holds no commit. */
NEAP_API void neap__journal_close(struct neap__journal *journal);
/* The file goes; closes. */
NEAP_API void neap__journal_remove(struct neap__journal *journal);

/* The subject of the commits there are, owned by the journal; NULL: there are none. */
NEAP_API const void *neap__journal_subject(const struct neap__journal *journal, size_t *bytes);
/* Drops the commits. None will be larger than `most`, padding excluded. */
NEAP_API int neap__journal_begin(
	struct neap__journal *journal, const void *subject, size_t bytes, uint64_t most);

/* An error of one of them spoils the commit; the one before stays the last. */
NEAP_API int neap__journal_commit_begin(struct neap__journal *journal);
NEAP_API int neap__journal_write(struct neap__journal *journal, const void *from, size_t bytes);
/* Whole pages at an address of theirs. */
NEAP_API int neap__journal_write_pages(
	struct neap__journal *journal, const void *from, size_t bytes);
NEAP_API int neap__journal_commit_end(struct neap__journal *journal);

/* Finds the newest commit that is whole: 1, or 0 when there is none. */
NEAP_API int neap__journal_load(struct neap__journal *journal);
NEAP_API int neap__journal_read(struct neap__journal *journal, void *into, size_t bytes);
NEAP_API int neap__journal_read_pages(struct neap__journal *journal, void *into, size_t bytes);

/* Of such a hash, going on: anything that tells one stream from another. */
NEAP_API uint64_t neap__journal_hash(uint64_t before, const void *bytes, size_t count);

#endif
