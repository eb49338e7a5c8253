/* SPDX-License-Identifier: Apache-2.0 */
/* trace_ring.c: makes a trace, and what is known of it as a whole. */
#include "sweep/trace/trace_ring.h"
#include "base/fail.h"
#include "base/print.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define USUAL 65536		/* events of 64 bytes: 4 MiB */
#define MOST ((int64_t)1 << 30) /* events: 64 GiB */

int neap_trace_create(struct neap_trace **out, const char *name, int64_t capacity)
{
	NEAP_NEED(out, name);
	if (capacity < 0 || capacity > MOST)
		return neap__fail(NEAP_EUSAGE, "trace: %lld events are not between 0 and 2^30",
			(long long)capacity);
	struct neap_trace *trace = calloc(1, sizeof *trace);
	if (!trace)
		return neap__fail_errno(ENOMEM, "trace");
	trace->capacity = capacity ? capacity : USUAL;
	trace->ring = malloc((size_t)trace->capacity * sizeof *trace->ring);
	if (!trace->ring) {
		free(trace);
		return neap__fail_errno(ENOMEM, "trace");
	}
	memset(trace->ring, 0xff,
		(size_t)trace->capacity *
			sizeof *trace->ring); /* so that a run waits for no page */
	neap__print(trace->name, sizeof trace->name, "%s", name ? name : "sweep");
	*out = trace;
	return 0;
}

void neap_trace_free(struct neap_trace *trace)
{
	if (!trace)
		return;
	free(trace->ring);
	free(trace);
}

int64_t neap_trace_events(const struct neap_trace *trace)
{
	if (!trace)
		return 0;
	return trace->added < trace->capacity ? trace->added : trace->capacity;
}

int64_t neap_trace_dropped(const struct neap_trace *trace)
{
	if (!trace)
		return 0;
	return trace->added - neap_trace_events(trace);
}

const char *neap_stall_name(int stall)
{
	static const char *const names[NEAP_STALLS] = {"put", "get", "room", "repair", "issue"};
	return stall >= 0 && stall < NEAP_STALLS ? names[stall] : NULL;
}

void neap__trace_begin(struct neap_trace *trace, const struct neap_problem *problem,
	const struct neap_plan *plan, double start)
{
	if (!trace)
		return;
	trace->added = 0;
	trace->origin = start;
	neap__print(
		trace->strategy, sizeof trace->strategy, "%s", plan->chosen ? plan->chosen : "");
	trace->ntiers = problem->ntiers;
	for (int i = 0; i < problem->ntiers; i++)
		neap__print(trace->tiers[i], sizeof trace->tiers[i], "%s", problem->tiers[i].name);
}

void neap__trace_end(struct neap_trace *trace, const struct neap_sweep_stats *stats)
{
	if (trace)
		trace->stats = *stats;
}
