/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_ring.h: the ring of events behind neap/trace.h: where it is full, the newest event takes
 * the place of the oldest.
 */
#ifndef NEAP_SWEEP_TRACE_RING_H
#define NEAP_SWEEP_TRACE_RING_H

#include <neap/sweep.h>

enum neap__event_kind {
	NEAP__EVENT_ADVANCE,
	NEAP__EVENT_RECORD,
	NEAP__EVENT_REPLAY, /* tapes from a log */
	NEAP__EVENT_TURN,
	NEAP__EVENT_BACKWARD,
	NEAP__EVENT_COPY,    /* of a state, in tier 0 */
	NEAP__EVENT_FENCE,   /* waited for calls that had returned before */
	NEAP__EVENT_RECOVER, /* a state that a tier lost was made again */
	NEAP__EVENT_REFILL,  /* tapes of a hole were made again */
	NEAP__EVENT_WAIT,    /* + enum neap_stall; the last of what computing does */
	NEAP__EVENT_TRANSFER = NEAP__EVENT_WAIT + NEAP_STALLS,
	NEAP__EVENT_OVERFLOW, /* marks from here on */
	NEAP__EVENT_LOST,
	NEAP__EVENT_REPLAN,
	NEAP__EVENTS
};

enum {
	NEAP__EVENT_PUT = 1,
	NEAP__EVENT_TAPES = 2,
	NEAP__EVENT_FAILED = 4,
	NEAP__EVENT_LATE = 8, /* given up */
};

struct neap__event {
	double start, end, queued; /* seconds of sys/clock.h; queued: when a transfer was issued */
	int64_t t0, t1;		   /* steps; t1 == t0: a state */
	uint64_t bytes;
	uint32_t kind, flags;
	int32_t tier; /* 1 = the first; 0: none */
	int32_t reserved;
};
_Static_assert(sizeof(struct neap__event) == 64, "neap/trace.h states the bytes");

struct neap_trace {
	char name[64];
	int64_t capacity, added; /* events of this run; the oldest beyond `capacity` are dropped */
	struct neap__event *ring;
	/* of the run */
	double origin;
	char strategy[24];
	int ntiers;
	char tiers[NEAP_TIERS_MAX][24];
	struct neap_sweep_stats stats;
};

/* With trace NULL these do nothing. */
void neap__trace_begin(struct neap_trace *trace, const struct neap_problem *problem,
	const struct neap_plan *plan, double start);
void neap__trace_end(struct neap_trace *trace, const struct neap_sweep_stats *stats);

static inline void neap__trace_add(struct neap_trace *trace, const struct neap__event *event)
{
	if (trace)
		trace->ring[trace->added++ % trace->capacity] = *event;
}

#endif
