/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Long chains: planning, iterating and verifying T = 10^7 keeps under 1.5 MiB
 * of heap with every strategy, and no plan takes long however long the chain.
 * The allocator is counted here, below libneap; not under AddressSanitizer.
 */
#include "plan_test.h"
#include "time_limit.h"
#include "count_heap.h"
#include "plan/blocks/block_plan.h"

static void ten_million(void **state)
{
	(void)state;
	static const struct {
		const char *strategy;
		uint64_t memory;
		struct neap_params params;
	} rows[] = {
		{"bptt", 10000001, {0}},
		{"standard", 6400, {0}},
		{"revolve", 30, {0}},
		{"remote", 1, {.chunk = 1}},
		{"remote", 8, {.chunk = 8}},
		{"remote", 1000, {0}},
		{"hierarchical", 2000, {.chunk = 8, .checkpoints = 1000}},
		{"hierarchical", 2000, {0}},
		{"double", 60, {.remote_chunk = 900}},
		{"double", 6400, {0}},
		{"auto", 6400, {0}},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct neap_problem p = unit_problem(10000000, rows[i].memory);
		struct neap_plan plan = {.size = sizeof plan};
		add_tier(&p, NEAP_INFINITE, 0.7, 0);
		size_t before = most = held;
		double began = test_seconds();
		assert_int_equal(neap_plan_make(&plan, &p, rows[i].strategy, &rows[i].params), 0);
		double planned = test_seconds() - began;
		size_t planning = most - before;
		if (!plan.feasible)
			fail_msg("%s: %s", rows[i].strategy, plan.why);
		struct neap_verdict v = verified(&p, &plan);
		assert_int_equal(v.peak_bytes, plan.peak_bytes);
		assert_int_equal(v.advance_steps, plan.advance_steps);
		assert_int_equal(v.backward_steps, p.chain.steps);
		if (v.actions < 30000000)
			assert_true(fabs(simulated(&p, &plan).makespan / plan.makespan - 1) < 1e-9);
		fprintf(stderr, "# %-12s %9lld actions, heap %7zu bytes, planned in %.1f ms\n",
			rows[i].strategy, (long long)v.actions, planning, 1e3 * planned);
		/* `auto` asks `online`, too, which has three rows of costs for each state. */
		assert_true(most - before < 3 << 19);
#if COUNTED
		assert_true(most > before); /* the counter counts */
#endif
		assert_true(held == before);
	}
}

static int problems = 8;

/* However long the chain and whatever the budget, a plan is quick. */
static void quick(void **state)
{
	(void)state;
	struct random r = {test_seed(4), 0};
	double slowest = 0;
	for (int i = 0; i < problems; i++) {
		struct neap_problem p = random_problem(&r, 1e9);
		p.chain.steps = (int64_t)decades(&r, 1e6, 1e9);
		for (int n = 0; neap_strategy_name(n); n++) {
			struct neap_plan plan = {.size = sizeof plan};
			double began = test_seconds();
			int rc = neap_plan_make(&plan, &p, neap_strategy_name(n), NULL);
			double took = test_seconds() - began;
			if (rc < 0)
				fail_msg("%s", neap_detail());
			if (took > slowest) {
				slowest = took;
				fprintf(stderr, "# %s T=%lld M/S=%.3g A/S=%.3g: %.1f ms\n",
					plan.strategy, (long long)p.chain.steps,
					(double)p.memory / (double)p.chain.state,
					(double)p.chain.tape / (double)p.chain.state, 1e3 * took);
			}
			if (plan.feasible)
				assert_true(plan.bound <= plan.makespan * (1 + 1e-12));
			if (plan.feasible)
				assert_true(plan.arena_bytes <= p.memory);
		}
	}
	test_limit("the slowest plan", slowest, COUNTED ? 5 : 60); /* sanitizers slow it down */
}

/* Writes that take a little longer than the steps fill the memory over thousands of blocks. */
static void drifting(void **state)
{
	static const double latencies[] = {0, 1e-4, 1e-3, 0.01, 0.1};
	double slowest = 0;
	(void)state;
	for (int i = 0; i < 5; i++) {
		struct neap_problem p = unit_problem(1000000, 64 << 20);
		struct neap_plan plan = {.size = sizeof plan};
		struct neap__prefetch *prefetch;
		struct neap_blocks blocks = {.record = 1, .chunk = 1, .tail = 61};
		int64_t actions = 0;
		p.chain.state = p.chain.tape = p.chain.adjoint = 1 << 20;
		add_tier(&p, NEAP_INFINITE, latencies[i], 0);
		p.tiers[0].write_rate = p.tiers[0].read_rate = 1 << 20;
		double began = test_seconds();
		assert_int_equal(neap_plan_make(&plan, &p, "stream", NULL), 0);
		slowest = fmax(slowest, test_seconds() - began);
		assert_true(plan.feasible);
		assert_int_equal(neap__prefetch_new(&prefetch), 0);
		assert_int_equal(neap__block_plan_evaluate(
					 &plan, &p, 1, &blocks, NULL, prefetch, 0, &actions),
			0);
		neap__prefetch_free(prefetch);
		if (actions > 60000)
			fail_msg("%lld actions were run", (long long)actions);
	}
	test_limit("stream, a million steps", slowest, COUNTED ? 0.02 : 2);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ten_million),
		cmocka_unit_test(quick),
		cmocka_unit_test(drifting),
	};
	if (argc > 1)
		problems = atoi(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
