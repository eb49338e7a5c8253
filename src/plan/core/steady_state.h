/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steady_state.h: how far a simulated clock (simulate.h) may be moved on at once. It is a
 * max-plus recurrence: every time is the larger of two earlier ones plus a constant.
 * While all comparisons come out the same way the recurrence is affine, and once
 * three periods in a row differ by the same amounts all later ones do, until the
 * first comparison changes. So the periods up to there may be left out and the clock
 * moved by as many times the last one's change: exact but for rounding, also where
 * the rhythm drifts (writes a hair slower than what hides them).
 */
#ifndef NEAP_PLAN_CORE_STEADY_STATE_H
#define NEAP_PLAN_CORE_STEADY_STATE_H

#include "plan/core/simulate.h"

#define NEAP__RHYTHM_TRACE 4096 /* comparisons of a period; longer ones have no rhythm */

struct neap__steady {
	struct neap__steady_period {
		struct neap__clock clock; /* at its end */
		uint64_t signature;	  /* what else was the case there */
		struct neap__clock_trace trace;
		long double difference[NEAP__RHYTHM_TRACE];
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
 * last three had the same signature and a rhythm. A new one has to be begun.
 */
int64_t neap__steady_end(
	struct neap__steady *r, struct neap__clock *clock, uint64_t signature, int64_t most);
/* Whether as many periods are known as it takes to see a rhythm. */
int neap__steady_watched(const struct neap__steady *r);

static inline long double neap__steady_move(long double now, long double before, int64_t periods)
{
	return now + (long double)periods * (now - before);
}

/*
 * Moves the clock on by as many periods like the last one: its time, channels, stalls
 * and bytes; tickets are the caller's. Answers the clock as it was a period ago.
 */
const struct neap__clock *neap__steady_leap(
	const struct neap__steady *r, struct neap__clock *clock, int64_t periods);

/* Times that differ by less are the same. */
static inline long double neap__steady_doubt(const struct neap__clock *clock)
{
	return 4096 * 1.084202172485504434e-19L * clock->now;
}

#endif
