/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h5_out.h: HDF5 files that are written: beside their name, whole or not at all, the same bytes for
 * the same content. HDF5 may crash when the disk is full, so space is reserved from the file system
 * before HDF5 writes. The structures of a file carry checksums (file format of HDF5 1.10), so that
 * a damaged file is recognised.
 */
#ifndef NEAP_DATA_FORMATS_H5_OUT_H
#define NEAP_DATA_FORMATS_H5_OUT_H

#include "data/formats/h5.h"

struct neap__atomic_file;

struct neap__h5_out {
	const char *path; /* borrowed */
	struct neap__atomic_file *beside;
	int fd; /* the file beside, to reserve room in it */
	uint64_t need, reserved;
	hid_t file;
};

/* Begins the file; `out` is all zero before. 0 or a negative code; abort follows in any case. */
int neap__h5_out_open(struct neap__h5_out *out, const char *path);
/* Makes sure that `bytes` more can be written. */
int neap__h5_out_reserve(struct neap__h5_out *out, uint64_t bytes);
/* The code of a write that failed with this errno. */
int neap__h5_out_failed(const struct neap__h5_out *out, int err);
/* Closes the HDF5 side, whose data sets are closed; negative when its last writes failed. */
int neap__h5_out_close(struct neap__h5_out *out);
/* After close: gives back what was reserved beyond the end, and gives the file its name. */
int neap__h5_out_commit(struct neap__h5_out *out);
/* Removes what is not committed; twice is fine. */
void neap__h5_out_abort(struct neap__h5_out *out);

/* The functions below stand between neap__h5_enter and leave, and are negative on failure. */
int neap__h5_out_group(hid_t file, const char *name);
/* A data set of `count` elements, compressed where that can gain something. */
int neap__h5_out_vector(
	hid_t file, const char *name, hid_t stored, hid_t memory, int64_t count, const void *data);
int neap__h5_out_names(hid_t file, const char *path, const char *const *names, int count);
/* Bytes to reserve for such names. */
uint64_t neap__h5_out_text_bytes(const char *const *names, int count);

#endif
