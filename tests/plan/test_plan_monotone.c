/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `auto` never gets slower where it is given more: efforts of 125, 250, 500, ..., another tier,
 * more memory, more bandwidth. The first two hold exactly; a search that starts elsewhere may
 * end elsewhere, so the last two hold within 0.3%.
 *
 *     test_plan_monotone [PROBLEMS [TEST]]
 */
#include "plan_test.h"

#define MORE_SLOWER 0.003 /* of more memory or bandwidth, at most */

static int64_t problems = 12;

static struct neap_problem problem_of(struct random *r)
{
	struct neap_problem p = NEAP_PROBLEM_INIT;
	const double state = 1e6, slots = decades(r, 4, 300);
	p.chain.steps = (int64_t)decades(r, 200, 20000);
	p.chain.state = p.chain.live = (uint64_t)state;
	p.chain.tape = (uint64_t)(state * decades(r, 0.1, 5));
	p.chain.advance = p.chain.record = 1;
	p.chain.backward = decades(r, 0.5, 4);
	p.memory = (uint64_t)(state * slots) + p.chain.state + p.chain.tape;
	add_tier(&p, NEAP_INFINITE, 0, uniform(r) < 0.5 ? NEAP_TIER_DUPLEX : 0);
	p.tiers[0].write_rate = p.tiers[0].read_rate = state / decades(r, 0.3, 300);
	return p;
}

static double makespan(const struct neap_problem *p, int64_t effort)
{
	struct neap_plan plan = {.size = sizeof plan};
	const struct neap_params params = {.effort = effort};
	assert_int_equal(neap_plan_make(&plan, p, "auto", &params), 0);
	assert_true(plan.feasible);
	if (plan.bound > plan.makespan * (1 + 1e-9))
		fail_msg("T=%lld A=%llu b=%.17g M=%llu rate=%.17g flags=%u: bound %.17g, %s %.17g",
			(long long)p->chain.steps, (unsigned long long)p->chain.tape,
			p->chain.backward, (unsigned long long)p->memory, p->tiers[0].write_rate,
			p->tiers[0].flags, plan.bound, plan.chosen, plan.makespan);
	return plan.makespan;
}

static void more_effort(void **state)
{
	struct random r = {test_seed(31), 0};
	(void)state;
	for (int64_t i = 0; i < problems; i++) {
		struct neap_problem p = problem_of(&r);
		double last = INFINITY;
		for (int64_t effort = 125; effort <= 2000; effort *= 2) {
			double now = makespan(&p, effort);
			if (now > last * (1 + 1e-12))
				fail_msg("problem %lld: effort %lld takes %.9g s, half of it %.9g",
					(long long)i, (long long)effort, now, last);
			last = now;
		}
	}
}

static void another_tier(void **state)
{
	struct random r = {test_seed(32), 0};
	(void)state;
	for (int64_t i = 0; i < problems; i++) {
		struct neap_problem p = problem_of(&r);
		double one = makespan(&p, 0);
		add_tier(
			&p, uniform(&r) < 0.5 ? p.chain.state : NEAP_INFINITE, 0, NEAP_TIER_DUPLEX);
		p.tiers[1].write_rate = p.tiers[1].read_rate =
			p.tiers[0].read_rate * decades(&r, 1e-4, 1);
		double two = makespan(&p, 0);
		if (two > one * (1 + 1e-12))
			fail_msg("problem %lld: with another tier %.9g s, without %.9g",
				(long long)i, two, one);
	}
}

static void more_memory_or_bandwidth(void **state)
{
	struct random r = {test_seed(33), 0};
	double worst = -1;
	(void)state;
	for (int64_t i = 0; i < problems; i++) {
		struct neap_problem p = problem_of(&r);
		double less = makespan(&p, 0), factor = 1 + decades(&r, 1e-3, 1);
		if (i % 2) {
			p.memory = (uint64_t)((double)p.memory * factor);
		} else {
			p.tiers[0].write_rate *= factor;
			p.tiers[0].read_rate *= factor;
		}
		double more = makespan(&p, 0);
		worst = fmax(worst, more / less - 1);
		if (more > less * (1 + MORE_SLOWER))
			fail_msg("problem %lld: %.4f times the %s takes %.9g s, not %.9g",
				(long long)i, factor, i % 2 ? "memory" : "bandwidth", more, less);
	}
	print_message("# %lld pairs, at most %.3f%% slower\n", (long long)problems, 100 * worst);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_effort),
		cmocka_unit_test(another_tier),
		cmocka_unit_test(more_memory_or_bandwidth),
	};
	if (argc > 1)
		problems = atoll(argv[1]);
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
