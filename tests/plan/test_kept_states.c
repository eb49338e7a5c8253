/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans that keep states in fast memory beyond the turn and never write them: makespans that `auto`
 * must reach; and random numbers of such plans, whose schedules are legal and take the planned
 * bytes and seconds, also as text.
 *
 *     test_kept_states        what `make check` runs
 *     test_kept_states all    ten times as many random plans
 */
#include "plan_test.h"
#include "plan/blocks/block_plan.h"
#include "plan/core/plan_row.h"

static int all = 0;

/* f = r = 1, a state of 1 MB takes tau seconds each way; memory and tape in states. */
struct row {
	int64_t steps;
	double memory, tape, tau, back, makespan;
};

static struct neap_problem problem_of(const struct row *row)
{
	struct neap_problem p = NEAP_PROBLEM_INIT;
	const double state = 1000000;
	p.chain.steps = row->steps;
	p.chain.state = p.chain.live = (uint64_t)state;
	p.chain.tape = (uint64_t)(row->tape * state);
	p.chain.advance = p.chain.record = 1;
	p.chain.backward = row->back;
	p.memory = (uint64_t)(row->memory * state);
	add_tier(&p, NEAP_INFINITE, 0, NEAP_TIER_DUPLEX);
	p.tiers[0].write_rate = p.tiers[0].read_rate = state / row->tau;
	return p;
}

/* `auto` reaches the makespans, by plans that other kinds of blocks do not reach. */
static void rows(void **state)
{
	static const struct row table[] = {
		{1000, 50, 3, 100, 4, 6360},
		{10000, 100, 3, 100, 2, 44473},
		{10000, 100, 3, 100, 4, 64334},
		{10000, 20, 3, 1000, 2, 64074},
	};
	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
		struct neap_problem p = problem_of(&table[i]);
		struct neap_plan plan = {.size = sizeof plan};
		assert_int_equal(neap_plan_make(&plan, &p, "auto", NULL), 0);
		if (!(plan.makespan <= table[i].makespan))
			fail_msg("row %d: makespan %.10g, not %.10g", (int)i, plan.makespan,
				table[i].makespan);
		assert_int_equal(plan.blocks.inner, NEAP_BLOCKS_KEPT);
		assert_true(plan.blocks.kept_states > 0);
		as_said(&p, &plan);
		plan_read_back(&plan, &p);
	}
}

/* Of the blocks of a plan, those that keep their states write nothing. */
static void written(void **state)
{
	static const struct row row = {1000, 50, 3, 100, 4, 0};
	struct neap_problem p = problem_of(&row);
	struct neap_blocks b = {.inner = NEAP_BLOCKS_KEPT,
		.advance = 20,
		.reserve_steps = 20,
		.kept_states = 19,
		.tail = 10,
		.reserve = 1000000};
	struct neap_plan plan = {.size = sizeof plan, .strategy = "auto", .chosen = "auto"};
	struct neap__prefetch *prefetch;
	(void)state;
	assert_int_equal(neap__prefetch_new(&prefetch), 0);
	assert_int_equal(neap__block_plan_evaluate(&plan, &p, 1, &b, NULL, prefetch, 0, NULL), 0);
	assert_true(plan.feasible);
	/* (1000 - 10) / 20 blocks, rounded up, of which 19 are kept */
	assert_int_equal(plan.tiers[0].written, (uint64_t)(50 - 19) * p.chain.state);
	assert_int_equal(plan.tiers[0].read, plan.tiers[0].written);
	as_said(&p, &plan);
	/* The plan can be replaced at blocks that write their state. */
	struct neap_schedule *s;
	struct neap_action a;
	int64_t step, replaceable = 0;
	assert_int_equal(neap_schedule_open(&s, &p, &plan), 0);
	while (neap_schedule_next(s, &a) > 0)
		replaceable += neap__block_plan_at_block(s, &step);
	neap_schedule_close(s);
	assert_int_equal(replaceable, 50 - 19 - 1);
	/* Numbers that are not possible. */
	int64_t *numbers[] = {&b.kept_states, &b.tail, &b.reserve_steps};
	for (int i = 0; i < 3; i++) {
		struct neap_blocks good = b;
		int64_t bad[] = {0, -1, 1000, INT64_MAX};
		for (int k = 0; k < 4; k++) {
			*numbers[i] = bad[k];
			assert_int_equal(neap__block_plan_evaluate(
						 &plan, &p, 1, &b, NULL, prefetch, 0, NULL),
				0);
			assert_false(plan.feasible);
		}
		b = good;
	}
	neap__prefetch_free(prefetch);
}

/* A chain in whole numbers of seconds and bytes. */
static struct neap_problem random_chain(struct random *r)
{
	struct neap_problem p = NEAP_PROBLEM_INIT;
	struct neap_chain *c = &p.chain;
	c->steps = 20 + below(r, 2000);
	c->state = c->live = (uint64_t)(1 + below(r, 50));
	c->tape = (uint64_t)(1 + below(r, 100));
	c->advance = 1;
	c->record = 1 + (double)below(r, 2);
	c->backward = (double)(1 + below(r, 4));
	c->call = maybe(r, 0.2, uniform(r));
	c->slot_write = maybe(r, 0.2, uniform(r));
	p.memory = 2 * c->state + c->tape + (uint64_t)((double)c->state * decades(r, 2, 100));
	add_tier(&p, NEAP_INFINITE, maybe(r, 0.3, 1), uniform(r) < 0.6 ? NEAP_TIER_DUPLEX : 0);
	p.tiers[0].flags |= uniform(r) < 0.1 ? NEAP_TIER_SYNC : 0;
	p.tiers[0].write_rate = (double)c->state / decades(r, 0.5, 300);
	p.tiers[0].read_rate = p.tiers[0].write_rate * decades(r, 0.5, 2);
	p.tiers[0].staging = (uint64_t)maybe(r, 0.2, (double)c->state);
	p.tiers[0].cpu = maybe(r, 0.2, 0.1 / p.tiers[0].write_rate);
	if (uniform(r) < 0.2)
		p.tiers[0].capacity = (uint64_t)((double)c->state * decades(r, 1, 100));
	return p;
}

/* Any numbers whatever: those that fit are legal and take the planned bytes and seconds. */
static void any_numbers(void **state)
{
	(void)state;
	struct random r = {test_seed(71), 0};
	struct neap__prefetch *prefetch;
	int fit = 0;
	assert_int_equal(neap__prefetch_new(&prefetch), 0);
	for (int i = 0; i < (all ? 20000 : 2000); i++) {
		struct neap_problem p = random_chain(&r);
		int64_t states = (int64_t)(p.memory / p.chain.state);
		struct neap_blocks b = {.inner = NEAP_BLOCKS_KEPT,
			.advance = 1 + below(&r, 60),
			.kept_states = 1 + below(&r, states),
			.tail = 1 + below(&r, 60),
			.reserve = (int64_t)p.chain.state * below(&r, 3)};
		b.reserve_steps = 1 + below(&r, b.advance);
		struct neap_plan plan = {.size = sizeof plan, .strategy = "auto", .chosen = "auto"};
		if (neap__block_plan_evaluate(&plan, &p, 1, &b, NULL, prefetch, 0, NULL) < 0)
			fail_msg("round %d: %s", i, neap_detail());
		if (!plan.feasible)
			continue;
		fit++;
		as_said(&p, &plan);
		neap__plan_complete(&plan, &p);
		neap__plan_bound(&plan, neap_bound(&p));
		if (i % 16 == 0)
			plan_read_back(&plan, &p);
	}
	neap__prefetch_free(prefetch);
	fprintf(stderr, "# %d plans fit\n", fit);
	assert_true(fit > 500);
}

/* More effort never gives a slower plan. */
static void effort(void **state)
{
	static const struct row row = {3000, 60, 2, 50, 2, 0};
	struct neap_problem p = problem_of(&row);
	double before = INFINITY;
	(void)state;
	for (int64_t effort = 50; effort <= 1600; effort *= 2) {
		struct neap_params params = {.effort = effort};
		struct neap_plan plan = {.size = sizeof plan};
		assert_int_equal(neap_plan_make(&plan, &p, "auto", &params), 0);
		assert_true(plan.makespan <= before);
		before = plan.makespan;
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows),
		cmocka_unit_test(written),
		cmocka_unit_test(any_numbers),
		cmocka_unit_test(effort),
	};
	(void)argv;
	all = argc > 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
