/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tape_sizes.h: bytes of tape along a batch. Activity comes in bursts, so a chunk of c steps may
 * need far more than c mean tapes. The worst mean over c steps falls from that of the fullest
 * block to that of the batch as c grows.
 */
#ifndef NEAP_MEASURE_TAPE_SIZES_H
#define NEAP_MEASURE_TAPE_SIZES_H

#include <neap/sweep.h>

/* Bytes of tape by blocks of 64 steps. Free with neap__tape_sizes_free. */
struct neap__tape_sizes {
	int64_t steps, blocks;
	double *bytes; /* [blocks] */
};

/* Room for `steps` steps, all zero. */
int neap__tape_sizes_make(struct neap__tape_sizes *tapes, int64_t steps);
void neap__tape_sizes_free(struct neap__tape_sizes *tapes);

/* Adds what a record call over [t0, t1) wrote. */
void neap__tape_sizes_add(struct neap__tape_sizes *tapes, int64_t t0, int64_t t1, size_t bytes);

/* Largest mean bytes a step over `window` steps, of whole blocks; 0 steps: 0. */
double neap__tape_sizes_worst(const struct neap__tape_sizes *tapes, int64_t window);

#endif
