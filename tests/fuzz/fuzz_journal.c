/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_journal.c: the file of a journal, changed; with an even first byte its checksums are made
 * good again, so that what they cover is read.
 */
#include "fuzz_files.h"
#include "store/journal_file.h"

#include <string.h>

#define PAGE 4096
#define SEALED 40 /* bytes of a head or mark before its checksum */
enum { SUBJECT = 700, STREAM = 5000 };

static uint8_t *sound;
static size_t sound_bytes;

static void make_file(const char *folder)
{
	static uint8_t bytes[STREAM];
	struct neap__journal *journal;

	for (int i = 0; i < STREAM; i++)
		bytes[i] = (uint8_t)(i * 7);
	FUZZ_CHECK(neap__journal_open(&journal, folder, NULL, 1) == 0, "%s", neap_detail());
	int rc = neap__journal_begin(journal, 0, bytes, SUBJECT, STREAM);
	for (int i = 0; i < 2 && rc == 0; i++) {
		rc = neap__journal_commit_begin(journal);
		if (rc == 0)
			rc = neap__journal_write(journal, bytes, (size_t)(STREAM - 1000 * i));
		if (rc == 0)
			rc = neap__journal_commit_end(journal);
		neap__journal_settle(journal, rc == 0);
	}
	FUZZ_CHECK(rc == 0, "%s", neap_detail());
	neap__journal_close(journal);
}

static void seal(uint8_t *at)
{
	uint64_t hash = neap__journal_hash(0, at, SEALED);
	memcpy(at + SEALED, &hash, 8);
}

/* The head, and the marks where the head says that they are. */
static void seal_all(uint8_t *file, size_t bytes)
{
	uint64_t head[5];

	seal(file + PAGE);
	memcpy(head, file + PAGE, sizeof head);
	for (uint64_t i = 0; i < 2; i++) {
		uint64_t at = 2 * PAGE + (head[2] + PAGE - 1) / PAGE * PAGE + i * head[3];
		if (at % 8 == 0 && at < bytes && bytes - at >= PAGE)
			seal(file + at);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *path = fuzz_path(NEAP__JOURNAL_NAME);
	struct neap__journal *journal = NULL;
	static uint8_t into[4 * STREAM];
	size_t subject = 0;

	if (!sound) {
		make_file(fuzz_folder());
		sound = fuzz_read(path, &sound_bytes);
	}
	uint8_t *copy = malloc(sound_bytes);
	FUZZ_CHECK(copy, "no memory");
	memcpy(copy, sound, sound_bytes);
	/* The kept header, the head, and the marks of both areas. */
	const struct fuzz_region regions[] = {
		{0, 64}, {PAGE, 64}, {3 * PAGE, 64}, {sound_bytes / 2 / PAGE * PAGE, 64}};
	if (size > 0)
		fuzz_edit(copy, regions, 4, data + 1, size - 1);
	if (size > 0 && data[0] % 2 == 0)
		seal_all(copy, sound_bytes);
	fuzz_write(path, copy, sound_bytes);
	free(copy);
	int rc = neap__journal_open(&journal, fuzz_folder(), NULL, 1);
	fuzz_line(rc);
	if (rc == 0) {
		const uint8_t *there = neap__journal_subject(journal, &subject);
		for (size_t i = 0; there && i < subject; i++)
			FUZZ_CHECK(
				there[i] == (uint8_t)(i * 7) || subject != SUBJECT, "byte %zu", i);
		uint64_t last = neap__journal_last(journal), newest = UINT64_MAX;
		while ((newest = neap__journal_newest(journal, newest)) > 0) {
			FUZZ_CHECK(newest <= last, "a commit above the last");
			neap__journal_take(journal, newest, last);
			for (int i = 0; i < 3 && rc == 0; i++)
				rc = neap__journal_read(journal, into, STREAM);
			newest--;
		}
		neap__journal_close(journal);
	}
	return 0;
}
