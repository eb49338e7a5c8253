/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request.h: one request to a tier, from its issue to its answer. Both executors have their
 * transfers made of requests: tickets of a schedule here, flights of a program in stages/.
 */
#ifndef NEAP_SWEEP_TRANSFERS_REQUEST_H
#define NEAP_SWEEP_TRANSFERS_REQUEST_H

#include <neap/sweep.h>
#include "sweep/agree.h"
#include "sweep/arena/fence.h"

struct neap__tier_request {
	int64_t engine; /* the tier's ticket */
	int64_t t, t1;	/* a state: x_t, t1 == t; else the tapes or logs of [t, t1) */
	uint64_t bytes;
	double issued; /* seconds of sys/clock.h when the tier got the request */
	int32_t answer;
	int32_t refused; /* of ranks: the tier's answer at once, which counts once all have it */
	uint16_t tier;	 /* 1 = the first */
	uint8_t put;
	uint8_t payload; /* enum neap_payload */
};

/* What requests need of the sweep that makes them. */
struct neap__request_owner {
	struct neap_tier *const *tiers;
	const struct neap_problem *problem;
	struct neap_trace *trace; /* or NULL */
	struct neap_sweep_stats *stats;
	struct neap__agree_state *agreement;
	struct neap__fence *fence;
};

/* The tag of a record: kind, run and step, so that no record of an earlier run is taken. */
uint64_t neap__request_tag(uint64_t generation, int payload, int64_t t);

/*
 * Hands the request to its tier, once the model's calls are done, unless the tier keeps their
 * order. `one`: of a state in a place for states, spans[0]; else a record of spans. 1: the tier
 * has the request; 0: its answer is known already. Ranks know it only once all have it.
 */
int neap__request_issue(const struct neap__request_owner *o, struct neap__tier_request *request,
	int64_t place, uint64_t tag, const struct neap_span *spans, int count, int one);
/* Waits for the answer of a request that the tier has. */
void neap__request_wait(const struct neap__request_owner *o, struct neap__tier_request *request,
	enum neap_stall reason);
/*
 * Takes back a GET that will be issued again later. 1 if the tier had not begun it. Ranks take
 * nothing back: each would find another answer.
 */
int neap__request_cancel(const struct neap__request_owner *o, struct neap__tier_request *request);
/* Counts a record that the tier lost. */
void neap__request_lost(
	const struct neap__request_owner *o, int tier, int64_t t, int64_t t1, const char *unit);

#endif
