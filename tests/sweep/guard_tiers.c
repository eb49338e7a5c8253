/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard_tiers.c: the tiers of a test whose sweeps are guarded or late: they get addresses that they
 * may touch, of bytes that the model's calls have written.
 */
#include "guard_memory.h"
#include "late_calls.h"
#include <neap/neap.h>
#include "store/tier_state.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define TIERS 4096

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void stop(const char *why)
{
	fprintf(stderr, "guard_tiers.c: %s\n", why);
	abort();
}

/* Tiers: the functions that are passed addresses, by the tier's self. */
struct patched {
	void *self;
	struct neap_tier_ops ops;
};
static struct patched tiers[TIERS];

static struct neap_tier_ops ops_of(const void *self)
{
	struct neap_tier_ops ops = {0};
	pthread_mutex_lock(&lock);
	for (int i = 0; i < TIERS && tiers[i].self; i++)
		if (tiers[i].self == self)
			ops = tiers[i].ops;
	pthread_mutex_unlock(&lock);
	return ops;
}

static int put(
	void *self, int64_t place, uint64_t tag, const void *from, uint64_t bytes, int64_t *ticket)
{
	late_expect_none("put");
	return ops_of(self).put(self, place, tag, guarded_address(from), bytes, ticket);
}

static int get(void *self, int64_t place, uint64_t tag, void *into, uint64_t bytes, int64_t *ticket)
{
	late_expect_none("get");
	return ops_of(self).get(self, place, tag, guarded_address(into), bytes, ticket);
}

typedef int span_call(void *self, int64_t place, uint64_t tag, const struct neap_span *spans,
	int count, int64_t *ticket);

/* Tiers keep the list of spans until a transfer ends: it is changed in place. */
static int with_spans(span_call *call, void *self, int64_t place, uint64_t tag,
	const struct neap_span *spans, int count, int64_t *ticket)
{
	late_expect_none("a transfer of spans");
	struct neap_span *own = (struct neap_span *)(uintptr_t)spans;
	for (int i = 0; i < count; i++)
		own[i].at = guarded_address(own[i].at);
	return call(self, place, tag, own, count, ticket);
}

#define SPANS(name)                                                                                \
	static int name(void *self, int64_t place, uint64_t tag, const struct neap_span *spans,    \
		int count, int64_t *ticket)                                                        \
	{                                                                                          \
		return with_spans(ops_of(self).name, self, place, tag, spans, count, ticket);      \
	}
SPANS(put_tapes)
SPANS(get_tapes)
SPANS(put_spans)
SPANS(get_spans)

static void patch(struct neap_tier *tier)
{
	if (!tier || tier->gone || tier->ops.put == put || !tier->ops.put)
		return;
	pthread_mutex_lock(&lock);
	int i = 0;
	while (i < TIERS && tiers[i].self && tiers[i].self != tier->self)
		i++;
	if (i == TIERS)
		stop("too many tiers");
	tiers[i] = (struct patched){tier->self, tier->ops};
	pthread_mutex_unlock(&lock);
	tier->ops.put = put;
	tier->ops.get = get;
	tier->ops.put_tapes = tier->ops.put_tapes ? put_tapes : NULL;
	tier->ops.get_tapes = tier->ops.get_tapes ? get_tapes : NULL;
	tier->ops.put_spans = tier->ops.put_spans ? put_spans : NULL;
	tier->ops.get_spans = tier->ops.get_spans ? get_spans : NULL;
}

void guard_tiers(const struct neap_sweep_options *o)
{
	for (int i = 0; o->tiers && i < o->ntiers && i < NEAP_TIERS_MAX; i++)
		patch(o->tiers[i]);
}
