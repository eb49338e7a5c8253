/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npy.h: arrays of NumPy, in a file of their own (.npy) or in a zip archive of several (.npz), read
 * a range of elements at a time. Elements are numbered in C order, the last index fastest, whatever
 * the order in the file. Memory does not grow with an array, but for the cases that npz.c and
 * npy.c name. No call is thread-safe for one archive or its arrays.
 *
 *     struct neap__npz *archive;
 *     struct neap__npy *x;
 *     neap__npz_open(&archive, "spikes.npz");
 *     neap__npz_array(&x, archive, "x");
 *     const struct neap__npy_header *h = neap__npy_shape(x);  // kind, dims, shape, count
 *     neap__npy_doubles(x, 0, first, count, out);
 */
#ifndef NEAP_DATA_NPY_NPY_H
#define NEAP_DATA_NPY_NPY_H

#include "data/npy/npy_header.h"

struct neap__npy;

/* Opens a .npy file. 0, NEAP_EFORMAT or -errno. */
int neap__npy_open(struct neap__npy **out, const char *path);
void neap__npy_close(struct neap__npy *array);
/* The header of a .npy file alone, whatever its type. 0, NEAP_EFORMAT or -errno. */
int neap__npy_header(struct neap__npy_header *header, const char *path);

/* Types and shape. The file holds as many elements as it says. Owned by the array. */
const struct neap__npy_header *neap__npy_shape(const struct neap__npy *array);
/* "'spikes.npz': 'x'", for messages. Owned by the array. */
const char *neap__npy_where(const struct neap__npy *array);
/* Number of the field of that name of an array of records, or -1. */
int neap__npy_field(const struct neap__npy *array, const char *name);

/*
 * Elements [first, first + count) as numbers; `field` is 0 where the array holds no records. 0,
 * NEAP_EFORMAT (text; a number that is no integer, or larger than one of 64 bits; damaged), or
 * -errno. The range must lie within the array. What is not finite is the caller's to check.
 */
int neap__npy_doubles(
	struct neap__npy *array, int field, int64_t first, int64_t count, double *out);
int neap__npy_integers(
	struct neap__npy *array, int field, int64_t first, int64_t count, int64_t *out);
/* All elements of a one-dimensional array of text, as UTF-8, at most `most`: *out from malloc. */
int neap__npy_strings(struct neap__npy *array, int64_t most, char ***out, int *count);

#endif
