/* SPDX-License-Identifier: Apache-2.0 */
/* tier_cost.h: rates of a slow tier by itself, and its transfer overhead beside a computation. */
#ifndef NEAP_STORE_TIER_COST_H
#define NEAP_STORE_TIER_COST_H

#include <neap/tier.h>

/*
 * Bytes that measuring before a run may take beyond the arena that the run is planned with. Chosen:
 * less than the program itself takes, and beyond the second-level caches, so that slots and tapes
 * are not measured in a cache that they do not have to themselves. Each measurement maps the
 * memory of one step, which every arena has, and at most this many bytes more.
 */
#define NEAP__MEASURE_MOST ((uint64_t)16 << 20)

/* The median of values, which are sorted here, and their range as a share of it; n >= 1. */
struct neap_timing neap__timing_of(double *values, int n);

/* What transfers are measured with: the public calls, or those of whoever has the tier
 * (tier_use.c). */
struct neap__tier_calls {
	int (*format)(struct neap_tier *tier, uint64_t bytes, int64_t places, void *staging);
	int (*put)(struct neap_tier *tier, int64_t place, uint64_t tag, const void *from,
		uint64_t bytes, int64_t *ticket);
	int (*get)(struct neap_tier *tier, int64_t place, uint64_t tag, void *into, uint64_t bytes,
		int64_t *ticket);
	int (*wait)(struct neap_tier *tier, int64_t ticket);
	int (*measure)(struct neap_tier *tier, uint64_t bytes, double seconds);
};
extern const struct neap__tier_calls neap__tier_public_calls;

/*
 * Maps bytes to measure with, in the memory of the tier's records, and writes to them. Ordinary
 * memory is mapped in pages, as an arena is, since copies from other memory would be slower. 0 or a
 * negative code.
 */
int neap__tier_map(const struct neap_tier *tier, unsigned char **buffer, uint64_t bytes);
void neap__tier_unmap(const struct neap_tier *tier, void *buffer, uint64_t bytes);

/* A computation that transfers are measured beside. */
struct neap__work {
	int (*run)(void *user);
	void *user;
	double seconds; /* without transfers beside it, about */
};

/*
 * Seconds that a computation loses per processor second of the transfers, at most: a bound against
 * noise. Where all threads wait for the one that a second is taken from, they lose a second; the
 * interrupts of a disk, which no process is charged with, and cold caches come on top. Measured
 * with a disk and two threads on two processors: 1.2 to 1.6 (`neap compare --slow DIR` with
 * NEAP_LOG=debug).
 */
#define NEAP__LOST_MOST 2

/* How much transfers and a computation slow each other. */
struct neap__beside {
	double cpu, fixed; /* seconds of computing lost a byte moved, and a record */
	double slowed;	   /* rate beside the computation over the rate by itself, at most 1 */
	double busy;	   /* processor seconds that moving a byte takes */
};

/*
 * Measures how fast a tier is by itself, with records of 4 KiB and of `bytes` (at least
 * 256 KiB, and no more than 4 MiB or a 16th of `memory`), `repeats` times for `seconds`, and sets
 * its rates. `cost` (may be NULL) gets all of it. Drops what the tier held.
 */
int neap__tier_cost_rates(const struct neap__tier_calls *calls, struct neap_calibrated_tier *cost,
	struct neap_tier *tier, uint64_t bytes, uint64_t memory, int repeats, double seconds);

/* Bytes of `memory` that are left to a computation beside records of neap__tier_cost_beside. */
uint64_t neap__tier_cost_left(uint64_t memory);

/*
 * Measures that with `repeats` runs of `work` beside small and beside large records,
 * each after one without transfers, on a tier whose rates are known. Sets the tier's cpu, and its
 * rates to those beside the computation. Drops what the tier held. The records take an eighth of
 * `memory` at most; where that is too little, or the tier holds an interrupted sweep, nothing is
 * measured.
 */
int neap__tier_cost_beside(const struct neap__tier_calls *calls, struct neap__beside *beside,
	struct neap_tier *tier, const struct neap__work *work, uint64_t memory, int repeats);

/* Measures both, one after the other. */
int neap__tier_cost_measure(const struct neap__tier_calls *calls, struct neap_calibrated_tier *cost,
	struct neap_tier *tier, uint64_t bytes, const struct neap__work *work, uint64_t memory,
	int repeats, double seconds);

#endif
