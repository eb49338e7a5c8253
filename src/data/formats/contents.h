/* SPDX-License-Identifier: Apache-2.0 */
/*
 * contents.h: what an array file holds (.npz, .npy, HDF5), for the line that refuses it: names,
 * types and shapes of its arrays, and the Python that makes a file of them which neap reads.
 */
#ifndef NEAP_DATA_FORMATS_CONTENTS_H
#define NEAP_DATA_FORMATS_CONTENTS_H

#include <stddef.h>
#include <stdint.h>
#include <neap/status.h>

enum { NEAP__CONTENTS_MOST = 24 /* arrays that are looked at */, NEAP__CONTENTS_DIMS = 8 };

struct neap__content {
	char name[64]; /* "train/x" in a group of HDF5; "" of a .npy file */
	char type[64]; /* "float32", "records of t, x" */
	int dims;      /* -1: unknown */
	int64_t size[NEAP__CONTENTS_DIMS];
	int object;	 /* 1: Python objects */
	int text;	 /* 1: not numbers */
	int has_t_and_x; /* 1: records of events */
};

struct neap__contents {
	struct neap__content item[NEAP__CONTENTS_MOST];
	int count;
	int64_t more; /* arrays beyond */
};

/* Fills in the arrays of a file; none where it cannot be read. */
void neap__contents_list(struct neap__contents *contents, const char *path);
/* Refuses a folder where a data set is expected: the data set in it, or how it is encoded. A folder
 * with the folders train and test becomes two files. Opens files with HDF5: without its lock. */
int neap__contents_refuse_folder(const char *path);
/* The path of the data set in the folder that was probably meant to room[size]; 0: there is none.
 */
int neap__contents_set_in(char *room, size_t size, const char *folder);

#endif
