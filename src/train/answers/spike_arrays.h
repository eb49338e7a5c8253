/* SPDX-License-Identifier: Apache-2.0 */
/* spike_arrays.h: the spikes of a net as arrays of NumPy, a row a spike (docs/answers.md). */
#ifndef NEAP_TRAIN_ANSWERS_SPIKE_ARRAYS_H
#define NEAP_TRAIN_ANSWERS_SPIKE_ARRAYS_H

#include "data/npy/npz_out.h"

#include <neap/train.h>

struct neap__spike_arrays {
	struct neap__npz_out *out;
	int layer;			   /* -1: all that spike */
	int sample, step, layers_at, unit; /* numbers of arrays */
	int samples, lengths;
};

/* Begins the archive; after a failure there is nothing to end. */
int neap__spike_arrays_open(
	struct neap__spike_arrays *arrays, const char *path, const struct neap_net *net, int layer);
/* Adds the spikes of a step, sorted by sample, step, layer, unit as steps come. */
int neap__spike_arrays_add(struct neap__spike_arrays *arrays, const struct neap_step_view *view);

#endif
