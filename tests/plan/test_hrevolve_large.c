/* SPDX-License-Identifier: Apache-2.0 */
/* Several levels of memory: long chains, problems of every kind. NEAP_SEED repeats a run. */
#include "levels_test.h"
#include "time_limit.h"

/* T = 10^5: the schedule at once, close to its bound; with more effort the proof. */
static void hundred_thousand(void **state)
{
	static const struct {
		struct level level[3];
		int levels;
	} rows[] = {
		{{{10, 0, 0}, {50, 2, 2}}, 2},
		{{{10, 0, 0}, {50, 20, 20}}, 2},
		{{{10, 0, 0}, {500, 2, 2}}, 2},
		{{{10, 0, 0}, {500, 20, 20}}, 2},
		{{{10, 0, 0}, {50, 2, 2}, {500, 20, 20}}, 3},
		{{{10, 0, 0}, {NEAP_INFINITE, 20, 20}}, 2},
		{{{1, 0, 0}, {NEAP_INFINITE, 20, 20}}, 2},
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct neap_problem p = levelled(100001, 1, 1, rows[i].level, rows[i].levels);
		double began = test_seconds();
		struct neap_plan plan = checked(&p, "h-revolve", NULL);
		double took = test_seconds() - began;
		fprintf(stderr,
			"# %d levels: %.9g, bound %.9g, planned, verified and simulated "
			"in %.0f ms\n",
			rows[i].levels, plan.makespan, plan.bound, 1e3 * took);
		assert_true(plan.bound <= plan.makespan && plan.gap < 1e-4);
		struct neap_params hard = {.effort = 400000};
		struct neap_plan proved = planned(&p, "h-revolve", &hard);
		assert_true(near(proved.model_bound, proved.makespan));
		assert_true(proved.makespan <= plan.makespan);
		assert_true(verified(&p, &proved).advance_steps == proved.advance_steps);
		fprintf(stderr, "# proved: %.9g\n", proved.makespan);
	}
}

static const char *const mine[] = {"multistage", "periodic", "disk-revolve", "h-revolve"};

/* Problems in bytes too, tiers of any kind: legal, as costly as said, refused with a budget. */
static void random_problems(void **state)
{
	(void)state;
	struct random r = {test_seed(13), 0};
	int feasible = 0;
	for (int i = 0; i < 1500; i++) {
		struct neap_problem p = random_problem(&r, i % 10 ? 200 : 5000);
		struct neap_params fixed = {0};
		if (p.chain.steps < 1)
			continue;
		if (uniform(&r) < 0.3)
			fixed.period = 1 + below(&r, p.chain.steps + 2);
		if (uniform(&r) < 0.3)
			fixed.checkpoints = 1 + below(&r, p.chain.steps + 2);
		struct neap_plan revolve = planned(&p, "revolve", NULL);
		for (int n = 0; n < 4; n++) {
			struct neap_plan plan = planned(&p, mine[n], &fixed),
					 again = {.size = sizeof again};
			if (plan.feasible && plan.advance_steps < 1000000) {
				checked(&p, mine[n], &fixed);
				feasible++;
			}
			if (!plan.feasible && plan.least_bytes) {
				struct neap_problem richer = p;
				assert_true(plan.least_bytes > p.memory);
				richer.memory = plan.least_bytes;
				again = planned(&richer, mine[n], &fixed);
				assert_true(again.feasible);
			}
			if (!revolve.feasible || (n != 3 && (n != 0 || fixed.checkpoints)))
				continue;
			if (plan.makespan > revolve.makespan * (1 + 1e-12))
				fail_msg("%d: %s: %.17g, revolve %.17g", i, mine[n], plan.makespan,
					revolve.makespan);
		}
	}
	fprintf(stderr, "# %d schedules\n", feasible);
	assert_true(feasible > 2000);
}

/* However long the chain, a plan is quick. */
static void quick(void **state)
{
	(void)state;
	struct random r = {test_seed(14), 0};
	double slowest[4] = {0};
	for (int i = 0; i < 40; i++) {
		struct neap_problem p = random_problem(&r, 1e9);
		p.chain.steps = (int64_t)decades(&r, 1e6, 1e9);
		for (int n = 0; n < 4; n++) {
			double began = test_seconds();
			struct neap_plan plan = planned(&p, mine[n], NULL);
			double took = test_seconds() - began;
			if (took > slowest[n])
				slowest[n] = took;
			if (took > 1)
				fprintf(stderr, "# %s T=%lld M/S=%.3g: %.1f ms\n", mine[n],
					(long long)p.chain.steps,
					(double)p.memory / (double)p.chain.state, 1e3 * took);
			if (plan.feasible)
				assert_true(plan.arena_bytes <= p.memory);
		}
	}
	for (int n = 0; n < 4; n++)
		test_limit(mine[n], slowest[n], 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hundred_thousand),
		cmocka_unit_test(random_problems),
		cmocka_unit_test(quick),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
