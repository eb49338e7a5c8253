/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans whose blocks have two lengths (neap_blocks.every): makespans that `auto` must reach; the
 * lengths are those that plan.h specifies; and random numbers of such plans, whose schedules are
 * legal and take the planned bytes and seconds, also as text and with replacements.
 *
 *     test_block_lengths        what `make check` runs
 *     test_block_lengths all    many more random plans
 */
#include "plan_test.h"
#include "plan/blocks/block_plan.h"
#include "plan/core/plan_row.h"

static int all = 0;

/* f = r = 1; memory for 10 states, or for one state and 3 tapes; tau = 10. */
static struct neap_problem ten_states(int64_t steps)
{
	struct neap_problem p = NEAP_PROBLEM_INIT;
	p.chain.steps = steps;
	p.chain.state = p.chain.live = 1000;
	p.chain.tape = 3000;
	p.chain.advance = p.chain.record = 1;
	p.chain.backward = 4;
	p.memory = 10000;
	add_tier(&p, NEAP_INFINITE, 0, NEAP_TIER_DUPLEX);
	p.tiers[0].write_rate = p.tiers[0].read_rate = 100;
	return p;
}

/* Blocks of equal lengths reach 6807, 68170 and 6818170. */
static void rows(void **state)
{
	static const struct {
		int64_t steps;
		double makespan;
	} table[] = {{1000, 6742}, {10000, 67500}, {1000000, 6750000}};
	(void)state;
	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
		struct neap_problem p = ten_states(table[i].steps);
		struct neap_plan plan = {.size = sizeof plan};
		assert_int_equal(neap_plan_make(&plan, &p, "auto", NULL), 0);
		if (!(plan.makespan <= table[i].makespan))
			fail_msg("row %d: makespan %.10g, not %.10g", (int)i, plan.makespan,
				table[i].makespan);
		assert_true(plan.blocks.every > 1 && plan.blocks.reserve_steps > 0);
		assert_true(plan.blocks.reserve_steps != plan.blocks.advance);
		as_said(&p, &plan);
		plan_read_back(&plan, &p);
	}
}

static int evaluate(struct neap_plan *plan, const struct neap_problem *p,
	const struct neap_blocks *b, struct neap__prefetch *prefetch)
{
	*plan = (struct neap_plan){.size = sizeof *plan, .strategy = "auto", .chosen = "auto"};
	int rc = neap__block_plan_evaluate(plan, p, 1, b, NULL, prefetch, 0, NULL);
	if (rc < 0)
		fail_msg("%s", neap_detail());
	return plan->feasible;
}

/* The states that are written are those at the starts of the blocks. */
static void lengths(void **state)
{
	struct neap_problem p = ten_states(100);
	struct neap_blocks b = {.inner = NEAP_BLOCKS_MULTIREAD,
		.advance = 12,
		.reserve_steps = 6,
		.every = 3,
		.tail = 5,
		.price = 1};
	/* 95 steps: 5, then 12, 12, 6, 12, 12, 6, 12, 12, and 6, where the tail begins, if any. */
	static const int64_t starts[] = {0, 5, 17, 29, 35, 47, 59, 65, 77, 89};
	struct neap_plan plan;
	struct neap__prefetch *prefetch;
	struct neap_schedule *s;
	struct neap_action a;
	(void)state;
	assert_int_equal(neap__prefetch_new(&prefetch), 0);
	assert_true(evaluate(&plan, &p, &b, prefetch));
	as_said(&p, &plan);
	assert_int_equal(neap_schedule_open(&s, &p, &plan), 0);
	int64_t n = 0;
	while (neap_schedule_next(s, &a) > 0 && a.kind != NEAP_TURN)
		if (a.kind == NEAP_PUT) {
			assert_true(n < 10);
			assert_int_equal(a.t0, starts[n]);
			n++;
		}
	assert_int_equal(n, 10);
	neap_schedule_close(s);
	/* Numbers that are not possible, and other kinds of blocks, which have one length. */
	static const struct neap_blocks bad[] = {{.every = -1}, {.every = 1001},
		{.every = INT32_MAX}, {.every = 2, .reserve_steps = -6}, {.every = 2},
		{.every = 2, .reserve_steps = 6, .inner = NEAP_BLOCKS_LEAF},
		{.every = 2, .reserve_steps = 6, .inner = NEAP_BLOCKS_REVOLVE},
		{.every = 2, .reserve_steps = 5000, .inner = NEAP_BLOCKS_MULTIREAD}};
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		struct neap_plan trial = plan;
		trial.blocks.every = bad[i].every;
		trial.blocks.reserve_steps = bad[i].reserve_steps;
		if (bad[i].reserve_steps > 0)
			trial.blocks.inner = bad[i].inner;
		assert_int_equal(neap_schedule_open(&s, &p, &trial), NEAP_EUSAGE);
	}
	neap__prefetch_free(prefetch);
}

/* A chain in whole numbers of seconds and bytes, with memory for a few tapes. */
static struct neap_problem random_chain(struct random *r)
{
	struct neap_problem p = NEAP_PROBLEM_INIT;
	struct neap_chain *c = &p.chain;
	c->steps = 20 + below(r, 5000);
	c->state = c->live = (uint64_t)(1 + below(r, 50));
	c->tape = (uint64_t)(1 + below(r, 100));
	c->advance = 1;
	c->record = 1 + (double)below(r, 2);
	c->backward = (double)(1 + below(r, 4));
	c->call = maybe(r, 0.2, uniform(r));
	p.memory = c->adjoint + 3 * c->state + c->tape + (uint64_t)below(r, 500);
	add_tier(&p, NEAP_INFINITE, maybe(r, 0.3, 1), uniform(r) < 0.6 ? NEAP_TIER_DUPLEX : 0);
	p.tiers[0].flags |= uniform(r) < 0.1 ? NEAP_TIER_SYNC : 0;
	p.tiers[0].write_rate = (double)c->state / (double)(1 + below(r, 30));
	p.tiers[0].read_rate = p.tiers[0].write_rate * decades(r, 0.5, 2);
	return p;
}

static struct neap_blocks random_lengths(struct random *r, const struct neap_problem *p)
{
	struct neap_blocks b = {.inner = NEAP_BLOCKS_MULTIREAD,
		.advance = 1 + below(r, 30),
		.reserve_steps = 1 + below(r, 30),
		.every = 1 + (int32_t)below(r, 6),
		.tail = below(r, 20),
		.price = (double)below(r, 20) / 10,
		.reserve = (int64_t)p->chain.state * below(r, 2)};
	if (uniform(r) < 0.3) {
		b.record = 1 + below(r, 5);
		b.chunk = 1 + below(r, b.record);
	}
	return b;
}

/* A plan is replaced where a block begins, and by one of two lengths again. */
static void replace(struct random *r, const struct neap_problem *p, struct neap_plan *plan,
	struct neap__prefetch *prefetch)
{
	struct neap_schedule *s;
	struct neap_action a;
	int64_t step = 0, at = 0, n = below(r, 40);
	assert_int_equal(neap_schedule_open(&s, p, plan), 0);
	while (neap_schedule_next(s, &a) > 0 && a.kind != NEAP_TURN && n >= 0)
		if (neap__block_plan_at_block(s, &step)) {
			at = step;
			n--;
		}
	neap_schedule_close(s);
	if (at == 0)
		return;
	plan->replans[0] = (struct neap_replan){at, random_lengths(r, p)};
	plan->replan_count = 1;
	if (neap__block_plan_run(plan, p, prefetch) == 0)
		as_said(p, plan);
}

/* Any numbers whatever: those that fit are legal and take the planned bytes and seconds. */
static void any_numbers(void **state)
{
	(void)state;
	struct random r = {test_seed(83), 0};
	struct neap__prefetch *prefetch;
	int fit = 0;
	assert_int_equal(neap__prefetch_new(&prefetch), 0);
	for (int i = 0; i < (all ? 6000 : 400); i++) {
		struct neap_problem p = random_chain(&r);
		struct neap_blocks b = random_lengths(&r, &p);
		struct neap_plan plan;
		if (!evaluate(&plan, &p, &b, prefetch))
			continue;
		fit++;
		as_said(&p, &plan);
		neap__plan_complete(&plan, &p);
		neap__plan_bound(&plan, neap_bound(&p));
		if (i % 8 == 0)
			plan_read_back(&plan, &p);
		if (i % 2 == 0)
			replace(&r, &p, &plan, prefetch);
	}
	neap__prefetch_free(prefetch);
	fprintf(stderr, "# %d plans fit\n", fit);
	assert_true(fit > 200);
}

/* More effort never gives a slower plan. */
static void effort(void **state)
{
	struct neap_problem p = ten_states(3000);
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
		cmocka_unit_test(lengths),
		cmocka_unit_test(any_numbers),
		cmocka_unit_test(effort),
	};
	(void)argv;
	all = argc > 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
