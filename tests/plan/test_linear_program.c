/* SPDX-License-Identifier: Apache-2.0 */
/* Linear programs small enough to solve by hand, and what must not pass for a bound. */
#include "plan_test.h"
#include "plan/bound/linear_program.h"

static void add(struct neap__linear_program *lp, double g0, double g1, double rhs)
{
	struct neap__linear_program_row row = {.rhs = rhs};
	row.g[0] = g0;
	row.g[1] = g1;
	neap__linear_program_add(lp, &row);
}

static void solved_by_hand(void **state)
{
	struct neap__linear_program lp;
	double x[2];
	(void)state;
	/* The least 2 x + 3 y with x + y >= 4, x <= 3, y >= 1/2: x = 3, y = 1. */
	neap__linear_program_init(&lp, 2, (const double[]){2, 3});
	assert_true(neap__linear_program_bound(&lp, NULL) == 0);
	add(&lp, 1, 1, 4);
	assert_true(fabs(neap__linear_program_bound(&lp, NULL) - 8) < 1e-12);
	add(&lp, -1, 0, -3);
	assert_true(fabs(neap__linear_program_bound(&lp, NULL) - 9) < 1e-12);
	add(&lp, 0, 1, 0.5);
	assert_true(fabs(neap__linear_program_bound(&lp, NULL) - 9) < 1e-12);
	add(&lp, 0, 1000, 2000);
	assert_true(fabs(neap__linear_program_bound(&lp, x) - 10) < 1e-12);
	assert_true(fabs(x[0] - 2) < 1e-12 && fabs(x[1] - 2) < 1e-12);
}

/* Rows that are added one by one to a solved program give what they give all at once. */
static void rows_added_later(void **state)
{
	struct random r = {test_seed(17), 0};
	(void)state;
	for (int round = 0; round < 200; round++) {
		struct neap__linear_program once, later;
		double cost[4], x[4], least = 0;
		for (int j = 0; j < 4; j++)
			cost[j] = uniform(&r) + 0.1;
		neap__linear_program_init(&once, 4, cost);
		neap__linear_program_init(&later, 4, cost);
		for (int i = 0; i < 12; i++) {
			struct neap__linear_program_row row = {.rhs = uniform(&r)};
			for (int j = 0; j < 4; j++)
				row.g[j] = j == 0 ? 1 : uniform(&r) - 0.5; /* feasible */
			neap__linear_program_add(&once, &row);
			neap__linear_program_add(&later, &row);
			double now = neap__linear_program_bound(&later, x), cost_of_x = 0;
			assert_true(now >= least * (1 - 1e-12));
			for (int j = 0; j < 4; j++)
				cost_of_x += cost[j] * x[j];
			assert_true(fabs(cost_of_x - now) <= 1e-9 * (1 + now));
			least = now;
		}
		assert_true(fabs(neap__linear_program_bound(&once, NULL) - least) <=
			    1e-9 * (1 + least));
	}
}

/* The multipliers are checked against the costs: -x + y may fall without end. */
static void no_bound_without_a_certificate(void **state)
{
	struct neap__linear_program lp;
	(void)state;
	neap__linear_program_init(&lp, 2, (const double[]){-1, 1});
	add(&lp, 0, 1, 1);
	assert_true(neap__linear_program_bound(&lp, NULL) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(solved_by_hand),
		cmocka_unit_test(rows_added_later),
		cmocka_unit_test(no_bound_without_a_certificate),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
