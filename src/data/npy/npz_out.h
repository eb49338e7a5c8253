/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npz_out.h: writes archives of NumPy arrays (.npz) whose arrays grow row by row, side by side.
 * Rows wait in files without names beside the archive, which is put together at the end: memory
 * does not grow with an array. Members are stored, not compressed, and zip64 where they are large.
 * No call is thread-safe for one archive.
 */
#ifndef NEAP_DATA_NPY_NPZ_OUT_H
#define NEAP_DATA_NPY_NPZ_OUT_H

#include <stddef.h>
#include <stdint.h>
#include <neap/status.h>

enum {
	NEAP__NPZ_OUT_MOST = 160, /* arrays of an archive, each an open file until its end */
	NEAP__NPZ_OUT_SCALAR = -1 /* columns of an array of one number, its only row */
};

struct neap__npz_out;

/* Begins the archive that will be called `path`, a regular file. 0, NEAP_EUSAGE or -errno. */
int neap__npz_out_open(struct neap__npz_out **out, const char *path);
/*
 * Adds an array [rows], or [rows][columns] where columns is above 0; its number, or a negative
 * code. `type` is NumPy's, such as "<i8"; a row has `bytes` bytes. Name and type are borrowed.
 */
int neap__npz_out_array(
	struct neap__npz_out *out, const char *name, const char *type, int columns, size_t bytes);
int neap__npz_out_row(struct neap__npz_out *out, int array, const void *row);
/*
 * Says that the rows of an array are samples, one behind the other, as long as the rows of the
 * array `lengths` (<i8) say: it becomes [samples][longest][columns], of NaN beyond a sample's end.
 * Its type is "<f4" or "<f8".
 */
void neap__npz_out_samples(struct neap__npz_out *out, int array, int lengths);
/*
 * Writes the archive beside its name, so that no more than the name is missing; nothing is to be
 * added then. 0 or -errno; in both cases finish or abort follows.
 */
int neap__npz_out_write(struct neap__npz_out *out);
/* Writes the archive, where it is not, and gives it its name; frees `out` in any case. */
int neap__npz_out_finish(struct neap__npz_out *out);
/* Leaves nothing behind. NULL is fine. */
void neap__npz_out_abort(struct neap__npz_out *out);

#endif
