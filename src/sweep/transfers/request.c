/* SPDX-License-Identifier: Apache-2.0 */
/* request.c: one request to a tier: issued, waited for, counted and traced. */
#include "sweep/transfers/request.h"
#include "sweep/trace/trace_ring.h"
#include "base/debug_log.h"
#include "store/tier_state.h"
#include "sys/clock.h"

#include <errno.h>

uint64_t neap__request_tag(uint64_t generation, int payload, int64_t t)
{
	return (uint64_t)payload << 62 | (generation & 0x3fff) << 48 |
	       ((uint64_t)t & ((UINT64_C(1) << 48) - 1));
}

static struct neap_tier *tier_of(
	const struct neap__request_owner *o, const struct neap__tier_request *request)
{
	return o->tiers[request->tier - 1];
}

/* Counts the time since `start`, in which the sweep waited. */
static void count_stall(const struct neap__request_owner *o,
	const struct neap__tier_request *request, enum neap_stall reason, double start)
{
	double end = neap__seconds();
	o->stats->stalls[reason] += end - start;
	o->stats->stall += end - start;
	neap__trace_add(o->trace, &(struct neap__event){.start = start,
					  .end = end,
					  .t0 = request->t,
					  .t1 = request->t1,
					  .kind = NEAP__EVENT_WAIT + (uint32_t)reason,
					  .flags = request->payload ? NEAP__EVENT_TAPES : 0,
					  .tier = request->tier});
}

/* Adds a transfer to the trace, with the tier's times where they are credible. */
static void trace_transfer(
	const struct neap__request_owner *o, const struct neap__tier_request *request)
{
	const struct neap_tier *tier = tier_of(o, request);
	double now = neap__seconds(), start = 0, end = 0;
	if (!o->trace)
		return;
	if (tier->ops.times)
		tier->ops.times(tier->self, &start, &end);
	if (!(start >= request->issued && end >= start && end <= now)) {
		start = request->issued;
		end = now;
	}
	neap__trace_add(
		o->trace, &(struct neap__event){.queued = request->issued,
				  .start = start,
				  .end = end,
				  .t0 = request->t,
				  .t1 = request->t1,
				  .bytes = request->bytes,
				  .kind = NEAP__EVENT_TRANSFER,
				  .flags = (request->put ? NEAP__EVENT_PUT : 0u) |
					   (request->payload ? NEAP__EVENT_TAPES : 0u) |
					   (request->answer < 0 ? NEAP__EVENT_FAILED : 0u) |
					   (request->answer == -ETIMEDOUT ? NEAP__EVENT_LATE : 0u),
				  .tier = request->tier});
}

int neap__request_issue(const struct neap__request_owner *o, struct neap__tier_request *request,
	int64_t place, uint64_t tag, const struct neap_span *spans, int count, int one)
{
	struct neap_tier *tier = tier_of(o, request);
	int rc;
	if (!tier->ops.in_order)
		neap__fence_wait(o->fence);
	request->issued = neap__seconds();
	if (one && request->put)
		rc = neap__tier_put(tier, place, tag, spans->at, spans->bytes, &request->engine);
	else if (one)
		rc = neap__tier_get(tier, place, tag, spans->at, spans->bytes, &request->engine);
	else if (request->put)
		rc = neap__tier_put_tapes(tier, place, tag, spans, count, &request->engine);
	else
		rc = neap__tier_get_tapes(tier, place, tag, spans, count, &request->engine);
	request->answer = request->refused = rc;
	(request->put ? o->stats->written : o->stats->read)[request->tier - 1] += request->bytes;
	o->stats->lost += neap_tier_lost(&o->problem->tiers[request->tier - 1], request->bytes);
	count_stall(o, request, NEAP_STALL_ISSUE, request->issued);
	return rc == 0 || neap__agrees(o->agreement);
}

void neap__request_wait(const struct neap__request_owner *o, struct neap__tier_request *request,
	enum neap_stall reason)
{
	double start = neap__seconds();
	int answer = request->refused;
	if (answer == 0)
		answer = neap__tier_wait(tier_of(o, request), request->engine);
	o->stats->late += answer == -ETIMEDOUT;
	/* Lost on one rank is lost on all; an agreement that fails ends the run before a call. */
	request->answer = neap__agree_answer(o->agreement, answer);
	count_stall(o, request, reason, start);
	trace_transfer(o, request);
}

int neap__request_cancel(const struct neap__request_owner *o, struct neap__tier_request *request)
{
	int tier = request->tier - 1;
	if (neap__agrees(o->agreement) || request->put ||
		!neap__tier_cancel(o->tiers[tier], request->engine))
		return 0;
	request->answer = 0;
	o->stats->read[tier] -= request->bytes;
	o->stats->lost -= neap_tier_lost(&o->problem->tiers[tier], request->bytes);
	return 1;
}

void neap__request_lost(
	const struct neap__request_owner *o, int tier, int64_t t, int64_t t1, const char *unit)
{
	double now = neap__seconds();
	o->stats->recoveries++;
	neap__debug("tier %d lost %s of %s %lld to %lld, which will be recomputed", tier,
		t1 > t ? "the tapes" : "the state", unit, (long long)t, (long long)t1);
	neap__trace_add(o->trace, &(struct neap__event){.start = now,
					  .end = now,
					  .t0 = t,
					  .t1 = t1,
					  .kind = NEAP__EVENT_LOST,
					  .tier = tier});
}
