/* SPDX-License-Identifier: Apache-2.0 */
/*
 * npz.h: zip archives of NumPy arrays (numpy.savez, numpy.savez_compressed), through libzip: stored
 * and deflated members, zip64. A stored array is read from the archive in place. A deflated array
 * cannot be read in part: it is unpacked when it is opened, into memory up to 1 MiB, beyond
 * into a file without a name in $TMPDIR or /var/tmp.
 */
#ifndef NEAP_DATA_NPY_NPZ_H
#define NEAP_DATA_NPY_NPZ_H

#include "data/npy/npy.h"

struct neap__npz;

/* 0, NEAP_EFORMAT or -errno. */
int neap__npz_open(struct neap__npz **out, const char *path);
/* Close its arrays first. */
void neap__npz_close(struct neap__npz *archive);
/* Number of arrays, and the name of one without ".npy", in the order of the archive. */
int64_t neap__npz_arrays(const struct neap__npz *archive);
const char *neap__npz_name(const struct neap__npz *archive, int64_t number);
/* Its header alone, whatever its type. 0, NEAP_EFORMAT or -errno. */
int neap__npz_header(struct neap__npy_header *header, struct neap__npz *archive, int64_t number);
int neap__npz_has(const struct neap__npz *archive, const char *name);
/* The array of that name, to be closed by the caller. 0, NEAP_EFORMAT or -errno. */
int neap__npz_array(struct neap__npy **out, struct neap__npz *archive, const char *name);

#endif
