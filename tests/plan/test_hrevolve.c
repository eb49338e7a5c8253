/* SPDX-License-Identifier: Apache-2.0 */
/* Strategies for several synchronous tiers against tables of known optima. */
#include "levels_test.h"

static FILE *oracle(const char *name)
{
	char path[4200];
	snprintf(path, sizeof path, "%s/%s", test_oracles(), name);
	FILE *f = fopen(path, "r");
	if (!f)
		fail_msg("%s: cannot be read", path);
	return f;
}

/* "(a, b, ...)" at *text; the number of values. */
static int tuple(char **text, double *value)
{
	int n = 0;
	char *at = strchr(*text, '(') + 1;
	while (*at != ')') {
		char *end;
		double x = strtod(at, &end);
		if (end == at) {
			at++;
			continue;
		}
		value[n++] = x;
		at = end;
	}
	*text = at + 1;
	return n;
}

static void expect(const struct neap_problem *p, const char *strategy,
	const struct neap_params *params, double cost, const char *where)
{
	struct neap_plan plan = checked(p, strategy, params);
	if (!plan.feasible)
		fail_msg("%s: %s: %s", where, strategy, plan.why);
	if (!near(plan.makespan, cost))
		fail_msg("%s: %s: %.12g, not %.12g", where, strategy, plan.makespan, cost);
}

static void table_hrevolve(void **state)
{
	char line[512];
	int rows = 0;
	(void)state;
	FILE *f = oracle("hrevolve.csv");
	while (fgets(line, sizeof line, f)) {
		long long l, n;
		double c[LEVELS], w[LEVELS], r[LEVELS], uf, ub, cost;
		struct level level[LEVELS];
		char *at = line;
		if (sscanf(line, "%lld,%lld", &l, &n) != 2)
			continue;
		int levels = tuple(&at, c);
		tuple(&at, w);
		tuple(&at, r);
		assert_int_equal(sscanf(at, "\",%lf,%lf,%lf", &uf, &ub, &cost), 3);
		for (int i = 0; i < levels; i++)
			level[i] = (struct level){(uint64_t)c[i], w[i], r[i]};
		struct neap_problem p = levelled(n, uf, ub, level, levels);
		expect(&p, "h-revolve", NULL, cost, line);
		rows++;
	}
	fclose(f);
	fprintf(stderr, "# hrevolve.csv: %d rows\n", rows);
	assert_true(rows > 500);
}

static void table_disk(void **state)
{
	char line[512];
	int rows = 0;
	(void)state;
	FILE *f = oracle("disk_revolve.csv");
	while (fgets(line, sizeof line, f)) {
		double l, n, cm, uf, ub, wd, rd, opt0, opt1, many;
		if (sscanf(line, "%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf", &l, &n, &cm, &uf, &ub,
			    &wd, &rd, &opt0, &opt1, &many) != 10)
			continue;
		struct level level[2] = {{(uint64_t)cm, 0, 0}, {NEAP_INFINITE, wd, rd}};
		struct neap_problem p = levelled((int64_t)n, uf, ub, level, 2);
		expect(&p, "disk-revolve", NULL, many, line);
		expect(&p, "h-revolve", NULL, many, line);
		expect(&p, "revolve", NULL, opt0, line);
		p.ntiers = 0;
		expect(&p, "h-revolve", NULL, opt0, line);
		rows++;
	}
	fclose(f);
	fprintf(stderr, "# disk_revolve.csv: %d rows\n", rows);
	assert_true(rows > 700);
}

static void table_two_level(void **state)
{
	char line[512];
	int rows = 0;
	(void)state;
	FILE *f = oracle("two_level_exact.csv");
	while (fgets(line, sizeof line, f)) {
		double n, l, cm, cd, uf, ub, wm, rm, wd, rd, cost;
		if (sscanf(line, "%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf", &n, &l, &cm, &cd,
			    &uf, &ub, &wm, &rm, &wd, &rd, &cost) != 11)
			continue;
		struct level level[2] = {{(uint64_t)cm, wm, rm}, {(uint64_t)cd, wd, rd}};
		struct neap_problem p = levelled((int64_t)n, uf, ub, level, 2);
		expect(&p, "h-revolve", NULL, cost, line);
		rows++;
	}
	fclose(f);
	fprintf(stderr, "# two_level_exact.csv: %d rows\n", rows);
	assert_true(rows > 600);
}

/* A few rows of the tables, always at hand. */
static void embedded(void **state)
{
	static const struct {
		int64_t steps;
		double uf, ub;
		int levels;
		struct level level[4];
		double cost;
	} rows[] = {
		{2, 1, 1, 2, {{2, 0, 0}, {2, 2, 2}}, 3},
		{3, 1, 1, 2, {{2, 0, 0}, {2, 2, 2}}, 5},
		{6, 1, 1, 2, {{2, 0, 0}, {2, 2, 2}}, 14},
		{11, 1, 1, 2, {{2, 0, 0}, {2, 2, 2}}, 34},
		{11, 1, 1, 2, {{2, 0, 0}, {50, 1, 1}}, 31},
		{11, 1, 2, 3, {{5, 0, 0}, {5, 2, 2}, {50, 5, 5}}, 37},
		{2, 1, 1, 2, {{3, 1, 1}, {3, 5, 5}}, 5},
		{101, 2, 1, 2, {{3, 0, 0}, {3, 2, 2}}, 719},
		{101, 1, 1, 3, {{5, 0, 0}, {5, 2, 2}, {10, 20, 20}}, 361},
		{101, 1, 1, 3, {{2, 0, 0}, {2, 2, 2}, {4, 10, 10}}, 491},
		{21, 1, 1, 1, {{5, 1, 1}}, 91},
		{6, 1, 2, 3, {{2, 1, 1}, {3, 3, 3}, {4, 9, 9}}, 28},
		{50, 1, 1, 4, {{2, 0, 0}, {2, 1, 1}, {2, 4, 4}, {2, 16, 16}}, 198},
		{6, 2, 1, 2, {{5, 0, 0}, {20, 20, 10}}, 16},
		{201, 2, 1, 2, {{5, 0, 0}, {10, 2, 2}}, 1251},
		{50, 1, 2, 3, {{2, 1, 1}, {3, 3, 3}, {4, 9, 9}}, 327},
		{100, 1, 1, 3, {{3, 0, 0}, {3, 1, 1}, {5, 5, 5}}, 391},
		{300, 2, 1, 2, {{3, 0, 0}, {NEAP_INFINITE, 7, 3}}, 2070},
		{301, 1, 1, 2, {{1, 0, 0}, {NEAP_INFINITE, 50, 50}}, 4131},
		{100, 1, 1, 2, {{20, 0, 0}, {NEAP_INFINITE, 1, 1}}, 278},
		{100, 1, 1, 2, {{1, 0, 0}, {NEAP_INFINITE, 5, 2}}, 490},
		{11, 1, 1, 2, {{1, 0, 0}, {NEAP_INFINITE, 0, 0}}, 21},
		{100, 1, 1, 2, {{2, 0, 0}, {NEAP_INFINITE, 50, 50}}, 790},
		{101, 1, 1, 2, {{10, 0, 0}, {NEAP_INFINITE, 50, 50}}, 326},
		{20, 1, 1, 2, {{2, 0, 0}, {NEAP_INFINITE, 1, 1}}, 61},
		{200, 1, 1, 2, {{2, 0, 0}, {NEAP_INFINITE, 50, 50}}, 1710},
		{6, 1, 1, 2, {{2, 0, 0}, {3, 3, 1}}, 14},
		{4, 1, 1, 2, {{1, 0, 0}, {0, 1, 3}}, 10},
		{3, 1, 1, 2, {{1, 0.5, 0.25}, {3, 2, 1}}, 7},
		{2, 1, 1, 2, {{3, 0.5, 0.25}, {1, 2, 1}}, 3.75},
		{5, 1, 1, 2, {{3, 0.25, 0.25}, {99, 1, 1}}, 11.75},
		{7, 1, 1, 2, {{1, 0.5, 0.25}, {3, 2, 1}}, 24},
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char where[32];
		snprintf(where, sizeof where, "row %zu", i);
		struct neap_problem p = levelled(
			rows[i].steps, rows[i].uf, rows[i].ub, rows[i].level, rows[i].levels);
		expect(&p, "h-revolve", NULL, rows[i].cost, where);
		if (rows[i].levels == 2)
			expect(&p, "disk-revolve", NULL, rows[i].cost, where);
	}
	struct level level[2] = {{5, 0, 0}, {NEAP_INFINITE, 100, 100}};
	static const int64_t periods[][3] = {
		{5, 100, 126}, {1, 100, 20}, {10, 1, 66}, {1, 0, 1}, {5, 10, 21}};
	for (size_t i = 0; i < sizeof periods / sizeof periods[0]; i++) {
		level[0].slots = (uint64_t)periods[i][0];
		level[1].write = level[1].read = (double)periods[i][1];
		struct neap_problem p = levelled(101, 1, 1, level, 2);
		if (i == 2)
			p.chain.advance = 0.05;
		struct neap_plan plan = checked(&p, "periodic", NULL);
		assert_int_equal(plan.params.period, periods[i][2]);
	}
}

static void table_periodic(void **state)
{
	char line[512];
	int rows = 0;
	(void)state;
	FILE *f = oracle("periodic_disk_revolve.csv");
	while (fgets(line, sizeof line, f)) {
		double l, n, cm, uf, ub, wd, rd, period;
		if (sscanf(line, "%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf", &l, &n, &cm, &uf, &ub, &wd, &rd,
			    &period) != 8)
			continue;
		struct level level[2] = {{(uint64_t)cm, 0, 0}, {NEAP_INFINITE, wd, rd}};
		struct neap_problem p = levelled((int64_t)n, uf, ub, level, 2);
		struct neap_plan plan = checked(&p, "periodic", NULL);
		struct neap_plan best = planned(&p, "disk-revolve", NULL);
		if (!plan.feasible || plan.params.period != (int64_t)period)
			fail_msg("%s: %lld", line, (long long)plan.params.period);
		assert_true(plan.makespan >= best.makespan * (1 - 1e-12));
		rows++;
	}
	fclose(f);
	fprintf(stderr, "# periodic_disk_revolve.csv: %d rows\n", rows);
	assert_true(rows > 600);
}

/* Plans say what copies within fast memory cost, too, for given periods as well. */
static void copies(void **state)
{
	static const char *const names[] = {"multistage", "periodic", "disk-revolve", "h-revolve"};
	struct random r = {test_seed(91), 0};
	(void)state;
	for (int i = 0; i < 100; i++) {
		struct level level[2] = {
			{(uint64_t)(1 + below(&r, 9)), uniform(&r), maybe(&r, 0.5, uniform(&r))},
			{NEAP_INFINITE, decades(&r, 0.1, 30), decades(&r, 0.1, 30)}};
		struct neap_problem p = levelled(
			2 + below(&r, 300), decades(&r, 0.1, 10), decades(&r, 0.1, 10), level, 2);
		const struct neap_params params = {.period = 1 + below(&r, p.chain.steps)};
		for (size_t k = 0; k < sizeof names / sizeof *names; k++)
			assert_true(checked(&p, names[k], NULL).feasible);
		assert_true(checked(&p, "periodic", &params).feasible);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(embedded),
		cmocka_unit_test(table_periodic),
		cmocka_unit_test(table_hrevolve),
		cmocka_unit_test(table_disk),
		cmocka_unit_test(table_two_level),
		cmocka_unit_test(copies),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
