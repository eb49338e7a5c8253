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

enum { NEAP__NPZ_OUT_MOST = 16 }; /* arrays of an archive */

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
/* Writes the archive and gives it its name; frees `out` in any case. */
int neap__npz_out_finish(struct neap__npz_out *out);
/* Leaves nothing behind. NULL is fine. */
void neap__npz_out_abort(struct neap__npz_out *out);

#endif
