/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long chains of unequal stages with a tier, which are planned in groups: every plan is legal, uses
 * the tier, and is as fast as said; the least budget that is named works, and a byte less does not.
 *
 *     test_offload_groups        what `make check` runs
 *     test_offload_groups N      N random chains instead of 2
 */
#include "oracle_test.h"

static int rounds = 2;

static struct neap_plan planned(struct chain *c, const char *strategy, uint64_t memory)
{
	struct neap_plan plan = {.size = sizeof plan};
	c->p.memory = memory;
	if (neap_plan_make(&plan, &c->p, strategy, NULL) < 0)
		fail_msg("%s: %s", strategy, neap_detail());
	if (!plan.feasible)
		return plan;
	struct neap_verdict v = verified(&c->p, &plan);
	assert_true(v.arena_bytes <= memory);
	assert_int_equal(v.backward_steps, c->p.chain.steps);
	assert_true(near(simulated(&c->p, &plan).makespan, plan.makespan));
	assert_true(plan.bound <= plan.makespan * (1 + 1e-9));
	return plan;
}

static void long_chains(void **state)
{
	(void)state;
	struct random r = {test_seed(61), 0};
	int with_tier = 0;
	for (int i = 0; i < rounds; i++) {
		int64_t steps = 121 + below(&r, 300);
		struct chain c = random_chain(&r, steps, 1000);
		uint64_t tapes = 0;
		vary(&r, &c, steps);
		for (int64_t k = 0; k < steps; k++)
			tapes += c.tape[k];
		add_tier(&c.p, NEAP_INFINITE, 0, i % 2 ? NEAP_TIER_DUPLEX : 0);
		c.p.tiers[0].write_rate = c.p.tiers[0].read_rate = 500 * decades(&r, 0.3, 3);
		struct neap_plan best = planned(&c, "auto", tapes / 10);
		struct neap_plan chain = planned(&c, "chain", tapes / 10);
		with_tier += best.feasible && best.tier > 0;
		assert_true(!chain.feasible ||
			    (best.feasible && best.makespan <= chain.makespan * (1 + 1e-9)));
		for (int k = 0; k < 2; k++) {
			const char *strategy = k ? "pofo" : "auto";
			struct neap_plan none = planned(&c, strategy, 10);
			assert_true(!none.feasible && none.least_bytes > 10);
			assert_true(planned(&c, strategy, none.least_bytes).feasible);
			assert_false(planned(&c, strategy, none.least_bytes - 1).feasible);
		}
	}
	fprintf(stderr, "# %d of %d use the tier\n", with_tier, rounds);
	assert_true(with_tier > rounds / 3);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(long_chains),
	};
	if (argc > 1)
		rounds = atoi(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
