/* SPDX-License-Identifier: Apache-2.0 */
/* Linear programs small enough to solve by hand, and what must not pass for a bound. */
#include "test.h"
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
	struct neap__linear_program lp = {0};
	(void)state;
	/* The least 2 x + 3 y with x + y >= 4, x <= 3, y >= 1/2: x = 3, y = 1. */
	lp.cost[0] = 2;
	lp.cost[1] = 3;
	assert_true(neap__linear_program_bound(&lp) == 0);
	add(&lp, 1, 1, 4);
	assert_true(fabs(neap__linear_program_bound(&lp) - 8) < 1e-12);
	add(&lp, -1, 0, -3);
	assert_true(fabs(neap__linear_program_bound(&lp) - 9) < 1e-12);
	add(&lp, 0, 1, 0.5);
	assert_true(fabs(neap__linear_program_bound(&lp) - 9) < 1e-12);
	add(&lp, 0, 1000, 2000);
	assert_true(fabs(neap__linear_program_bound(&lp) - 10) < 1e-12);
}

/* The multipliers are checked against the costs: -x + y may fall without end. */
static void no_bound_without_a_certificate(void **state)
{
	struct neap__linear_program lp = {0};
	(void)state;
	lp.cost[0] = -1;
	lp.cost[1] = 1;
	add(&lp, 0, 1, 1);
	assert_true(neap__linear_program_bound(&lp) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(solved_by_hand),
		cmocka_unit_test(no_bound_without_a_certificate),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
