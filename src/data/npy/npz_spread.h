/* SPDX-License-Identifier: Apache-2.0 */
/* npz_spread.h: makes samples of different lengths equally long, within a file of their rows. */
#ifndef NEAP_DATA_NPY_NPZ_SPREAD_H
#define NEAP_DATA_NPY_NPZ_SPREAD_H

#include <stddef.h>
#include <stdint.h>

struct neap__npz_samples {
	size_t from; /* byte of the first row, and of the first length */
	size_t row;  /* bytes of a row, whole numbers of `item` bytes: 4 or 8 */
	size_t item;
	int64_t rows;		  /* of all samples */
	int64_t samples, longest; /* longest: rows of the longest sample, found */
};

/*
 * Moves the samples of file `rows` to multiples of the longest one and fills the rows behind each
 * with NaN, in memory that does not grow. File `lengths` has the rows of each sample, int64. 0, or
 * an errno: EOVERFLOW where the file would be too large, EINVAL where lengths and rows differ.
 */
int neap__npz_spread(struct neap__npz_samples *samples, int rows, int lengths);

#endif
