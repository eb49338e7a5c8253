/* SPDX-License-Identifier: Apache-2.0 */
/*
 * array_out.h: writes HDF5 files of arrays as array_set.c reads them: x, lengths, y and names,
 * with samples of unequal length, whose padding takes no room. Steps are added one by one.
 */
#ifndef NEAP_DATA_FORMATS_ARRAY_OUT_H
#define NEAP_DATA_FORMATS_ARRAY_OUT_H

#include <stdint.h>
#include <neap/data.h>

struct neap__array_shape {
	int64_t samples, steps; /* steps: of the longest */
	int64_t rows;		/* steps of all samples */
	int features;
	enum neap_target target;
	int width;   /* numbers of a target; 1 of classes, 0: there is no y */
	int classes; /* 1: y holds classes, 0: numbers */
	/* Borrowed until the file is finished; NULL: none. */
	const char *const *feature_names; /* [features] */
	const char *const *output_names;  /* [width] of targets that are numbers */
	const char *sample_column;	  /* of the table that the rows are from */
	const char *missing;		  /* how missing values were treated; NULL: none were */
};

struct neap__array_out;

/* Begins the file; *out is NULL after a failure. */
int neap__array_out_open(
	struct neap__array_out **out, const char *path, const struct neap__array_shape *shape);
/*
 * Adds a step: value[features], and target[width] where targets are of steps (NaN: masked).
 * `begins` 1: the first of a sample, whose target[width] it brings where targets are of samples.
 */
int neap__array_out_step(
	struct neap__array_out *out, int begins, const double *value, const double *target);
/* Writes the rest, gives the file its name; frees `out` in any case. */
int neap__array_out_finish(struct neap__array_out *out, const char *const *classes, int count);
/* Removes what is not finished. NULL is fine. */
void neap__array_out_abort(struct neap__array_out *out);

#endif
