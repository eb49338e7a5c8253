/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npy_header.h: parses the header of a NumPy array (.npy, versions 1 to 3): magic, length, and a
 * Python dictionary with the type, the order and the shape. Types are booleans, integers, float16,
 * float32 and float64, text, objects, and records of these. What else there is, is refused by name.
 */
#ifndef NEAP_DATA_NPY_NPY_HEADER_H
#define NEAP_DATA_NPY_NPY_HEADER_H

#include <stddef.h>
#include <stdint.h>
#include <neap/status.h>

enum {
	NEAP__NPY_MOST_DIMS = 8,
	NEAP__NPY_MOST_FIELDS = 32,
	NEAP__NPY_MOST_NAME = 64,
	NEAP__NPY_MOST_HEADER = 65536, /* bytes, the 12 before the dictionary included */
};

enum neap__npy_kind {
	NEAP__NPY_BOOL,
	NEAP__NPY_INT,
	NEAP__NPY_UINT,
	NEAP__NPY_FLOAT,
	NEAP__NPY_BYTES,  /* S: text of one byte a character */
	NEAP__NPY_UCS4,	  /* U: text of four */
	NEAP__NPY_OBJECT, /* O: pickles, which npy.c refuses */
};

/* A number or text at a place within each element. */
struct neap__npy_field {
	char name[NEAP__NPY_MOST_NAME]; /* "" unless the array holds records */
	enum neap__npy_kind kind;
	size_t offset, bytes;
	int big; /* most significant byte first */
};

struct neap__npy_header {
	struct neap__npy_field field[NEAP__NPY_MOST_FIELDS];
	int fields;
	int records; /* whether the type is a list of named fields */
	size_t item_bytes;
	int fortran; /* whether the first index varies fastest */
	int dims;
	int64_t shape[NEAP__NPY_MOST_DIMS];
	int64_t count;	/* the product of the shape */
	size_t data_at; /* where the elements begin */
};

/*
 * Parses the beginning of a file, of which there are `size` bytes; `where` names the array in
 * messages. 0 or NEAP_EFORMAT. All numbers of the header are consistent after 0; whether the file
 * holds that many elements is the caller's to check.
 */
int neap__npy_header_parse(
	struct neap__npy_header *header, const void *bytes, size_t size, const char *where);

#endif
