/* SPDX-License-Identifier: Apache-2.0 */
/* shd.h: an open file in the layout of the Heidelberg Digits: what shd.c and shd_part.c share. */
#ifndef NEAP_DATA_FORMATS_SHD_H
#define NEAP_DATA_FORMATS_SHD_H

#include "data/dataset.h"
#include "data/formats/h5.h"

/* A duration beyond this (11 days) means a damaged file. */
#define NEAP__LONGEST_SECONDS 1e6

struct neap__shd {
	struct neap_dataset set;
	char *path;
	int strange; /* 1: the file has no /spikes */
	struct neap__h5_file file;
	struct neap__vlen times, units;
	double *duration;     /* [samples] or NULL */
	void *convert;	      /* one row while its type is converted */
	int64_t convert_room; /* elements of 8 bytes */
};

/* shd_part.c: a sample in part (dataset.h). */
int neap__shd_extent(struct neap_dataset *set, int64_t index, struct neap__sample_extent *extent);
int neap__shd_prepare(struct neap_dataset *set, int64_t index);
int neap__shd_part(struct neap_dataset *set, int64_t index, double from, double to, size_t most,
	struct neap__event_buffer *buffer);

#endif
