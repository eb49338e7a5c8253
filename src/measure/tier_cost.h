/* SPDX-License-Identifier: Apache-2.0 */
/* tier_cost.h: what a slow tier costs, alone and beside a computation. */
#ifndef NEAP_MEASURE_TIER_COST_H
#define NEAP_MEASURE_TIER_COST_H

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
	double cpu, fixed; /* seconds of computing lost a byte moved, and a record */
	double slowed;	   /* rate beside the computation over the rate alone, at most 1 */
	/*
	 * Processor seconds that moving a byte takes: where all threads wait for the one
	 * that they are taken from, the computation loses as much, and never more.
	 */
	double most;
};

/*
 * Measures how fast a tier is alone, with records of 4 KiB and of `bytes` (at least
 * 256 KiB), `repeats` times for `seconds`, and sets its rates. `cost` (may be NULL) gets
 * all of it. Drops what the tier held.
 */
int neap__tier_cost_rates(struct neap_calibrated_tier *cost, struct neap_tier *tier, uint64_t bytes,
	int repeats, double seconds);

/*
 * Measures that with `repeats` runs of `work` beside small and beside large records,
 * each after one alone, on a tier whose rates are known. Sets the tier's cpu, and its
 * rates to those beside the computation. Drops what the tier held.
 */
int neap__tier_cost_beside(struct neap__beside *beside, struct neap_tier *tier,
	const struct neap__work *work, int repeats);

/*
 * Both of these.
 */
int neap__tier_cost_measure(struct neap_calibrated_tier *cost, struct neap_tier *tier,
	uint64_t bytes, const struct neap__work *work, int repeats, double seconds);

#endif
