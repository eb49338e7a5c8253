/* SPDX-License-Identifier: Apache-2.0 */
/* Two chains into one loss: the table, the recurrence by its definition. */
#include "plan_test.h"

static struct neap_plan planned(int64_t a, int64_t b, uint64_t slots)
{
	struct neap_problem p = classic_problem(a, slots);
	struct neap_plan plan;
	p.chain.join = b;
	if (neap_plan_make(&plan, &p, "join", NULL) < 0)
		fail_msg("join: %s", neap_detail());
	return plan;
}

static void row(long long a, long long b, long long slots, double steps)
{
	struct neap_plan plan = planned(a, b, (uint64_t)slots);
	assert_int_equal(plan.feasible, steps < INFINITY);
	if (!plan.feasible) {
		assert_int_equal(plan.least_bytes, 4);
		return;
	}
	if ((double)plan.advance_steps != steps)
		fail_msg("a=%lld b=%lld M=%lld: %lld, not %g", a, b, slots,
			(long long)plan.advance_steps, steps);
	assert_int_equal(plan.record_steps, a + b);
	assert_true(plan.peak_bytes <= (uint64_t)slots);
	assert_true(plan.bound <= plan.makespan);
}

static void embedded(void **state)
{
	struct neap_problem p = classic_problem(4, 5);
	struct neap_plan plan;
	struct neap_schedule *s;
	(void)state;
	row(1, 1, 3, INFINITY);
	row(1, 1, 4, 2);
	row(1, 2, 5, 3);
	row(1, 4, 4, 8);
	row(1, 4, 5, 7);
	row(1000000, 1000000, 2000002, 2000000);
	p.chain.join = 1;
	assert_int_equal(neap_plan_make(&plan, &p, "revolve", NULL), 0);
	assert_false(plan.feasible);
	assert_int_equal(neap_plan_make(&plan, &p, "auto", NULL), 0);
	assert_true(plan.feasible && plan.advance_steps == 7);
	assert_string_equal(plan.chosen, "join");
	assert_int_equal(neap_schedule_open(&s, &p, &plan), NEAP_EUSAGE);
	p.chain.join = 0;
	assert_int_equal(neap_plan_make(&plan, &p, "join", NULL), 0);
	assert_false(plan.feasible);
	p.chain.join = -1;
	assert_int_equal(neap_problem_check(&p), NEAP_EUSAGE);
}

#define MOST 14
#define NEVER (1 << 28)

static int least(int a, int b)
{
	return a < b ? a : b;
}

static int revolve[MOST + 1][2 * MOST + 8], g[2 * MOST + 8][MOST + 1][MOST + 1];

/* min over u of G(a,b,u), with M slots. */
static int search(int a, int b, int slots)
{
	int best = NEVER;
	memset(g, 0x10, sizeof g);
	g[0][0][0] = 0;
	for (int u = 1; u <= slots - 2; u++)
		for (int p = 0; p <= a; p++)
			for (int q = 0; q <= b; q++) {
				int *cell = &g[u][p][q];
				*cell = NEVER;
				for (int y = 1; y <= p; y++)
					*cell = least(
						*cell, revolve[y][slots - u] + g[u - 1][p - y][q]);
				for (int y = 1; y <= q; y++)
					*cell = least(
						*cell, revolve[y][slots - u] + g[u - 1][p][q - y]);
				if (p == a && q == b)
					best = least(best, *cell);
			}
	return best;
}

static void by_definition(void **state)
{
	(void)state;
	for (int c = 1; c < 2 * MOST + 8; c++)
		for (int l = 2; l <= MOST; l++) {
			revolve[l][c] = NEVER;
			for (int y = 1; y < l; y++)
				if (c > 1 || l - y <= 1)
					revolve[l][c] = least(revolve[l][c],
						y + revolve[l - y][c - 1] + revolve[y][c]);
		}
	for (int a = 1; a <= MOST; a++)
		for (int b = 1; b <= MOST; b++)
			for (int slots = 2; slots <= a + b + 3; slots++) {
				int steps = search(a, b, slots);
				row(a, b, slots,
					steps >= NEVER ? (double)INFINITY
						       : (double)(a + b + steps));
			}
}

static void table(void **state)
{
	char path[4200], line[256];
	int rows = 0;
	(void)state;
	if (!test_data()) {
		print_message("# SKIP no oracle tables\n");
		skip();
	}
	snprintf(path, sizeof path, "%s/oracles/join.csv", test_data());
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		long long a, b, slots;
		double steps;
		if (sscanf(line, "%lld,%lld,%lld,%lf", &a, &b, &slots, &steps) != 4)
			continue;
		row(a, b, slots, steps);
		rows++;
	}
	fclose(f);
	assert_true(rows > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(embedded),
		cmocka_unit_test(by_definition),
		cmocka_unit_test(table),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
