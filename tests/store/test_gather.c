/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of tapes: gathered from spans and scattered to others, of any length up
 * to the format's, beside states at the same place numbers.
 */
#include <errno.h>
#include <neap/tier.h>
#include "../test.h"
#include "base/philox.h"
#include "store/fault_tier.h"

#define DISK "/var/tmp"
#define MOST 700000
#define SPANS 40

static struct neap_tier *open_kind(int kind)
{
	struct neap_tier *tier = NULL;
	static const struct neap_file_options cached = {.size = sizeof cached, .page_cache = 1};
	int rc = kind == 0   ? neap_tier_open_memory(&tier, NEAP_INFINITE)
		 : kind == 1 ? neap_tier_open_file(&tier, DISK, NULL)
			     : neap_tier_open_file(&tier, DISK, &cached);
	if (rc < 0)
		print_message("# kind %d: %s\n", kind, neap_detail());
	return rc < 0 ? NULL : tier;
}

static void fill(unsigned char *data, uint64_t bytes, uint64_t seed)
{
	for (uint64_t i = 0; i < bytes; i++)
		data[i] = (unsigned char)((i * 2654435761u + seed * 40503u) >> 11);
}

/* Cuts [data, data + bytes) into spans; some are empty. */
static int cut(struct neap_span *spans, unsigned char *data, uint64_t bytes, uint64_t seed)
{
	int n = 0;
	uint64_t at = 0;
	while (at < bytes && n < SPANS - 1) {
		uint64_t part =
			neap__random_below(seed, NEAP__STREAM_TEST, 3, (uint64_t)n, bytes / 3 + 2);
		part = part < bytes - at ? part : bytes - at;
		spans[n++] = (struct neap_span){data + at, part};
		at += part;
	}
	spans[n++] = (struct neap_span){data + at, bytes - at};
	return n;
}

static int put(
	struct neap_tier *tier, int64_t place, uint64_t tag, const struct neap_span *spans, int n)
{
	int64_t ticket;
	int rc = neap_tier_put_tapes(tier, place, tag, spans, n, &ticket);
	return rc < 0 ? rc : neap_tier_wait(tier, ticket);
}

static int get(
	struct neap_tier *tier, int64_t place, uint64_t tag, const struct neap_span *spans, int n)
{
	int64_t ticket;
	int rc = neap_tier_get_tapes(tier, place, tag, spans, n, &ticket);
	return rc < 0 ? rc : neap_tier_wait(tier, ticket);
}

static void round_trip(void **state)
{
	static unsigned char data[MOST], back[MOST], one[500];
	static const uint64_t sizes[] = {1, 64, 4031, 4032, 4033, 8192, 262079, 262081, MOST};
	(void)state;
	for (int kind = 0; kind < 3; kind++) {
		struct neap_tier *tier = open_kind(kind);
		if (!tier)
			continue;
		assert_true(neap_tier_takes_tapes(tier));
		assert_int_equal(neap_tier_format_tapes(tier, 64, 1, 0), NEAP_EUSAGE);
		struct neap_tier_spec spec;
		neap_tier_describe(tier, MOST, &spec);
		void *staging = spec.staging ? aligned_alloc(4096, spec.staging) : NULL;
		assert_int_equal(neap_tier_format(tier, sizeof one, 3, staging), 0);
		assert_int_equal(
			neap_tier_format_tapes(tier, MOST, 2, kind == 1 ? spec.staging : 0), 0);
		for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
			struct neap_span a[SPANS], b[SPANS];
			uint64_t bytes = sizes[i];
			int64_t ticket;
			fill(data, bytes, i);
			fill(one, sizeof one, 99 + i);
			int n = cut(a, data, bytes, i), m = cut(b, back, bytes, 100 + i);
			assert_int_equal(neap_tier_put(tier, 1, 7, one, sizeof one, &ticket), 0);
			assert_int_equal(put(tier, 1, 8, a, n), 0);
			assert_int_equal(neap_tier_wait(tier, ticket), 0);
			memset(back, 0, bytes);
			assert_int_equal(get(tier, 1, 8, b, m), 0);
			assert_memory_equal(back, data, bytes);
			assert_int_equal(get(tier, 1, 9, b, m), NEAP_ELOST);
			assert_int_equal(get(tier, 0, 8, b, m), NEAP_ELOST);
			if (bytes > 64) {
				struct neap_span less = {back, bytes - 64};
				assert_int_equal(get(tier, 1, 8, &less, 1), NEAP_ELOST);
			}
			assert_int_equal(neap_tier_get(tier, 1, 7, back, sizeof one, &ticket), 0);
			assert_int_equal(neap_tier_wait(tier, ticket), 0);
			assert_memory_equal(back, one, sizeof one);
		}
		struct neap_span much = {data, MOST + 1}, none = {data, 0};
		assert_int_equal(put(tier, 1, 8, &much, 1), NEAP_EUSAGE);
		assert_int_equal(put(tier, 1, 8, &none, 1), NEAP_EUSAGE);
		much.bytes = MOST;
		assert_int_equal(put(tier, 2, 8, &much, 1), NEAP_EUSAGE);
		assert_int_equal(put(tier, -1, 8, &much, 1), NEAP_EUSAGE);
		/* A format drops what was there, and the places for tapes. */
		assert_int_equal(neap_tier_format(tier, sizeof one, 3, NULL), 0);
		assert_int_equal(get(tier, 1, 8, &much, 1), NEAP_EUSAGE);
		assert_int_equal(neap_tier_format_tapes(tier, MOST, 2, 0), 0);
		assert_int_equal(get(tier, 1, 8, &much, 1), NEAP_ELOST);
		neap_tier_close(tier);
		free(staging);
	}
}

static void damage(void **state)
{
	enum { BYTES = 9000 };
	static unsigned char data[BYTES], back[BYTES];
	(void)state;
	for (int kind = 0; kind < 3; kind++) {
		struct neap_tier *tier = open_kind(kind);
		if (!tier)
			continue;
		assert_int_equal(neap_tier_format(tier, 64, 2, NULL), 0);
		assert_int_equal(neap_tier_format_tapes(tier, BYTES, 4, 0), 0);
		fill(data, BYTES, 5);
		struct neap_span a[SPANS], b[SPANS];
		int n = cut(a, data, BYTES, 1), m = cut(b, back, BYTES, 2);
		for (uint64_t at = 0; at < BYTES; at += 701) {
			assert_int_equal(put(tier, 2, at, a, n), 0);
			assert_int_equal(neap__tier_poke(tier, 1, 2, at, 4), 0);
			assert_int_equal(get(tier, 2, at, b, m), NEAP_ECORRUPT);
		}
		assert_int_equal(put(tier, 2, 1, a, n), 0);
		assert_int_equal(neap__tier_poke(tier, 1, 2, 4500, 0), 0);
		assert_true(get(tier, 2, 1, b, m) < 0);
		neap_tier_close(tier);
	}
}

static void capacity(void **state)
{
	struct neap_tier *tier, *plain;
	struct neap__records states = {64, 10}, tapes = {1000, 8};
	struct neap__staging none_given = {0};
	(void)state;
	assert_int_equal(neap_tier_open_memory(&tier, 10 * 128 + 8 * (1024 + 64)), 0);
	assert_int_equal(neap__tier_needs(tier, states, tapes), 10 * 128 + 8 * (1024 + 64));
	assert_int_equal(neap_tier_format(tier, 64, 10, NULL), 0);
	assert_false(neap__tier_fits(tier, states, tapes, &none_given));
	assert_int_equal(neap_tier_format_tapes(tier, 1000, 9, 0), -ENOSPC);
	assert_int_equal(neap_tier_format_tapes(tier, UINT64_MAX, 9, 0), -ENOSPC);
	assert_int_equal(neap_tier_format_tapes(tier, 1000, 8, 0), 0);
	assert_true(neap__tier_fits(tier, states, tapes, &none_given));
	neap_tier_close(tier);

	/* An engine without them: tapes are refused, and half of the calls are none. */
	struct neap__faults none = {0};
	struct neap_tier_ops ops;
	assert_int_equal(neap_tier_open_memory(&tier, NEAP_INFINITE), 0);
	ops = tier->ops;
	ops.put_tapes = NULL;
	assert_int_equal(neap_tier_wrap(&plain, &ops, &tier->spec, tier->self), NEAP_EUSAGE);
	tier->ops.format_tapes = NULL;
	assert_int_equal(neap__fault_open(&plain, tier, &none), 0);
	assert_false(neap_tier_takes_tapes(plain));
	assert_int_equal(neap_tier_format(plain, 64, 1, NULL), 0);
	assert_int_equal(neap_tier_format_tapes(plain, 64, 1, 0), NEAP_EUSAGE);
	neap_tier_close(plain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(round_trip),
		cmocka_unit_test(damage),
		cmocka_unit_test(capacity),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
