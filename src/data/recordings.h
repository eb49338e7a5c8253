/* SPDX-License-Identifier: Apache-2.0 */
/* recordings.h: the recordings of a folder, with class and speaker by their names. */
#ifndef NEAP_DATA_RECORDINGS_H
#define NEAP_DATA_RECORDINGS_H

#include <stddef.h>
#include <stdint.h>
#include <neap/status.h>

struct neap__recording {
	char *path;    /* begins with `dir` */
	char *label;   /* name of its class */
	char *speaker; /* or NULL */
	int class_number, speaker_number;
};

struct neap__recordings {
	struct neap__recording *file; /* sorted by path */
	int64_t count, room;
	char **classes, **speakers; /* names, sorted: numbers by value, before words */
	int nclasses, nspeakers;
};

/*
 * Walks `dir`; hidden files and folders are passed over. `label` and `speaker` are
 * regular expressions (name_pattern.h) on the file name whose group 1 is the name; NULL:
 * the folder a file is in, and no speakers. NEAP_EUSAGE, NEAP_EFORMAT or -errno.
 */
int neap__recordings_find(struct neap__recordings *recordings, const char *dir, const char *label,
	const char *speaker);
/* Sorts by class, speaker and path. */
void neap__recordings_sort(struct neap__recordings *recordings);
void neap__recordings_free(struct neap__recordings *recordings);

#endif
