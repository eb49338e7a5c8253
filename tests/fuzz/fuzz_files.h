/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_files.h: what targets share that read files: files in memory, and edits of a sound file. */
#ifndef NEAP_TEST_FUZZ_FILES_H
#define NEAP_TEST_FUZZ_FILES_H

#include "fuzz.h"
#include <stddef.h>

/* A folder of this process in memory where that can be had, removed at its end. */
const char *fuzz_folder(void);
/* Its file NAME, in a buffer of its own for each of a few names. */
const char *fuzz_path(const char *name);
/* Writes the file anew. */
void fuzz_write(const char *path, const void *data, size_t size);
/* Reads it whole; free it. */
uint8_t *fuzz_read(const char *path, size_t *size);

struct fuzz_region {
	size_t at, size;
};

/*
 * Changes regions of a file as an input says, which is a list of {place, 2 bytes; width, 1; value,
 * 1, 2, 4 or 8}: so parsers are reached that a file of random bytes never gets to.
 */
void fuzz_edit(uint8_t *file, const struct fuzz_region *regions, int count, const uint8_t *data,
	size_t size);

/*
 * The regions of an HDF5 file that hold its texts: heads and objects of heaps, and every row that
 * names one's address. Returns how many there are, `most` at most.
 */
int fuzz_heaps(const uint8_t *file, size_t bytes, struct fuzz_region *regions, int most);

/* Bytes of an input that choose what is made of it; 0 beyond its end. */
struct fuzz_bytes {
	const uint8_t *at;
	size_t left;
};

unsigned fuzz_next(struct fuzz_bytes *b);

/* A negative code has one clean line. */
void fuzz_line(int rc);

#endif
