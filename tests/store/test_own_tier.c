/* SPDX-License-Identifier: Apache-2.0 */
/* A tier of one's own, through neap/tier.h: every optional slot is called, and what NULL means. */
#include "../test.h"

#include <errno.h>
#include <neap/tier.h>
#include "store/tier_state.h"

enum { PLACES = 4, BYTES = 100, HEADER = 28, STAGING = 4096, CAPACITY = 10 * (BYTES + HEADER) };

struct shelf {
	unsigned char store[PLACES][BYTES];
	uint64_t tags[PLACES];
	uint64_t lent;
	void *staging;
	double start, end;
	int cancelled, closed;
};

static int format(void *self, uint64_t bytes, int64_t places, void *staging)
{
	struct shelf *shelf = self;
	if (bytes > BYTES || places > PLACES) {
		neap_detail_set("the shelf is\ntoo small");
		return -ENOSPC;
	}
	shelf->staging = staging;
	return 0;
}

static int put(
	void *self, int64_t place, uint64_t tag, const void *from, uint64_t bytes, int64_t *ticket)
{
	struct shelf *shelf = self;
	memcpy(shelf->store[place], from, bytes);
	shelf->tags[place] = tag;
	*ticket = place;
	return 0;
}

static int get(void *self, int64_t place, uint64_t tag, void *into, uint64_t bytes, int64_t *ticket)
{
	struct shelf *shelf = self;
	*ticket = shelf->tags[place] == tag ? place : -1;
	if (*ticket >= 0)
		memcpy(into, shelf->store[place], bytes);
	return 0;
}

static int wait_for(void *self, int64_t ticket)
{
	struct shelf *shelf = self;
	shelf->start = 1;
	shelf->end = 2;
	if (ticket < 0)
		neap_detail_set("nothing is on that shelf");
	return ticket < 0 ? NEAP_ELOST : 0;
}

static uint64_t staging(void *self, uint64_t bytes)
{
	(void)self;
	return bytes ? STAGING : 0;
}

static void close_shelf(void *self)
{
	((struct shelf *)self)->closed = 1;
}

static uint64_t footprint(void *self, uint64_t bytes)
{
	(void)self;
	return bytes + HEADER;
}

static uint64_t staging_most(void *self, uint64_t bytes)
{
	(void)bytes;
	(void)self;
	return (uint64_t)5 * STAGING;
}

static void lend(void *self, uint64_t bytes)
{
	((struct shelf *)self)->lent = bytes;
}

static int cached(void *self, uint64_t *bytes)
{
	(void)self;
	*bytes = 77;
	return 0;
}

static void times(void *self, double *start, double *end)
{
	const struct shelf *shelf = self;
	*start = shelf->start;
	*end = shelf->end;
}

static int cancel(void *self, int64_t ticket)
{
	((struct shelf *)self)->cancelled = (int)ticket;
	return 1;
}

static const struct neap_tier_ops all = {
	.size = sizeof all,
	.format = format,
	.put = put,
	.get = get,
	.wait = wait_for,
	.staging = staging,
	.close = close_shelf,
	.footprint = footprint,
	.staging_most = staging_most,
	.lend = lend,
	.cached = cached,
	.times = times,
	.cancel = cancel,
};
static const struct neap_tier_spec spec = {.name = "shelf", .capacity = CAPACITY};

static void every_slot(void **state)
{
	struct shelf shelf = {.lent = 1};
	struct neap_tier_spec described;
	struct neap_tier *tier;
	unsigned char data[BYTES] = {1, 2, 3}, back[BYTES];
	_Alignas(4096) static unsigned char memory[STAGING];
	double start = 0, end = 0;
	uint64_t bytes;
	int64_t ticket;
	(void)state;
	assert_int_equal(neap_tier_wrap(&tier, &all, &spec, &shelf), 0);
	neap_tier_describe(tier, BYTES, &described);
	assert_int_equal(described.capacity, 10 * BYTES); /* without the headers */
	assert_int_equal(described.staging, STAGING);
	struct neap__records states = {BYTES, 3}, none = {0, 0};
	assert_int_equal(neap__tier_needs(tier, states, none), 3 * (BYTES + HEADER));
	/* As much as makes the tier fast, a share of the budget, or the least. */
	assert_int_equal(neap__tier_staging(tier, BYTES, NEAP_INFINITE), 5 * STAGING);
	assert_int_equal(
		neap__tier_staging(tier, BYTES, (uint64_t)NEAP__STAGING_SHARE * 3 * STAGING),
		3 * STAGING);
	assert_int_equal(neap__tier_staging(tier, BYTES, 1), STAGING);
	neap_tier_lend(tier, (uint64_t)2 * STAGING);
	assert_int_equal(shelf.lent, 2 * STAGING);
	assert_int_equal(neap_tier_format(tier, BYTES + 1, PLACES, memory), -ENOSPC);
	assert_string_equal(neap_detail(), "the shelf is?too small");
	assert_int_equal(neap_tier_format(tier, BYTES, PLACES, memory), 0);
	assert_ptr_equal(shelf.staging, memory);
	assert_int_equal(neap_tier_put(tier, 2, 9, data, BYTES, &ticket), 0);
	assert_int_equal(neap_tier_wait(tier, ticket), 0);
	assert_int_equal(neap_tier_get(tier, 2, 9, back, BYTES, &ticket), 0);
	assert_int_equal(neap_tier_wait(tier, ticket), 0);
	assert_memory_equal(data, back, BYTES);
	tier->ops.times(tier->self, &start, &end);
	assert_true(start == 1 && end == 2);
	assert_int_equal(neap_tier_get(tier, 1, 9, back, BYTES, &ticket), 0);
	assert_int_equal(neap_tier_wait(tier, ticket), NEAP_ELOST);
	assert_string_equal(neap_detail(), "nothing is on that shelf");
	assert_int_equal(neap__tier_cached(tier, &bytes), 0);
	assert_int_equal(bytes, 77);
	assert_int_equal(neap__tier_cancel(tier, 5), 1);
	assert_int_equal(shelf.cancelled, 5);
	assert_int_equal(neap_tier_holds_staging(tier), 0);
	neap_tier_close(tier);
	assert_int_equal(shelf.closed, 1);
}

/* A program of an older header passes fewer slots: those it lacks are NULL. */
static void older_header(void **state)
{
	struct shelf shelf = {.lent = 1};
	struct neap_tier_ops ops = all;
	struct neap_tier_spec described;
	struct neap_tier *tier;
	uint64_t bytes;
	(void)state;
	ops.size = offsetof(struct neap_tier_ops, footprint);
	assert_int_equal(neap_tier_wrap(&tier, &ops, &spec, &shelf), 0);
	neap_tier_describe(tier, BYTES, &described);
	assert_int_equal(described.capacity, CAPACITY);
	assert_int_equal(neap__tier_staging(tier, BYTES, NEAP_INFINITE), STAGING);
	neap_tier_lend(tier, 2);
	assert_int_equal(shelf.lent, 1);
	assert_int_equal(neap__tier_cached(tier, &bytes), 0);
	assert_int_equal(bytes, 0);
	assert_int_equal(neap__tier_cancel(tier, 5), 0);
	assert_int_equal(shelf.cancelled, 0);
	neap_tier_close(tier);
}

static void refused(void **state)
{
	struct shelf shelf = {0};
	struct neap_tier_ops ops = all;
	struct neap_tier *tier;
	(void)state;
	ops.size += 8;
	assert_int_equal(neap_tier_wrap(&tier, &ops, &spec, &shelf), NEAP_EUSAGE);
	assert_non_null(strstr(neap_detail(), "neap_tier_ops: the library is older"));
	ops.size = 0;
	assert_int_equal(neap_tier_wrap(&tier, &ops, &spec, &shelf), NEAP_EUSAGE);
	assert_non_null(strstr(neap_detail(), "set size to its sizeof"));
	assert_int_equal(neap_tier_wrap(&tier, NULL, &spec, &shelf), NEAP_EUSAGE);
	ops = all;
	ops.lend = NULL;
	assert_int_equal(neap_tier_wrap(&tier, &ops, &spec, &shelf), NEAP_EUSAGE);
	assert_non_null(strstr(neap_detail(), "staging_most and lend go together"));
	const struct neap_file_options newer = {.size = sizeof newer + 8};
	assert_int_equal(neap_tier_open_file(&tier, "/var/tmp", &newer), NEAP_EUSAGE);
	assert_non_null(strstr(neap_detail(), "neap_file_options: the library is older"));
	assert_int_equal(shelf.closed, 0); /* the caller's still */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_slot),
		cmocka_unit_test(older_header),
		cmocka_unit_test(refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
