/* SPDX-License-Identifier: Apache-2.0 */
/* membrane_arrays.h: states of layers over time as arrays of NumPy (docs/answers.md). */
#ifndef NEAP_TRAIN_ANSWERS_MEMBRANE_ARRAYS_H
#define NEAP_TRAIN_ANSWERS_MEMBRANE_ARRAYS_H

#include "data/npy/npz_out.h"

#include <neap/train.h>

struct neap__membrane_row;

struct neap__membrane_arrays {
	struct neap__npz_out *out;
	struct neap__membrane_row *row; /* [rows] arrays */
	int rows;
	int samples, lengths; /* numbers of arrays */
	float *room;	      /* [widest] a row in float */
};

/* Begins the archive, of a layer or, -1, of all; after a failure there is nothing to end. */
int neap__membrane_arrays_open(struct neap__membrane_arrays *arrays, const char *path,
	const struct neap_net *net, int layer);
int neap__membrane_arrays_add(
	struct neap__membrane_arrays *arrays, const struct neap_step_view *view);
/* Frees all but the archive. */
void neap__membrane_arrays_free(struct neap__membrane_arrays *arrays);

#endif
