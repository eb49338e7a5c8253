/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tier_calls.c: the public calls of a tier. Each has the tier alone while it lasts, and is refused
 * where another call or the run of a sweep has it (tier_use.c).
 */
#include "store/tier_state.h"
#include "base/fail.h"

/* Enters, makes the call and leaves. */
#define ALONE(tier, call)                                                                          \
	do {                                                                                       \
		NEAP_TRY(neap__tier_enter(tier, __func__));                                        \
		int alone_ = (call);                                                               \
		neap__tier_leave(tier);                                                            \
		return alone_;                                                                     \
	} while (0)

/* The same with records, whose places the caller has made. */
#define ALONE_WITH_RECORDS(tier, call)                                                             \
	ALONE(tier, is_own(tier, __func__) < 0 ? NEAP_EUSAGE : (call))

static int is_own(const struct neap_tier *tier, const char *function)
{
	if (tier->own)
		return 0;
	return neap__fail(NEAP_EUSAGE,
		"%s: %s has no places of yours: it is not formatted, or was by a sweep. Call "
		"neap_tier_format first",
		function, tier->about);
}

int neap_tier_format(struct neap_tier *tier, uint64_t bytes, int64_t places, void *staging)
{
	NEAP_NEED(tier);
	ALONE(tier, neap__tier_format(tier, bytes, places, &(struct neap__staging){.at = staging}));
}

void neap_tier_lend(struct neap_tier *tier, uint64_t bytes)
{
	if (!tier || neap__tier_enter(tier, __func__) < 0)
		return;
	neap__tier_lend(tier, bytes);
	neap__tier_leave(tier);
}

int neap_tier_put(struct neap_tier *tier, int64_t place, uint64_t tag, const void *from,
	uint64_t bytes, int64_t *ticket)
{
	NEAP_NEED(tier, ticket);
	ALONE_WITH_RECORDS(tier, neap__tier_put(tier, place, tag, from, bytes, ticket));
}

int neap_tier_get(struct neap_tier *tier, int64_t place, uint64_t tag, void *into, uint64_t bytes,
	int64_t *ticket)
{
	NEAP_NEED(tier, ticket);
	ALONE_WITH_RECORDS(tier, neap__tier_get(tier, place, tag, into, bytes, ticket));
}

int neap_tier_put_spans(struct neap_tier *tier, int64_t place, uint64_t tag,
	const struct neap_span *spans, int count, int64_t *ticket)
{
	NEAP_NEED(tier, spans, ticket);
	ALONE_WITH_RECORDS(tier, neap__tier_put_spans(tier, place, tag, spans, count, ticket));
}

int neap_tier_get_spans(struct neap_tier *tier, int64_t place, uint64_t tag,
	const struct neap_span *spans, int count, int64_t *ticket)
{
	NEAP_NEED(tier, spans, ticket);
	ALONE_WITH_RECORDS(tier, neap__tier_get_spans(tier, place, tag, spans, count, ticket));
}

int neap_tier_format_tapes(struct neap_tier *tier, uint64_t bytes, int64_t places, uint64_t staging)
{
	NEAP_NEED(tier);
	ALONE_WITH_RECORDS(tier, neap__tier_format_tapes(tier, bytes, places, staging));
}

int neap_tier_put_tapes(struct neap_tier *tier, int64_t place, uint64_t tag,
	const struct neap_span *spans, int count, int64_t *ticket)
{
	NEAP_NEED(tier, ticket);
	ALONE_WITH_RECORDS(tier, neap__tier_put_tapes(tier, place, tag, spans, count, ticket));
}

int neap_tier_get_tapes(struct neap_tier *tier, int64_t place, uint64_t tag,
	const struct neap_span *spans, int count, int64_t *ticket)
{
	NEAP_NEED(tier, ticket);
	ALONE_WITH_RECORDS(tier, neap__tier_get_tapes(tier, place, tag, spans, count, ticket));
}

int neap_tier_wait(struct neap_tier *tier, int64_t ticket)
{
	NEAP_NEED(tier);
	ALONE(tier, neap__tier_wait(tier, ticket));
}

int neap_tier_wait_for(struct neap_tier *tier, int64_t ticket, double seconds)
{
	NEAP_NEED(tier);
	ALONE(tier, neap__tier_wait_for(tier, ticket, seconds));
}

int neap_tier_done(struct neap_tier *tier, int64_t ticket)
{
	NEAP_NEED(tier);
	ALONE(tier, neap__tier_done(tier, ticket));
}

void neap_tier_set_patience(struct neap_tier *tier, double seconds)
{
	if (!tier || neap__tier_enter(tier, __func__) < 0)
		return;
	neap__tier_set_patience(tier, seconds);
	neap__tier_leave(tier);
}

int neap_tier_holds_staging(struct neap_tier *tier)
{
	NEAP_NEED(tier);
	ALONE(tier, neap__tier_holds_staging(tier));
}

int neap_tier_forget(struct neap_tier *tier, int64_t place)
{
	NEAP_NEED(tier);
	ALONE(tier, neap__tier_forget(tier, place));
}

int neap_tier_measure(struct neap_tier *tier, uint64_t bytes, double seconds)
{
	NEAP_NEED(tier);
	ALONE(tier, neap__tier_measure(tier, bytes, seconds));
}
