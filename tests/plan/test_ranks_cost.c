/* SPDX-License-Identifier: Apache-2.0 */
/* What training and sweeps take on several ranks: counted by hand, and what is refused. */
#include "test.h"

#include <math.h>
#include <neap/plan.h>

static struct neap_problem problem_of(void)
{
	struct neap_problem p = NEAP_PROBLEM_INIT;
	p.chain.steps = 1000;
	p.chain.state = p.chain.adjoint = 1000;
	p.chain.tape = 100;
	p.chain.advance = p.chain.record = 1e-5;
	p.chain.backward = 2e-5;
	p.memory = 1 << 20;
	return p;
}

static struct neap_ranks_cost cost_of(const struct neap_ranks *q)
{
	struct neap_problem p = problem_of();
	struct neap_plan plan = {.size = sizeof plan};
	struct neap_ranks_cost cost = {.size = sizeof cost};
	assert_int_equal(neap_plan_make(&plan, &p, "bptt", NULL), 0);
	assert_true(plan.feasible && fabs(plan.makespan - 0.03) < 1e-9);
	assert_int_equal(neap_ranks_predict(&cost, &p, &plan, q), 0);
	return cost;
}

static struct neap_ranks training(int ranks)
{
	return (struct neap_ranks){.size = sizeof(struct neap_ranks),
		.ranks = ranks,
		.alpha = 2e-6,
		.rate = 12.5e9,
		.parameters = 1000000,
		.units = 500,
		.batch = 512,
		.group = 16,
		.threads = 2};
}

/* 32 groups of 30 ms. */
static void by_hand(void **state)
{
	(void)state;
	static const struct {
		int ranks, nodes, rounds, messages, idle;
	} rows[] = {
		/* 12 calls by halves; slices go in rounds of 2^19 numbers over all nodes. */
		{1, 0, 16, 0, 0},
		{2, 1, 8, 2 * 1 + 12, 0},
		/* [10, 21): 10, 12, 16 and 20 begin its nodes; the others have 2 and 3. */
		{3, 4, 6, 8 * 2 + 2 * 12, 0},
		{4, 1, 4, 2 * 3 + 2 * 12, 0},
		{32, 1, 1, 2 * 31 + 5 * 12, 0},
		{40, 1, 1, 2 * 39 + 6 * 12, 8},
	};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct neap_ranks q = training(rows[i].ranks);
		struct neap_ranks_cost c = cost_of(&q);
		static const int halves[] = {0, 1, 2, 2, 5, 6};
		double share = (double)(q.ranks - 1) / q.ranks;
		double sent = q.ranks == 1 ? 0
					   : (8.0 * rows[i].nodes + 4 + 8.0 / 512) * 1e6 * share +
						     8.0 * rows[i].nodes * 500 * (q.ranks - 1) +
						     8 * 512 * share + 48 * (q.ranks - 1) +
						     8 * 35 * halves[i];
		double exchanged = rows[i].messages * 2e-6 + sent / 12.5e9;
		assert_true(fabs(c.computed - 0.03 * rows[i].rounds) < 1e-9);
		assert_true(fabs((double)c.sent - sent) <= 1);
		assert_int_equal(c.messages, rows[i].messages);
		assert_int_equal(c.idle, rows[i].idle);
		assert_true(fabs(c.exchanged - exchanged) < 1e-12);
		double efficiency = 0.03 * 16 / (c.computed + exchanged) / q.ranks;
		assert_true(fabs(c.efficiency - fmin(1, efficiency)) < 1e-9);
	}
}

/* A sweep agrees ten times a second, and at each wait: bptt has none. */
static void sweeps(void **state)
{
	(void)state;
	struct neap_ranks q = training(1024);
	q.parameters = 0;
	struct neap_ranks_cost c = cost_of(&q);
	assert_int_equal(c.messages, 2 * 10 * 1);
	assert_true(fabs(c.exchanged - 20 * 2e-6) < 1e-12 && c.sent == 0 && c.idle == 0);
	assert_true(fabs(c.efficiency - 0.03 / (0.03 + 4e-5)) < 1e-9);
	q.ranks = 1;
	c = cost_of(&q);
	assert_true(c.messages == 0 && c.efficiency == 1);
}

static void refusals(void **state)
{
	(void)state;
	struct neap_problem p = problem_of();
	struct neap_plan plan = {.size = sizeof plan};
	assert_int_equal(neap_plan_make(&plan, &p, "bptt", NULL), 0);
#define REFUSED(change)                                                                            \
	do {                                                                                       \
		struct neap_ranks q = training(2);                                                 \
		struct neap_ranks_cost c = {.size = sizeof c};                                     \
		change;                                                                            \
		assert_int_equal(neap_ranks_predict(&c, &p, &plan, &q), NEAP_EUSAGE);              \
	} while (0)
	REFUSED(q.size = 0);
	REFUSED(c.size = 0);
	REFUSED(q.ranks = 0);
	REFUSED(q.ranks = 1 << 21);
	REFUSED(q.alpha = -1);
	REFUSED(q.alpha = NAN);
	REFUSED(q.rate = -1);
	REFUSED(q.parameters = -1);
	REFUSED(q.units = -1);
	REFUSED(q.batch = 0);
	REFUSED(q.group = 0);
	REFUSED(q.threads = 0);
	p.memory = 2000;
	assert_int_equal(neap_plan_make(&plan, &p, "bptt", NULL), 0);
	REFUSED(q.ranks = 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_hand),
		cmocka_unit_test(sweeps),
		cmocka_unit_test(refusals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
