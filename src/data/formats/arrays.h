/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arrays.h: data sets that are arrays of numbers (array_set.c), and where the arrays come from: a
 * kind of file finds an array by its name and reads parts of it (h5_arrays.c).
 */
#ifndef NEAP_DATA_FORMATS_ARRAYS_H
#define NEAP_DATA_FORMATS_ARRAYS_H

#include <stddef.h>
#include <stdint.h>

struct neap_dataset;
struct neap__array_file;

enum { NEAP__ARRAY_DIMS = 3 /* of an array, at most */ };

enum neap__array_kind {
	NEAP__ARRAY_INTEGERS, /* bool is one of them */
	NEAP__ARRAY_REALS,
	NEAP__ARRAY_TEXTS
};

/* An array of a file, in C order. */
struct neap__array {
	const char *name;
	int there, dims;
	int64_t size[NEAP__ARRAY_DIMS], count; /* count: numbers in all */
	enum neap__array_kind kind;
	int number; /* of the file's, for its functions */
};

struct neap__array_file_ops {
	/* Finds an array; array->there is 0 where there is none. 0 or NEAP_EFORMAT. */
	int (*find)(struct neap__array_file *file, const char *name, struct neap__array *array);
	/*
	 * Reads `count` numbers from number `at` on. They lie within one element of the first
	 * dimension where there are more, and are whole elements of the last of three.
	 */
	int (*read)(struct neap__array_file *file, const struct neap__array *array, int64_t at,
		int64_t count, double *numbers);
	/* Reads all texts of a one-dimensional array; to be freed by neap__names_free. */
	int (*texts)(struct neap__array_file *file, const struct neap__array *array, int most,
		char ***texts, int *count);
	void (*close)(struct neap__array_file *file);
};

/* A kind of file embeds this as its first member; it comes from calloc, and close frees it. */
struct neap__array_file {
	const struct neap__array_file_ops *ops;
	char *path;
	size_t read_bytes; /* that reading takes beside the numbers */
	char slow[256];	   /* as a data set has it */
};

/* Makes a data set of the arrays of a file, which it owns in any case. 0 or a negative code. */
int neap__array_set_open(struct neap_dataset **set, struct neap__array_file *file);

#endif
