/* SPDX-License-Identifier: Apache-2.0 */
/*
 * columns.h: one-dimensional arrays by name, of an archive of NumPy arrays or of an HDF5 file; or
 * the fields of a .npy file of records. The
 * name "0/x" is the data set x of the group 0, the array "0/x", or the field x of the array "0" (of
 * records).
 */
#ifndef NEAP_DATA_EVENTS_COLUMNS_H
#define NEAP_DATA_EVENTS_COLUMNS_H

#include <stdint.h>
#include <neap/status.h>

struct neap__columns;

struct neap__column {
	int64_t count;
	int real, text; /* kind; neither: integers */
	void *array;	/* of the kind of file */
	int field;	/* of a record; of an HDF5 file, -1: no record */
};

struct neap__columns {
	const char *path;  /* borrowed */
	int unreadable;	   /* 1: an array is there, but this build cannot decompress it */
	int width, height; /* of the sensor, as an attribute of the file specifies; 0: unknown */
	/* 1 and a column, to be shut; 0 where there is none of that name; or a negative code. */
	int (*find)(struct neap__columns *columns, const char *name, struct neap__column *column);
	int (*read)(struct neap__columns *columns, const struct neap__column *column, int64_t first,
		int64_t count, double *out);
	int (*texts)(
		struct neap__columns *columns, const char *name, int most, char ***out, int *count);
	void (*shut)(struct neap__columns *columns, struct neap__column *column);
	void (*close)(struct neap__columns *columns);
};

/* A .npz file, or .npy by its name. */
int neap__npz_columns_open(struct neap__columns **columns, const char *path);
int neap__h5_columns_open(struct neap__columns **columns, const char *path);
/*
 * All numbers of an array of at most `most`, allocated: 1, 0 where there is none, or a negative
 * code.
 */
int neap__column_all(struct neap__columns *columns, const char *name, int64_t most, double **out,
	int64_t *count);

#endif
