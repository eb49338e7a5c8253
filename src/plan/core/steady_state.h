/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steady_state.h: detects the steady state of a simulation, so that identical periods are
 * skipped instead of simulated. The clock (simulate.h) is a max-plus recurrence: every time is
 * the larger of two earlier ones plus a constant. While all comparisons have the same result
 * the recurrence is affine, and once three periods in a row differ by the same amounts all
 * later periods do, until the result of a comparison changes. Up to there the clock is moved
 * on by a multiple of the last period's change. That is exact but for rounding, also where
 * the times drift (writes that take a little longer than the steps that hide them).
 */
#ifndef NEAP_PLAN_CORE_STEADY_STATE_H
#define NEAP_PLAN_CORE_STEADY_STATE_H

#include "plan/core/simulate.h"

#define NEAP__STEADY_TRACE 4096 /* comparisons of a period; periods with more are never skipped */

struct neap__steady {
	struct neap__steady_period {
		struct neap__clock clock; /* at its end */
		uint64_t signature;	  /* what else was the case there */
		struct neap__clock_trace trace;
		long double difference[NEAP__STEADY_TRACE];
	} period[3];
	int latest; /* of the three; `known` of them are whole */
	int known, begun;
};

/* Nothing is known any more; the clock is not watched. */
void neap__steady_forget(struct neap__steady *r, struct neap__clock *clock);
/* A period begins: what the clock compares from here on is kept. */
void neap__steady_begin(struct neap__steady *r, struct neap__clock *clock);
/*
 * A period ends. How many more like it, `most` at most, may be left out: 0 unless the
 * last three had the same signature and changes. A new period has to be begun.
 */
int64_t neap__steady_end(
	struct neap__steady *r, struct neap__clock *clock, uint64_t signature, int64_t most);
/* Are three periods known, which it takes to see a steady state? */
int neap__steady_watched(const struct neap__steady *r);

static inline long double neap__steady_move(long double now, long double before, int64_t periods)
{
	return now + (long double)periods * (now - before);
}

/*
 * Moves the clock on by as many periods like the last one: its time, channels, stalls
 * and bytes; tickets are the caller's. Answers the clock as it was a period ago.
 */
const struct neap__clock *neap__steady_skip(
	const struct neap__steady *r, struct neap__clock *clock, int64_t periods);

/* Relative rounding of a long double of 64 bits, 2^-63, and how many may have added up. */
#define NEAP__ROUNDING 1.084202172485504434e-19L
#define NEAP__ROUNDINGS 4096

/* Seconds: times that differ by less are the same. */
static inline long double neap__steady_tolerance(const struct neap__clock *clock)
{
	return NEAP__ROUNDINGS * NEAP__ROUNDING * clock->now;
}

#endif
