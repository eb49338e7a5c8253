/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strategies for several synchronous tiers: tables of known optima, the plain
 * recurrence, an exhaustive search of the action language on tiny chains; and every
 * schedule verified and simulated. NEAP_SEED repeats a run.
 */
#include "plan_test.h"

#define LEVELS 5

struct level {
	uint64_t slots;
	double write, read;
};

/* Level 0: slots of tier 0; recording costs nothing, as in the tables. */
static struct neap_problem levelled(
	int64_t steps, double uf, double ub, const struct level *level, int levels)
{
	struct neap_problem p = classic_problem(steps, level[0].slots);
	p.chain.advance = uf;
	p.chain.record = 0;
	p.chain.backward = ub;
	p.chain.slot_write = level[0].write;
	p.chain.slot_read = level[0].read;
	for (int i = 1; i < levels; i++) {
		add_tier(&p, level[i].slots, 0, NEAP_TIER_SYNC);
		p.tiers[i - 1].write_fixed = level[i].write;
		p.tiers[i - 1].read_fixed = level[i].read;
	}
	return p;
}

static struct neap_plan planned(
	const struct neap_problem *p, const char *strategy, const struct neap_params *params)
{
	struct neap_plan plan;
	if (neap_plan_make(&plan, p, strategy, params) < 0)
		fail_msg("%s: %s", strategy, neap_detail());
	return plan;
}

/* The plan, its schedule legal and as costly as it says. */
static struct neap_plan checked(
	const struct neap_problem *p, const char *strategy, const struct neap_params *params)
{
	struct neap_plan plan = planned(p, strategy, params);
	if (!plan.feasible)
		return plan;
	struct neap_verdict v = verified(p, &plan);
	struct neap_simulation m = simulated(p, &plan);
	if (!near(m.makespan, plan.makespan))
		fail_msg("%s: simulated %.17g, planned %.17g", strategy, m.makespan, plan.makespan);
	assert_int_equal(v.peak_bytes, plan.peak_bytes);
	assert_int_equal(v.advance_steps, plan.advance_steps);
	assert_true(v.arena_bytes <= p->memory);
	for (int i = 0; i < p->ntiers; i++) {
		assert_int_equal(v.tiers[i].peak_bytes, plan.tiers[i].peak_bytes);
		assert_int_equal(v.tiers[i].written, plan.tiers[i].written);
		assert_int_equal(v.tiers[i].read, plan.tiers[i].read);
	}
	assert_true(plan.model_bound <= plan.makespan * (1 + 1e-12));
	return plan;
}

static FILE *oracle(const char *name)
{
	char path[4200];
	if (!test_data()) {
		print_message("# SKIP no oracle tables\n");
		skip();
	}
	snprintf(path, sizeof path, "%s/oracles/%s", test_data(), name);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_periodic),
		cmocka_unit_test(table_hrevolve),
		cmocka_unit_test(table_disk),
		cmocka_unit_test(table_two_level),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
