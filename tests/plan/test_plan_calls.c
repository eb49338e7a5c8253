/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_plan_calls.c: plans of chains whose calls of the model have a cost (chain.call): how many
 * calls a strategy makes, the best group lengths against all of them, and calls that chain.
 * record_steps adds. That predictions equal simulations, test_plan_property.c tests.
 */
#include "plan_test.h"

#include <math.h>
#include "plan/core/strategy.h"

static struct neap_plan plan_of(
	const struct neap_problem *p, const char *strategy, const struct neap_params *params)
{
	struct neap_plan plan = {.size = sizeof plan};
	assert_int_equal(neap_plan_make(&plan, p, strategy, params), 0);
	return plan;
}

/* Calls of the model that the schedule makes, and its seconds. */
static int64_t calls_of(const struct neap_problem *p, const struct neap_plan *plan, double *seconds)
{
	struct neap_simulation m = {.size = sizeof m};
	struct neap_schedule *s;
	struct neap_action a;
	int64_t calls = 0;
	assert_int_equal(neap_schedule_open(&s, p, plan), 0);
	while (neap_schedule_next(s, &a) > 0)
		calls += a.kind == NEAP_ADVANCE || a.kind == NEAP_RECORD || a.kind == NEAP_BACKWARD;
	neap_schedule_close(s);
	assert_int_equal(neap_schedule_open(&s, p, plan), 0);
	assert_int_equal(neap_simulate(&m, p, s), 0);
	neap_schedule_close(s);
	*seconds = m.makespan;
	return calls;
}

/* 400 steps of a spiking network on a device, in 300 KiB. */
static struct neap_problem device_problem(double call)
{
	struct neap_problem p = NEAP_PROBLEM_INIT;
	p.chain.steps = 400;
	p.chain.state = p.chain.live = 4544;
	p.chain.adjoint = 4608;
	p.chain.tape = 2240;
	p.chain.advance = 1e-4;
	p.chain.record = 1.2e-4;
	p.chain.backward = 2e-4;
	p.chain.call = call;
	p.memory = 300 << 10;
	return p;
}

static void few_calls_where_memory_permits(void **state)
{
	static const char *const names[] = {"revolve", "multistage", "h-revolve"};
	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct neap_problem free_calls = device_problem(0), p = device_problem(1e-5);
		struct neap_plan plan = plan_of(&free_calls, names[i], NULL);
		double seconds;
		assert_int_equal(plan.params.group, 0);
		assert_int_equal(calls_of(&free_calls, &plan, &seconds), 3 * 400 - 1);
		plan = plan_of(&p, names[i], NULL);
		int64_t calls = calls_of(&p, &plan, &seconds);
		/* 4 groups of 100 steps: 3 slots, and no step is advanced more than once. */
		assert_int_equal(plan.params.group, 100);
		assert_int_equal(calls, 11);
		assert_int_equal(plan.advance_steps, 300);
		assert_int_equal(plan.record_steps, 400);
		assert_int_equal(neap_plan_tapes_held(&plan, 400), 100);
		assert_true(fabs(plan.makespan - seconds) < 1e-9 * seconds);
	}
}

/* Calls that take little of the time change nothing. */
static void cheap_calls_change_nothing(void **state)
{
	(void)state;
	for (int i = 0; neap_strategy_name(i); i++) {
		struct neap_problem free_calls = device_problem(0), p = device_problem(1e-9);
		struct neap_plan a = plan_of(&free_calls, neap_strategy_name(i), NULL);
		struct neap_plan b = plan_of(&p, neap_strategy_name(i), NULL);
		assert_int_equal(a.feasible, b.feasible);
		assert_memory_equal(&a.params, &b.params, sizeof a.params);
		assert_string_equal(a.chosen, b.chosen);
	}
}

#define LONGEST 40

/* The fewest advances of n steps with s slots, by the recursion that defines them. */
static double least_advances(int n, int s)
{
	static double cost[LONGEST + 1][LONGEST + 1];
	for (int k = 0; k <= s; k++)
		for (int l = 0; l <= n; l++) {
			cost[k][l] = l <= 1 ? 0 : INFINITY;
			for (int y = 1; k > 0 && y < l; y++)
				cost[k][l] = fmin(cost[k][l], y + cost[k - 1][l - y] + cost[k][y]);
		}
	return cost[s][n];
}

/* Seconds of the best plan of groups of one length, over all lengths. */
static double least_seconds(const struct neap_problem *p)
{
	const struct neap_chain *c = &p->chain;
	int64_t pool = (int64_t)(p->memory - c->live);
	double least = INFINITY;
	for (int64_t g = 1; g <= c->steps && g * (int64_t)c->tape <= pool; g++) {
		int64_t n = (c->steps + g - 1) / g;
		int64_t slots = (pool - g * (int64_t)c->tape) / (int64_t)c->state;
		slots = slots < n - 1 ? slots : n - 1;
		double seconds = (double)g * least_advances((int)n, (int)slots) * c->advance +
				 (double)c->steps * (c->record + c->backward) +
				 (double)(3 * n - 1) * c->call;
		least = fmin(least, seconds);
	}
	return least;
}

static void best_groups_of_short_chains(void **state)
{
	uint64_t seed = test_seed(1);
	int grouped = 0;
	(void)state;
	for (uint64_t i = 0; i < 600; i++) {
		struct random r = {.seed = seed + i};
		struct neap_problem p = NEAP_PROBLEM_INIT;
		double seconds;
		p.chain.steps = 1 + below(&r, LONGEST);
		p.chain.state = p.chain.live = (uint64_t)(1 + below(&r, 6));
		p.chain.tape = (uint64_t)(1 + below(&r, 6));
		p.chain.advance = 1;
		p.chain.record = 1.25;
		p.chain.backward = 2;
		p.chain.call = 0.25 * (double)below(&r, 12);
		p.memory =
			p.chain.live + p.chain.tape + (uint64_t)(1 + below(&r, 20)) * p.chain.state;
		struct neap_plan plan = plan_of(&p, "revolve", NULL);
		double least = least_seconds(&p);
		if (!plan.feasible)
			continue;
		calls_of(&p, &plan, &seconds);
		assert_true(fabs(plan.makespan - seconds) < 1e-9 * seconds);
		if (p.chain.call == 0)
			assert_int_equal(plan.params.group, 0);
		else if (fabs(plan.makespan - least) > 1e-9 * least &&
			 3 * (double)p.chain.steps * p.chain.call > 0.05 * plan.makespan)
			fail_msg("seed %llu, T=%lld S=%llu A=%llu M=%llu call=%g: %.9g, %.9g is "
				 "possible",
				(unsigned long long)(seed + i), (long long)p.chain.steps,
				(unsigned long long)p.chain.state, (unsigned long long)p.chain.tape,
				(unsigned long long)p.memory, p.chain.call, plan.makespan, least);
		grouped += plan.params.group > 0;
		/* No limit of slots makes `mixed` faster. */
		plan = plan_of(&p, "mixed", NULL);
		for (int64_t s = 1; plan.feasible && s < 24; s++) {
			struct neap_params few = {.checkpoints = s};
			struct neap_plan other = plan_of(&p, "mixed", &few);
			if (other.feasible && p.chain.call > 0.5)
				assert_true(plan.makespan <= other.makespan * (1 + 1e-12));
		}
	}
	assert_true(grouped > 100);
}

/* Groups of every length have a legal schedule of the predicted memory, with tapes that vary too.
 */
static void groups_are_legal(void **state)
{
	static const char *const names[] = {
		"revolve", "multistage", "periodic", "disk-revolve", "h-revolve"};
	(void)state;
	for (int64_t steps = 30; steps < 60; steps++)
		for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
			struct neap_problem p = NEAP_PROBLEM_INIT;
			struct neap_verdict verdict = {.size = sizeof verdict};
			struct neap_schedule *s;
			double seconds;
			p.chain.steps = steps;
			p.chain.state = p.chain.live = 7;
			p.chain.tape = 3;
			p.chain.tape_max = steps % 2 ? 5 : 0;
			p.chain.advance = 1;
			p.chain.record = 1.5;
			p.chain.backward = 2;
			p.chain.call = 2;
			p.chain.last = steps % 3 ? 0 : 0.5;
			p.memory = 60;
			add_tier(&p, 1000, 3, steps % 4 ? 0 : NEAP_TIER_SYNC);
			struct neap_plan plan = plan_of(&p, names[i], NULL);
			assert_true(plan.feasible && plan.params.group > 1);
			assert_int_equal(neap_schedule_open(&s, &p, &plan), 0);
			assert_int_equal(neap_verify(&verdict, &p, s), 0);
			neap_schedule_close(s);
			assert_int_equal(verdict.peak_bytes, plan.peak_bytes);
			assert_true(plan.peak_bytes <= p.memory);
			assert_int_equal(verdict.advance_steps, plan.advance_steps);
			assert_int_equal(verdict.record_steps, steps);
			calls_of(&p, &plan, &seconds);
			assert_true(fabs(plan.makespan - seconds) < 1e-9 * seconds);
			assert_true(plan.bound <= plan.makespan * (1 + 1e-9));
		}
}

struct text {
	char data[8192];
	size_t length;
};

static int collect(void *user, const char *bytes, size_t count)
{
	struct text *text = user;
	assert_true(text->length + count <= sizeof text->data);
	memcpy(text->data + text->length, bytes, count);
	text->length += count;
	return 0;
}

/* The numbers of a plan that is written, which include these calls, are those that reading finds.
 */
static void is_read_again(const struct neap_problem *p, const struct neap_plan *plan)
{
	struct neap_saved *saved;
	struct text text = {.length = 0};

	assert_int_equal(neap_plan_write(plan, p, 0, collect, &text), 0);
	assert_int_equal(neap_plan_read(&saved, text.data, text.length, 0), 0);
	assert_true(fabs(saved->plan->overhead - plan->overhead) <= 1e-9);
	neap_saved_free(saved);
}

/* Of a long action one call per record_steps steps is counted besides. */
static void long_actions_are_several_calls(void **state)
{
	(void)state;
	for (int i = 0; neap_strategy_name(i); i++) {
		struct neap_problem p = device_problem(1e-4), few = p;
		double seconds;
		p.chain.record_steps = 64;
		struct neap_plan plan = plan_of(&p, neap_strategy_name(i), NULL);
		struct neap_plan other = plan_of(&few, neap_strategy_name(i), NULL);
		assert_int_equal(plan.feasible, other.feasible);
		if (!plan.feasible)
			continue;
		assert_memory_equal(&plan.params, &other.params, sizeof plan.params);
		double more = 2 * 400.0 / 64 * p.chain.call;
		assert_true(fabs(plan.makespan - other.makespan - more) < 1e-9);
		calls_of(&p, &plan, &seconds);
		assert_true(fabs(plan.makespan - seconds) < 1e-9 * seconds);
		assert_true(plan.bound <= plan.makespan * (1 + 1e-9));
		assert_true(plan.bound >= other.bound);
		is_read_again(&p, &plan);
	}
}

/* Chosen plans make few calls where others that keep up do: under a tenth of the time. */
static void auto_avoids_calls(void **state)
{
	(void)state;
	for (double call = 1e-6; call < 2e-3; call *= 10) {
		struct neap_problem p = device_problem(call);
		struct neap_plan best = plan_of(&p, "auto", NULL);
		double seconds;
		assert_true((double)calls_of(&p, &best, &seconds) * call < seconds / 10);
		for (int i = 0; neap_strategy_name(i); i++) {
			struct neap_plan row = plan_of(&p, neap_strategy_name(i), NULL);
			if (row.feasible)
				assert_true(best.makespan <= row.makespan * (1 + 1e-11));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(few_calls_where_memory_permits),
		cmocka_unit_test(cheap_calls_change_nothing),
		cmocka_unit_test(best_groups_of_short_chains),
		cmocka_unit_test(groups_are_legal),
		cmocka_unit_test(long_actions_are_several_calls),
		cmocka_unit_test(auto_avoids_calls),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
