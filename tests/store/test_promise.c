/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What neap_tier_describe promises is what formats grant, for tiers of every kind, sizes of records
 * and capacities: as many records of states, of tapes, and of tapes of different sizes; not one
 * more.
 *
 *     test_promise [ROUNDS]     NEAP_SEED
 */
#include "../sweep/random_tiers.h"

#include "base/checked.h"

#include <stdlib.h>

static int64_t rounds = TEST_SANITIZED ? 300 : 2000;

/* Multiples of 64 and of a page, and their neighbours, are where records just fit. */
static uint64_t random_size(struct random *r, uint64_t most)
{
	uint64_t size = 1 + below(r, most);
	int64_t edge = chance(r, 50) ? 64 : 4096;
	return chance(r, 40) ? size : neap__round_up(size, (uint64_t)edge) - below(r, 2) * 64;
}

static void grants(void **state)
{
	static const struct neap__faults none;
	struct random r = {test_seed(91), 0};
	int64_t held = 0;
	(void)state;
	for (int64_t i = 0; i < rounds; i++) {
		int kind = (int)(i % TIER_KINDS);
		uint64_t bytes = random_size(&r, 9000) + 1;
		uint64_t capacity = random_size(&r, tier_in_file(kind) ? 200000 : 40000) + 1;
		struct neap_tier *tier = tier_of_kind(kind, capacity, &none);
		held += check_promise(tier, bytes, capacity) > 0;
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
