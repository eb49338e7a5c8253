/* SPDX-License-Identifier: Apache-2.0 */
/*
 * journal_file.c: a journal's file, in pages:
 *
 *     [kept header][head][subject ...][area 0 ...][area 1 ...]     area: [mark][stream ...]
 *
 * Commit n goes to area n % 2. Head and marks name the journal's number, which is drawn when the
 * journal begins, so that what an earlier journal left behind is never taken for this one's. One
 * flush ends a commit: the checksum of the mark covers the mark, that of the stream is in the
 * mark, so a commit of which any part is missing does not count.
 */
#include "store/journal_file.h"
#include "base/checked.h"
#include "base/fail.h"
#include "sys/clock.h"
#include "sys/memory.h"
#include "sys/scratch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define MAGIC_HEAD UINT64_C(0x31686a7061656e00) /* "neapjh1" */
#define MAGIC_MARK UINT64_C(0x316d6a7061656e00) /* "neapjm1" */
#define SUBJECT_MOST (UINT64_C(64) << 20)	/* bytes that a damaged head may make us allocate */

struct journal_head {
	uint64_t magic, number;
	uint64_t subject, area; /* bytes */
	uint64_t subject_hash;
	uint64_t hash; /* of the above */
};

struct journal_mark {
	uint64_t magic, number;
	uint64_t sequence; /* from 1 */
	uint64_t bytes;	   /* of the stream, padding included */
	uint64_t stream_hash;
	uint64_t hash; /* of the above */
};

struct neap__journal {
	struct neap__scratch file;
	struct journal_head head;
	void *subject;	   /* owned */
	uint64_t sequence; /* of the last commit; 0: none */
	uint64_t next;	   /* number of the next commit */
	unsigned char *buffer;
	XXH3_state_t *hash;
	/* Of the commit being written or read: position of its stream in the file, and its end. */
	uint64_t at, end;
	size_t fill, used; /* bytes in the buffer; those of them that were read */
	uint64_t start;
	int error; /* of the commit being written */
};

uint64_t neap__journal_hash(uint64_t before, const void *bytes, size_t count)
{
	return XXH3_64bits_withSeed(bytes, count, before);
}

static uint64_t area_at(const struct neap__journal *j, uint64_t sequence)
{
	uint64_t first = 2 * NEAP__PAGE + neap__round_up(j->head.subject, NEAP__PAGE);
	return first + sequence % 2 * j->head.area;
}

/* One page of the file, by way of the buffer. */
static int read_page(struct neap__journal *j, void *into, size_t bytes, uint64_t at)
{
	NEAP_TRY(neap__scratch_read(&j->file, j->buffer, NEAP__PAGE, at));
	memcpy(into, j->buffer, bytes);
	return 0;
}

static int write_page(struct neap__journal *j, const void *from, size_t bytes, uint64_t at)
{
	memset(j->buffer, 0, NEAP__PAGE);
	memcpy(j->buffer, from, bytes);
	return neap__scratch_write(&j->file, j->buffer, NEAP__PAGE, at);
}

/* Reads the mark of an area. 1 if it is one of this journal's. */
static int read_mark(struct neap__journal *j, uint64_t area, struct journal_mark *mark)
{
	return read_page(j, mark, sizeof *mark, area_at(j, area)) == 0 &&
	       mark->magic == MAGIC_MARK && mark->number == j->head.number &&
	       mark->hash == neap__journal_hash(0, mark, offsetof(struct journal_mark, hash)) &&
	       mark->sequence % 2 == area && mark->sequence > 0 && mark->bytes % NEAP__PAGE == 0 &&
	       mark->bytes <= j->head.area - NEAP__PAGE;
}

/* Reads the whole stream. 1 if its checksum is the mark's. */
static int whole(struct neap__journal *j, const struct journal_mark *mark)
{
	uint64_t at = area_at(j, mark->sequence) + NEAP__PAGE, end = at + mark->bytes;
	XXH3_64bits_reset(j->hash);
	while (at < end) {
		size_t n =
			end - at < NEAP__JOURNAL_BUFFER ? (size_t)(end - at) : NEAP__JOURNAL_BUFFER;
		if (neap__scratch_read(&j->file, j->buffer, n, at) < 0)
			return 0;
		XXH3_64bits_update(j->hash, j->buffer, n);
		at += n;
	}
	return XXH3_64bits_digest(j->hash) == mark->stream_hash;
}

/* Reads head and subject. 1 if there is a commit; 0 also where anything was damaged. */
static int read_head(struct neap__journal *j)
{
	struct journal_head *head = &j->head;
	struct journal_mark mark;
	if (read_page(j, head, sizeof *head, NEAP__PAGE) < 0 || head->magic != MAGIC_HEAD ||
		head->hash != neap__journal_hash(0, head, offsetof(struct journal_head, hash)) ||
		head->subject > SUBJECT_MOST)
		return 0;
	for (uint64_t i = 0; i < 2; i++)
		if (read_mark(j, i, &mark) && mark.sequence > j->sequence)
			j->sequence = mark.sequence;
	if (j->sequence == 0)
		return 0;
	j->subject = malloc(head->subject + 1);
	if (!j->subject)
		return neap__fail_errno(ENOMEM, "a journal");
	for (uint64_t at = 0; at < head->subject;) {
		uint64_t left = head->subject - at;
		size_t n = left < NEAP__PAGE ? (size_t)left : NEAP__PAGE;
		if (read_page(j, (char *)j->subject + at, n, 2 * NEAP__PAGE + at) < 0)
			return 0;
		at += n;
	}
	return neap__journal_hash(0, j->subject, head->subject) == head->subject_hash;
}

int neap__journal_open(
	struct neap__journal **out, const char *dir, const char *suffix, int in_memory)
{
	char name[NEAP__SCRATCH_NAME];
	NEAP_TRY(neap__scratch_name(name, NEAP__JOURNAL_NAME, suffix));
	struct neap__journal *j = calloc(1, sizeof *j);
	if (!j)
		return neap__fail_errno(ENOMEM, "a journal");
	j->file.fd = -1;
	unsigned flags = in_memory ? NEAP__SCRATCH_MEMORY : 0u;
	void *buffer = NULL;
	int rc = neap__map_pages(&buffer, NEAP__JOURNAL_BUFFER);
	j->buffer = buffer;
	j->hash = XXH3_createState();
	if (rc == 0 && !j->hash)
		rc = neap__fail_errno(ENOMEM, "a journal");
	if (rc == 0)
		rc = neap__scratch_open_kept(&j->file, dir, name, flags | NEAP__SCRATCH_EITHER);
	int there = rc == 0 && j->file.existed ? read_head(j) : 0;
	if (there <= 0)
		neap__journal_forget(j);
	if (there < 0)
		rc = there;
	if (rc < 0) {
		neap__journal_close(j);
		return rc;
	}
	*out = j;
	return 0;
}

void neap__journal_close(struct neap__journal *j)
{
	if (!j)
		return;
	if (j->file.fd >= 0 && j->sequence == 0)
		neap__scratch_remove(&j->file);
	neap__scratch_close(&j->file);
	neap__unmap_pages(j->buffer, NEAP__JOURNAL_BUFFER);
	XXH3_freeState(j->hash);
	free(j->subject);
	free(j);
}

void neap__journal_remove(struct neap__journal *j)
{
	if (!j)
		return;
	neap__scratch_remove(&j->file);
	neap__journal_close(j);
}

const void *neap__journal_subject(const struct neap__journal *j, size_t *bytes)
{
	*bytes = j->subject ? (size_t)j->head.subject : 0;
	return j->subject;
}

uint64_t neap__journal_number(const struct neap__journal *j)
{
	return j->subject ? j->head.number : 0;
}

void neap__journal_forget(struct neap__journal *j)
{
	free(j->subject);
	j->subject = NULL;
	j->sequence = 0;
}

int neap__journal_begin(
	struct neap__journal *j, uint64_t number, const void *subject, size_t bytes, uint64_t most)
{
	uint64_t ends;
	if (bytes > SUBJECT_MOST)
		return neap__fail(NEAP_EOVERFLOW, "a journal's subject of %zu bytes", bytes);
	void *copy = malloc(bytes + 1);
	if (!copy)
		return neap__fail_errno(ENOMEM, "a journal");
	memcpy(copy, subject, bytes);
	free(j->subject);
	j->subject = copy;
	j->sequence = 0;
	j->next = 1;
	j->head = (struct journal_head){.magic = MAGIC_HEAD,
		.number = number ? number : neap__unique(),
		.subject = bytes,
		.area = neap__round_up(neap__sat_add(most, 16 * NEAP__PAGE), NEAP__PAGE),
		.subject_hash = neap__journal_hash(0, subject, bytes)};
	if (neap__mul_u64(&ends, j->head.area, 4) < 0 || ends > INT64_MAX)
		return neap__fail(
			NEAP_EOVERFLOW, "commits of %llu bytes", (unsigned long long)most);
	j->head.hash = neap__journal_hash(0, &j->head, offsetof(struct journal_head, hash));
	for (size_t at = 0; at < bytes; at += NEAP__PAGE) {
		size_t n = bytes - at < NEAP__PAGE ? bytes - at : NEAP__PAGE;
		NEAP_TRY(write_page(j, (const char *)subject + at, n, 2 * NEAP__PAGE + at));
	}
	NEAP_TRY(write_page(j, &j->head, sizeof j->head, NEAP__PAGE));
	return neap__scratch_sync(&j->file);
}

int neap__journal_commit_begin(struct neap__journal *j)
{
	j->start = j->at = area_at(j, j->next) + NEAP__PAGE;
	j->end = j->at + j->head.area - NEAP__PAGE;
	j->fill = 0;
	j->error = 0;
	XXH3_64bits_reset(j->hash);
	return 0;
}

/* Writes whole pages of the stream to the file. */
static int put_out(struct neap__journal *j, const void *from, size_t bytes)
{
	if (j->error < 0)
		return j->error;
	if (bytes > j->end - j->at)
		return j->error = neap__fail(NEAP_EOVERFLOW, "a commit grew beyond its area");
	XXH3_64bits_update(j->hash, from, bytes);
	j->error = neap__scratch_write(&j->file, from, bytes, j->at);
	j->at += bytes;
	return j->error;
}

static int flush(struct neap__journal *j)
{
	size_t whole_pages = (size_t)neap__round_up(j->fill, NEAP__PAGE);
	memset(j->buffer + j->fill, 0, whole_pages - j->fill);
	j->fill = 0;
	return whole_pages ? put_out(j, j->buffer, whole_pages) : j->error;
}

int neap__journal_write(struct neap__journal *j, const void *from, size_t bytes)
{
	const unsigned char *p = from;
	while (bytes > 0) {
		size_t room = NEAP__JOURNAL_BUFFER - j->fill, n = bytes < room ? bytes : room;
		memcpy(j->buffer + j->fill, p, n);
		j->fill += n;
		p += n;
		bytes -= n;
		if (j->fill == NEAP__JOURNAL_BUFFER)
			NEAP_TRY(flush(j));
	}
	return 0;
}

int neap__journal_write_pages(struct neap__journal *j, const void *from, size_t bytes)
{
	NEAP_TRY(flush(j));
	return bytes ? put_out(j, from, bytes) : 0;
}

int neap__journal_commit_end(struct neap__journal *j)
{
	struct journal_mark mark = {.magic = MAGIC_MARK, .number = j->head.number};
	NEAP_TRY(flush(j));
	mark.sequence = j->next;
	mark.bytes = j->at - j->start;
	mark.stream_hash = XXH3_64bits_digest(j->hash);
	mark.hash = neap__journal_hash(0, &mark, offsetof(struct journal_mark, hash));
	NEAP_TRY(write_page(j, &mark, sizeof mark, area_at(j, mark.sequence)));
	return neap__scratch_sync(&j->file);
}

void neap__journal_settle(struct neap__journal *j, int counts)
{
	if (counts)
		j->sequence = j->next;
	j->next += counts ? 1 : 2;
}

uint64_t neap__journal_newest(struct neap__journal *j, uint64_t most)
{
	struct journal_mark marks[2];
	int there[2];
	if (!j->subject)
		return 0;
	for (uint64_t i = 0; i < 2; i++)
		there[i] = read_mark(j, i, &marks[i]) && marks[i].sequence <= most;
	int newest = there[1] && (!there[0] || marks[1].sequence > marks[0].sequence);
	for (int i = 0; i < 2; i++, newest = !newest)
		if (there[newest] && whole(j, &marks[newest]))
			return marks[newest].sequence;
	return 0;
}

uint64_t neap__journal_last(struct neap__journal *j)
{
	struct journal_mark mark;
	uint64_t last = 0;
	for (uint64_t i = 0; i < 2 && j->subject; i++)
		if (read_mark(j, i, &mark) && mark.sequence > last)
			last = mark.sequence;
	return last;
}

void neap__journal_take(struct neap__journal *j, uint64_t number, uint64_t last)
{
	struct journal_mark mark = {.bytes = 0};
	(void)read_mark(j, number % 2, &mark);
	j->sequence = number;
	j->next = last + 1 + ((last + 1) % 2 == number % 2);
	j->at = area_at(j, number) + NEAP__PAGE;
	j->end = j->at + mark.bytes;
	j->fill = j->used = 0;
}

static int ends_early(void)
{
	return neap__fail(NEAP_EFORMAT, "a commit of the journal ends early");
}

int neap__journal_read(struct neap__journal *j, void *into, size_t bytes)
{
	unsigned char *p = into;
	while (bytes > 0) {
		if (j->used == j->fill) {
			uint64_t left = j->end - j->at;
			size_t n =
				left < NEAP__JOURNAL_BUFFER ? (size_t)left : NEAP__JOURNAL_BUFFER;
			if (n == 0)
				return ends_early();
			NEAP_TRY(neap__scratch_read(&j->file, j->buffer, n, j->at));
			j->at += n;
			j->fill = n;
			j->used = 0;
		}
		size_t n = bytes < j->fill - j->used ? bytes : j->fill - j->used;
		memcpy(p, j->buffer + j->used, n);
		j->used += n;
		p += n;
		bytes -= n;
	}
	return 0;
}

int neap__journal_read_pages(struct neap__journal *j, void *into, size_t bytes)
{
	/* Pages begin after the last page that was read from. */
	j->at -= (j->fill - j->used) / NEAP__PAGE * NEAP__PAGE;
	j->fill = j->used = 0;
	if (bytes > j->end - j->at)
		return ends_early();
	NEAP_TRY(bytes ? neap__scratch_read(&j->file, into, bytes, j->at) : 0);
	j->at += bytes;
	return 0;
}
