/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What neap_tier_describe promises is what formats grant, for tiers of every kind, sizes of records
 * and capacities: as many records of states, of tapes, and of tapes of different sizes; not one
 * more.
 *
 *     test_promise [ROUNDS]     NEAP_SEED
 */
#include "../test.h"
#include "../sweep/random_stages.h"

#include <neap/tier.h>
#include "store/fault_tier.h"
#include "store/tier_state.h"
#include "base/checked.h"

#include <stdlib.h>

static int64_t rounds = TEST_SANITIZED ? 300 : 2000;

enum { MEMORY, FILES, FAULTY, KINDS };

static struct neap_tier *open_kind(int kind, uint64_t capacity)
{
	static struct neap__faults none;
	const struct neap_file_options o = {.size = sizeof o, .capacity = capacity};
	struct neap_tier *tier, *outer;
	int rc = kind == FILES ? neap_tier_open_file(&tier, "/var/tmp", &o)
			       : neap_tier_open_memory(&tier, capacity);
	assert_int_equal(rc, 0);
	if (kind != FAULTY)
		return tier;
	assert_int_equal(neap__fault_open(&outer, tier, &none), 0);
	return outer;
}

/* Multiples of 64 and of a page, and their neighbours, are where records just fit. */
static uint64_t random_size(struct random *r, uint64_t most)
{
	uint64_t size = 1 + below(r, most);
	int64_t edge = chance(r, 50) ? 64 : 4096;
	return chance(r, 40) ? size : neap__round_up(size, (uint64_t)edge) - below(r, 2) * 64;
}

static void grants(void **state)
{
	struct random r = {test_seed(91), 0};
	int64_t held = 0;
	(void)state;
	for (int64_t i = 0; i < rounds; i++) {
		int kind = (int)(i % KINDS);
		uint64_t bytes = random_size(&r, 9000) + 1;
		uint64_t capacity = random_size(&r, kind == FILES ? 200000 : 40000) + 1;
		struct neap_tier *tier = open_kind(kind, capacity);
		struct neap_tier_spec spec;
		neap_tier_describe(tier, bytes, &spec);
		int64_t n = (int64_t)(spec.capacity / bytes), units = neap__tier_units(tier, bytes);
		assert_int_equal(spec.capacity % bytes, 0);
		assert_int_equal(neap_tier_format(tier, bytes, n, NULL), 0);
		assert_int_equal(neap_tier_format(tier, bytes, n + 1, NULL), -ENOSPC);
		assert_int_equal(neap_tier_format(tier, bytes, 0, NULL), 0);
		assert_int_equal(neap_tier_format_tapes(tier, bytes, n, 0), 0);
		assert_int_equal(neap_tier_format_tapes(tier, bytes, n + 1, 0), -ENOSPC);
		assert_int_equal(neap_tier_format(tier, bytes, 0, NULL), 0);
		assert_int_equal(neap__tier_format_units(tier, bytes, n * units, 0), 0);
		assert_true(neap__tier_units_need(tier, bytes, n * units) <= capacity);
		held += n > 0;
		neap_tier_close(tier);
	}
	print_message(
		"# %lld tiers, %lld with room for a record\n", (long long)rounds, (long long)held);
	assert_true(held > rounds / 2);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {cmocka_unit_test(grants)};
	if (argc > 1)
		rounds = atoll(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
