/* SPDX-License-Identifier: Apache-2.0 */
/* fault_tier.c: counts requests, and damages, refuses or delays those that the faults name. */
#include "store/fault_tier.h"
#include "base/fail.h"
#include "base/print.h"
#include "sys/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define TRANSFERS 1024 /* in flight at most, a power of two */

struct fault {
	struct neap_tier *inner;
	const struct neap__faults *faults;
	struct neap__fault_counts counts;
	uint64_t taken;
	double patience;
	/* Of the slow channels: when they are free, and what they do; by the inner ticket. */
	double free_at[2];
	struct fault_transfer {
		double start, end;
	} transfers[TRANSFERS], waited;
};

#define HUNG INT64_MAX /* the ticket of a request that hangs */

/* A ticket is the inner tier's, doubled, or an odd number: an answer that is known already. */
static int64_t known(int answer)
{
	return (int64_t)-answer << 1 | 1;
}

static int refuse(struct fault *fault, int code, int64_t *ticket)
{
	fault->counts.failed++;
	code = code ? code : -EIO;
	if (fault->faults->at_once)
		return neap__fail(code, "a fault was asked for");
	*ticket = known(code);
	return 0;
}

/* Is request n one of the row that begins with `first`? */
static int hit(const struct fault *fault, int64_t n, int64_t first)
{
	int64_t row = fault->faults->row ? fault->faults->row : 1;
	return first && n >= first && n < first + row;
}

/* A request that hangs is never made. */
static int hangs(struct fault *fault, int64_t n, int64_t first, int64_t *ticket)
{
	int64_t after = fault->faults->hang_after;
	int all = after && fault->counts.puts + fault->counts.gets > after;
	if (atomic_load(&fault->faults->released) || !(all || hit(fault, n, first)))
		return 0;
	fault->counts.hung++;
	*ticket = HUNG;
	return 1;
}

static int wait_for_hung(const struct fault *fault)
{
	double start = neap__seconds();
	while (!atomic_load(&fault->faults->released)) {
		if (fault->patience > 0 && neap__seconds() - start > fault->patience)
			return neap__fail(-ETIMEDOUT, "a fault was asked for");
		neap__sleep(2e-4);
	}
	return neap__fail(-EIO, "a fault was asked for");
}

static int gone(const struct fault *fault)
{
	int64_t after = fault->faults->gone_after;
	return after && fault->counts.puts + fault->counts.gets > after;
}

static int format(void *self, uint64_t bytes, int64_t places, void *staging)
{
	struct fault *fault = self;
	fault->counts = (struct neap__fault_counts){0};
	fault->taken = 0;
	if (fault->faults->no_format)
		return neap__fail(-ENOSPC, "a fault was asked for");
	return neap_tier_format(fault->inner, bytes, places, staging);
}

static int format_tapes(void *self, uint64_t bytes, int64_t places, uint64_t given)
{
	struct fault *fault = self;
	return neap_tier_format_tapes(fault->inner, bytes, places, given);
}

static uint64_t footprint(void *self, uint64_t bytes)
{
	const struct fault *fault = self;
	return neap__tier_footprint(fault->inner, bytes);
}

static uint64_t unit(void *self)
{
	struct fault *fault = self;
	return fault->inner->ops.unit(fault->inner->self);
}

static int format_units(void *self, uint64_t bytes, int64_t units, uint64_t given)
{
	struct fault *fault = self;
	return neap__tier_format_units(fault->inner, bytes, units, given);
}

/* A request of either kind: `spans` for tapes, else `at`. */
struct fault_request {
	int64_t place;
	uint64_t tag, bytes;
	void *at;
	const struct neap_span *spans;
	int count;
};

static struct fault_request of_tapes(
	int64_t place, uint64_t tag, const struct neap_span *spans, int count)
{
	struct fault_request r = {.place = place, .tag = tag, .spans = spans, .count = count};
	for (int i = 0; i < count; i++)
		r.bytes += spans[i].bytes;
	return r;
}

static int put_inner(struct fault *fault, const struct fault_request *r, int64_t *ticket)
{
	return r->spans ? neap_tier_put_tapes(
				  fault->inner, r->place, r->tag, r->spans, r->count, ticket)
			: neap_tier_put(fault->inner, r->place, r->tag, r->at, r->bytes, ticket);
}

/* A request takes its turn in the slow channel. */
static void queue_transfer(struct fault *fault, int write, uint64_t bytes, int64_t inner)
{
	struct fault_transfer *x = &fault->transfers[inner & (TRANSFERS - 1)];
	double now = neap__seconds(), *free_at = &fault->free_at[write];
	x->start = *free_at > now ? *free_at : now;
	x->end = *free_at = x->start + (double)bytes * fault->faults->byte_seconds;
}

static int put_any(struct fault *fault, const struct fault_request *r, int64_t *ticket)
{
	const struct neap__faults *f = fault->faults;
	int64_t n = ++fault->counts.puts, inner;
	fault->taken += r->bytes;
	if (gone(fault) || hit(fault, n, f->fail_put))
		return refuse(fault, f->code, ticket);
	if (f->full_at && fault->taken > f->full_at)
		return refuse(fault, -ENOSPC, ticket);
	if (hit(fault, n, f->lose_put)) {
		*ticket = known(0);
		return 0;
	}
	if (hangs(fault, n, f->hang_put, ticket))
		return 0;
	NEAP_TRY(put_inner(fault, r, &inner));
	*ticket = inner << 1;
	queue_transfer(fault, 1, r->bytes, inner);
	int corrupt = hit(fault, n, f->corrupt_put);
	if (!corrupt && !hit(fault, n, f->truncate_put))
		return 0;
	*ticket = known(0);
	NEAP_TRY(neap_tier_wait(fault->inner, inner));
	return neap__tier_poke(
		fault->inner, r->spans != NULL, r->place, r->bytes / 2, corrupt ? 0x10 : 0);
}

static int put(
	void *self, int64_t place, uint64_t tag, const void *from, uint64_t bytes, int64_t *ticket)
{
	struct fault_request r = {
		.place = place, .tag = tag, .bytes = bytes, .at = (void *)(uintptr_t)from};
	return put_any(self, &r, ticket);
}

static int put_tapes(void *self, int64_t place, uint64_t tag, const struct neap_span *spans,
	int count, int64_t *ticket)
{
	struct fault_request r = of_tapes(place, tag, spans, count);
	return put_any(self, &r, ticket);
}

static int get_any(struct fault *fault, const struct fault_request *r, int64_t *ticket)
{
	int64_t inner;
	if (hit(fault, ++fault->counts.gets, fault->faults->fail_get) || gone(fault))
		return refuse(fault, fault->faults->code, ticket);
	if (hangs(fault, fault->counts.gets, fault->faults->hang_get, ticket))
		return 0;
	int rc = r->spans ? neap_tier_get_tapes(
				    fault->inner, r->place, r->tag, r->spans, r->count, &inner)
			  : neap_tier_get(fault->inner, r->place, r->tag, r->at, r->bytes, &inner);
	NEAP_TRY(rc);
	*ticket = inner << 1;
	queue_transfer(fault, 0, r->bytes, inner);
	return 0;
}

static int get(void *self, int64_t place, uint64_t tag, void *into, uint64_t bytes, int64_t *ticket)
{
	struct fault_request r = {.place = place, .tag = tag, .bytes = bytes, .at = into};
	return get_any(self, &r, ticket);
}

static int get_tapes(void *self, int64_t place, uint64_t tag, const struct neap_span *spans,
	int count, int64_t *ticket)
{
	struct fault_request r = of_tapes(place, tag, spans, count);
	return get_any(self, &r, ticket);
}

static int wait_for(void *self, int64_t ticket)
{
	struct fault *fault = self;
	if (fault->faults->delay_us)
		neap__sleep(1e-6 * fault->faults->delay_us);
	if (ticket == HUNG)
		return wait_for_hung(fault);
	if (ticket & 1)
		return ticket >> 1 ? neap__fail(-(int)(ticket >> 1), "a fault was asked for") : 0;
	int rc = neap_tier_wait(fault->inner, ticket >> 1);
	fault->waited = fault->transfers[ticket >> 1 & (TRANSFERS - 1)];
	double left = fault->waited.end - neap__seconds();
	if (fault->faults->byte_seconds > 0 && left > 0)
		neap__sleep(left);
	return rc;
}

static void times(void *self, double *start, double *end)
{
	const struct fault *fault = self;
	*start = fault->waited.start;
	*end = fault->waited.end;
}

static int forget(void *self, int64_t place)
{
	struct fault *fault = self;
	return neap_tier_forget(fault->inner, place);
}

/* Requests that hang count as begun, and cannot be cancelled. */
static int cancel(void *self, int64_t ticket)
{
	struct fault *fault = self;
	return ticket & 1 ? 0 : neap__tier_cancel(fault->inner, ticket >> 1);
}

static void set_patience(void *self, double seconds)
{
	struct fault *fault = self;
	fault->patience = seconds;
	neap_tier_set_patience(fault->inner, seconds);
}

static int holds_staging(void *self)
{
	struct fault *fault = self;
	return neap_tier_holds_staging(fault->inner);
}

static uint64_t staging(void *self, uint64_t bytes)
{
	struct fault *fault = self;
	struct neap_tier_spec spec;
	neap_tier_describe(fault->inner, bytes, &spec);
	return spec.staging;
}

static int sync_inner(void *self)
{
	struct fault *fault = self;
	return neap__tier_sync(fault->inner);
}

static int adopt_inner(void *self, uint64_t epoch)
{
	struct fault *fault = self;
	return neap__tier_adopt(fault->inner, epoch);
}

static uint64_t staging_most(void *self, uint64_t bytes)
{
	const struct fault *fault = self;
	return neap__tier_staging(fault->inner, bytes, NEAP_INFINITE);
}

static void lend(void *self, uint64_t bytes)
{
	const struct fault *fault = self;
	neap_tier_lend(fault->inner, bytes);
}

static void close_fault(void *self)
{
	struct fault *fault = self;
	neap_tier_close(fault->inner);
	free(fault);
}

static void abandon(void *self)
{
	struct fault *fault = self;
	neap_tier_abandon(fault->inner);
	free(fault);
}

int neap__fault_open(
	struct neap_tier **tier, struct neap_tier *inner, const struct neap__faults *faults)
{
	struct neap_tier_ops ops = {
		.size = sizeof ops,
		.format = format,
		.put = put,
		.get = get,
		.wait = wait_for,
		.forget = forget,
		.staging = staging,
		.close = close_fault,
		.set_patience = set_patience,
		.holds_staging = holds_staging,
		.staging_most = staging_most,
		.lend = lend,
		.cancel = cancel,
		.abandon = abandon,
	};
	if (faults->byte_seconds > 0)
		ops.times = times;
	if (neap_tier_takes_tapes(inner)) {
		ops.format_tapes = format_tapes;
		ops.put_tapes = put_tapes;
		ops.get_tapes = get_tapes;
	}
	if (inner->ops.unit) {
		ops.footprint = footprint;
		ops.unit = unit;
		ops.format_units = format_units;
	}
	if (inner->ops.sync) {
		ops.sync = sync_inner;
		ops.adopt = adopt_inner;
	}
	struct fault *fault = calloc(1, sizeof *fault);
	if (!fault)
		return neap__fail_errno(ENOMEM, "fault tier");
	fault->inner = inner;
	fault->faults = faults;
	int rc = neap_tier_wrap(tier, &ops, &inner->spec, fault);
	if (rc < 0) {
		free(fault);
		return rc;
	}
	(*tier)->journalled = inner->journalled;
	neap__print((*tier)->about, sizeof(*tier)->about, "faults over %.280s", inner->about);
	return 0;
}

struct neap__fault_counts neap__fault_counts(const struct neap_tier *tier)
{
	const struct fault *fault = tier->self;
	return fault->counts;
}
