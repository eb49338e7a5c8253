/* SPDX-License-Identifier: Apache-2.0 */
/* simulate.h: the simulator's clock, one action at a time, for simulate, predict and the SVG. */
#ifndef NEAP_PLAN_CORE_SIMULATE_H
#define NEAP_PLAN_CORE_SIMULATE_H

#include <neap/plan.h>

/* Differences of the times that were compared, in order; the first `room` are stored. */
struct neap__clock_trace {
	long double *difference;
	int64_t count, room;
};

struct neap__clock {
	const struct neap_problem *problem;
	long double now;
	/* When a channel is done with what was issued; `in` is used by duplex tiers only. */
	long double out[NEAP_TIERS_MAX], in[NEAP_TIERS_MAX];
	long double advance, record, backward, copies;
	long double lost;
	long double stall_write[NEAP_TIERS_MAX], stall_read[NEAP_TIERS_MAX];
	struct neap_tier_use use[NEAP_TIERS_MAX];
	int highest;			 /* tickets at and above it were never used */
	int writing;			 /* PUTs in flight */
	struct neap__clock_trace *trace; /* NULL: none */
	struct {
		int tier; /* -1: not in flight */
		int write, payload;
		int64_t place;
		long double start, end;
	} tickets[NEAP_TICKETS];
};

/* Notes a comparison of times, in favour of the later one where it is positive. */
static inline void neap__clock_note(struct neap__clock *clock, long double difference)
{
	struct neap__clock_trace *t = clock->trace;
	if (t && t->count < t->room)
		t->difference[t->count++] = difference;
}

void neap__clock_init(struct neap__clock *clock, const struct neap_problem *problem);
/* 0, or NEAP_EILLEGAL for a tier or ticket that does not exist. */
int neap__clock_step(struct neap__clock *clock, const struct neap_action *action);

#endif
