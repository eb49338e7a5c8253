/* SPDX-License-Identifier: Apache-2.0 */
/* tiercost.h: what a slow tier costs, alone and beside a computation. */
#ifndef NEAP_TRAIN_TIERCOST_H
#define NEAP_TRAIN_TIERCOST_H

#include <neap/train.h>

/* The median of values, which are sorted here, and the width of their middle half; n >= 1. */
struct neap_timing neap__timing_of(double *values, int n);

/* A computation, for as long as it takes. */
struct neap__work {
	int (*run)(void *user);
	void *user;
	double alone; /* seconds alone, about */
};

/* What transfers and a computation take from each other. */
struct neap__beside {
	double cpu;    /* seconds of computing lost a byte moved */
	double slowed; /* rate beside the computation over the rate alone, at most 1 */
};

/*
 * Measures that with `repeats` runs of `work` alone and in each direction, on a tier
 * whose rates are known. Sets the tier's cpu. Drops what the tier held.
 */
int neap__tiercost_beside(struct neap__beside *beside, struct neap_tier *tier,
	const struct neap__work *work, int repeats);

/*
 * What a record of up to `bytes` (at least 256 KiB) takes, and what transfers and `work`
 * take from each other. `seconds`: for each of `repeats` measurements.
 * Sets the tier's rates and cpu. Drops what the tier held.
 */
int neap__tiercost_measure(struct neap_calibrated_tier *cost, struct neap_tier *tier,
	uint64_t bytes, const struct neap__work *work, int repeats, double seconds);

#endif
