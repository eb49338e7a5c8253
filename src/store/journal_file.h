/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal_file.h: the file of a journal, DIR/neap.journal. It holds a subject, bytes that say
 * what the journal belongs to, and the last two commits, each in an area of its own, so that one
 * of them is whole whenever the process or the machine dies. A commit is a stream of bytes with a
 * checksum over all of it; a commit that is damaged does not count.
 *
 *     begin(subject)                                     starts anew
 *     commit_begin, write..., write_pages..., commit_end what is to be kept
 *     settle                                             it counts, or not
 *     newest, take, read..., read_pages...               a whole commit, as written
 *
 * Commits have numbers from 1 on, and number n lies in area n % 2. Ranks of a collective sweep
 * settle a commit once all have written it, and resume from one that all have: no number is used
 * twice, and the last commit that counts is never overwritten by the next.
 *
 * Pages move between the disk and where they lie, past the page cache where that is possible.
 * After open, begin and load nothing is allocated.
 */
#ifndef NEAP_STORE_JOURNAL_FILE_H
#define NEAP_STORE_JOURNAL_FILE_H

#include <stddef.h>
#include <stdint.h>
#include <neap/status.h>

#define NEAP__JOURNAL_NAME "neap.journal"
#define NEAP__JOURNAL_BUFFER (64 << 10) /* bytes of memory a journal takes */

struct neap__journal;

/*
 * Opens the journal of an existing directory; in_memory: which may lie in memory. suffix: of the
 * file's name, NULL: none; NEAP_EUSAGE where that is no part of a name.
 */
int neap__journal_open(
	struct neap__journal **journal, const char *dir, const char *suffix, int in_memory);
/* The file stays, unless it holds no commit. journal may be NULL. */
void neap__journal_close(struct neap__journal *journal);
/* Removes the file and closes the journal. */
void neap__journal_remove(struct neap__journal *journal);

/* The subject of the commits, owned by the journal; NULL: there are none. */
const void *neap__journal_subject(const struct neap__journal *journal, size_t *bytes);
/* The run's number, which its commits are of; 0: there is no commit. */
uint64_t neap__journal_number(const struct neap__journal *journal);
/* Takes it that there is no commit. */
void neap__journal_forget(struct neap__journal *journal);
/*
 * Drops all commits; later ones have at most `most` bytes, padding excluded. number: of the run, 0:
 * one is drawn.
 */
int neap__journal_begin(struct neap__journal *journal, uint64_t number, const void *subject,
	size_t bytes, uint64_t most);

/* Where one of these fails, the commit is lost and the one before stays the last. */
int neap__journal_commit_begin(struct neap__journal *journal);
int neap__journal_write(struct neap__journal *journal, const void *from, size_t bytes);
/* Writes whole pages, which begin at the address of a page. */
int neap__journal_write_pages(struct neap__journal *journal, const void *from, size_t bytes);
int neap__journal_commit_end(struct neap__journal *journal);

/* The commit that was written last counts, or not: then its number is passed over. */
void neap__journal_settle(struct neap__journal *journal, int counts);

/* The number of the newest commit that is whole, `most` at most; 0: there is none. */
uint64_t neap__journal_newest(struct neap__journal *journal, uint64_t most);
/* The largest number of a commit, whole or not; 0: there is none. */
uint64_t neap__journal_last(struct neap__journal *journal);
/*
 * Goes to the start of commit `number`, which newest answered, to read it. The next one gets the
 * least number above `last` that lies in the other area.
 */
void neap__journal_take(struct neap__journal *journal, uint64_t number, uint64_t last);
int neap__journal_read(struct neap__journal *journal, void *into, size_t bytes);
int neap__journal_read_pages(struct neap__journal *journal, void *into, size_t bytes);

/* Continues a hash of bytes. */
uint64_t neap__journal_hash(uint64_t before, const void *bytes, size_t count);

#endif
