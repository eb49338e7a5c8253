/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The least budget that a refusal names: it works, and a byte less does not. Problems of every
 * kind, and chains of unequal stages with tiers. Arguments: problems of each, at most stages.
 */
#include "oracle_test.h"
#include "wide.h"

static int64_t problems = 25, stages = 12;

/* Returns 1 where the strategy names a least budget for less than the problem's. */
static int check(const struct neap_problem *problem, const char *strategy, const char *kind, int k)
{
	struct neap_problem p = *problem;
	struct neap_plan plan = {.size = sizeof plan};
	assert_int_equal(neap_plan_make(&plan, &p, strategy, NULL), 0);
	while (plan.feasible && p.memory > 0) {
		p.memory /= 2;
		assert_int_equal(neap_plan_make(&plan, &p, strategy, NULL), 0);
	}
	if (plan.feasible || plan.least_bytes == 0)
		return 0;
	uint64_t named = plan.least_bytes;
	if (named <= p.memory)
		fail_msg("%s %d: %s needs %llu, has %llu", kind, k, strategy,
			(unsigned long long)named, (unsigned long long)p.memory);
	p.memory = named;
	assert_int_equal(neap_plan_make(&plan, &p, strategy, NULL), 0);
	if (!plan.feasible)
		fail_msg("%s %d: %s refuses the %llu that it named: %s", kind, k, strategy,
			(unsigned long long)named, plan.why);
	p.memory = named - 1;
	assert_int_equal(neap_plan_make(&plan, &p, strategy, NULL), 0);
	if (plan.feasible)
		fail_msg("%s %d: %s names %llu, less does", kind, k, strategy,
			(unsigned long long)named);
	return 1;
}

static void steps_of_one_kind(void **unused)
{
	struct random r = {test_seed(51), 0};
	int64_t checked = 0;
	(void)unused;
	for (int k = 0; k < problems; k++) {
		struct neap_problem p = wide_problem(&r);
		const char *name;
		if (p.chain.steps > 1000)
			continue;
		for (int i = 0; (name = neap_strategy_name(i)); i++)
			checked += check(&p, name, "problem", k);
	}
	print_message("# %lld least budgets\n", (long long)checked);
	assert_true(checked > problems);
}

static void stages_with_tiers(void **unused)
{
	static const char *const names[] = {"chain", "pofo", "auto"};
	struct random r = {test_seed(52), 0};
	int64_t checked = 0;
	(void)unused;
	for (int k = 0; k < problems; k++) {
		static struct chain c;
		int64_t steps = 1 + below(&r, k % 4 ? 8 : stages);
		c = random_chain(&r, steps, 8);
		vary(&r, &c, steps);
		c.p.memory = 1000000;
		c.p.chain.flags = uniform(&r) < 0.2 ? NEAP_CHAIN_TAPES_STAY : 0;
		for (int64_t i = 1 + below(&r, 2); i > 0; i--) {
			struct neap_tier_spec t = {.name = "slow",
				.capacity =
					uniform(&r) < 0.5 ? NEAP_INFINITE : (uint64_t)below(&r, 40),
				.write_rate = maybe(&r, 0.9, decades(&r, 0.1, 20)),
				.read_rate = maybe(&r, 0.9, decades(&r, 0.1, 20)),
				.write_fixed = maybe(&r, 0.3, uniform(&r)),
				.staging = (uint64_t)maybe(&r, 0.2, 3),
				.flags = (uint32_t)below(&r, 4)};
			c.p.tiers[c.p.ntiers++] = t;
		}
		for (int i = 0; i < 3; i++)
			checked += check(&c.p, names[i], "chain", k);
	}
	print_message("# %lld least budgets\n", (long long)checked);
	assert_true(checked > problems);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		problems = atoll(argv[1]);
	if (argc > 2)
		stages = atoll(argv[2]);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_of_one_kind),
		cmocka_unit_test(stages_with_tiers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
