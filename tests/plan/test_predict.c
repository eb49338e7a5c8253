/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What plans say of makespan, stall and peak without going through every chunk or
 * block is what a full simulation finds, also where the rhythm of the transfers takes
 * long to settle: writes and reads that take a hair more or less than what hides them.
 */
#include "plan_test.h"

static const char *const strategies[] = {"remote", "hierarchical", "double", "stream", "async"};

/* Long chunk chains; write and read within a factor 1 +- 10^-1..10^-7 of a chunk or a step. */
static struct neap_problem near_balance(struct random *r)
{
	struct neap_problem p = NEAP_PROBLEM_INIT;
	struct neap_chain *c = &p.chain;
	c->steps = (int64_t)decades(r, 1e3, 1e5);
	c->state = 1 + (uint64_t)below(r, 1000);
	c->tape = 1 + (uint64_t)((double)c->state * decades(r, 0.05, 5));
	c->advance = decades(r, 0.1, 10);
	c->record = c->advance * (uniform(r) < 0.5 ? 1 : decades(r, 1, 2));
	c->backward = c->advance * decades(r, 0.3, 3);
	c->slot_write = maybe(r, 0.4, c->advance * decades(r, 0.01, 3));
	c->slot_read = maybe(r, 0.4, c->advance * decades(r, 0.01, 3));
	int64_t chunk = 1 + below(r, 6);
	p.memory = c->state + (uint64_t)(chunk + below(r, 3)) * c->tape +
		   c->state * (uint64_t)below(r, 20);
	p.ntiers = 1;
	struct neap_tier_spec *t = &p.tiers[0];
	snprintf(t->name, sizeof t->name, "tier");
	t->capacity = uniform(r) < 0.9 ? NEAP_INFINITE
				       : c->state * (uint64_t)decades(r, 10, (double)c->steps);
	double off = decades(r, 1e-7, 1e-1) * (uniform(r) < 0.5 ? -1 : 1);
	double whole = (double)chunk * c->advance + maybe(r, 0.5, c->slot_write);
	t->write_fixed = whole * (uniform(r) < 0.2 ? 1 : 1 + off);
	whole = (double)chunk * (uniform(r) < 0.5 ? c->backward : c->record + c->backward);
	t->read_fixed = whole * (uniform(r) < 0.2 ? 1 : 1 - off);
	t->cpu = maybe(r, 0.3, c->advance / (double)c->state * decades(r, 1e-3, 1));
	t->cpu_fixed = maybe(r, 0.3, c->advance * decades(r, 1e-3, 1));
	t->flags = (uniform(r) < 0.1 ? NEAP_TIER_SYNC : 0u) |
		   (uniform(r) < 0.5 ? NEAP_TIER_DUPLEX : 0u);
	c->call = random_call(r, c->advance);
	return p;
}

static void check(const struct neap_problem *p, const char *strategy, int64_t *longest)
{
	struct neap_plan plan = {.size = sizeof plan};
	assert_int_equal(neap_plan_make(&plan, p, strategy, NULL), 0);
	if (!plan.feasible)
		return;
	struct neap_simulation full = simulated(p, &plan);
	struct neap_verdict v = verified(p, &plan);
	assert_int_equal(v.peak_bytes, plan.peak_bytes);
	assert_int_equal(v.advance_steps, plan.advance_steps);
	assert_int_equal(v.record_steps, plan.record_steps);
	assert_memory_equal(v.tiers, plan.tiers, sizeof v.tiers);
	int64_t unit = plan.params.chunk ? plan.params.chunk : plan.params.interval;
	int64_t units = unit ? p->chain.steps / unit : 1;
	*longest = units > *longest ? units : *longest;
	if (!near(full.makespan, plan.makespan) ||
		fabs(full.stall - plan.stall) > 1e-9 * full.makespan)
		fail_msg("%s T=%lld: makespan %.17g, simulated %.17g; stall %.17g, %.17g", strategy,
			(long long)p->chain.steps, plan.makespan, full.makespan, plan.stall,
			full.stall);
}

static void balanced(void **state)
{
	(void)state;
	struct random r = {test_seed(31), 0};
	int64_t longest = 0;
	for (int i = 0; i < 40; i++) {
		struct neap_problem p = near_balance(&r);
		for (size_t s = 0; s < sizeof strategies / sizeof strategies[0]; s++)
			check(&p, strategies[s], &longest);
	}
	assert_true(longest > 5000);
}

static void any(void **state)
{
	(void)state;
	struct random r = {test_seed(32), 0};
	int64_t longest = 0;
	for (int i = 0; i < 60; i++) {
		struct neap_problem p = random_problem(&r, 1e5);
		for (size_t s = 0; s < sizeof strategies / sizeof strategies[0]; s++)
			check(&p, strategies[s], &longest);
	}
}

/* As long as it gets: a chunk of one step, 10^9 of them, writes drifting. */
static void billion(void **state)
{
	(void)state;
	struct neap_problem p = unit_problem(1000000000, 20), less;
	struct neap_plan plan = {.size = sizeof plan}, shorter = {.size = sizeof shorter};
	add_tier(&p, NEAP_INFINITE, 1.00001, NEAP_TIER_DUPLEX);
	struct neap_params one = {.chunk = 1};
	assert_int_equal(neap_plan_make(&plan, &p, "remote", &one), 0);
	less = p;
	less.chain.steps /= 1000;
	assert_int_equal(neap_plan_make(&shorter, &less, "remote", &one), 0);
	struct neap_simulation full = simulated(&less, &shorter);
	assert_true(near(full.makespan, shorter.makespan));
	/* Beyond it each step costs a write, a read beyond its backward, and the rest. */
	double step = 1.00001 + 1 + 1.00001;
	double more = (double)(p.chain.steps - less.chain.steps) * step;
	assert_true(near(plan.makespan, full.makespan + more));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(balanced),
		cmocka_unit_test(any),
		cmocka_unit_test(billion),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
