/* SPDX-License-Identifier: Apache-2.0 */
/* Known costs: Revolve's tables, an exhaustive search, and the paper's example. */
#include "plan_test.h"
#include "time_limit.h"

static struct neap_plan planned(
	const struct neap_problem *p, const char *strategy, const struct neap_params *params)
{
	struct neap_plan plan = {.size = sizeof plan};
	if (neap_plan_make(&plan, p, strategy, params) < 0)
		fail_msg("%s: %s", strategy, neap_detail());
	return plan;
}

/* steps, slots, advance steps: a few rows of the tables below, always at hand. */
static void revolve_embedded(void **state)
{
	static const int64_t rows[][3] = {
		{1, 1, 0},
		{2, 1, 1},
		{3, 1, 3},
		{3, 2, 2},
		{4, 3, 3},
		{5, 1, 10},
		{5, 3, 5},
		{100, 5, 316},
		{100, 10, 222},
		{100, 20, 178},
		{1000, 2, 28820},
		{1000, 10, 3636},
		{1000, 100, 1898},
		{1000000, 10, 11647922},
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct neap_problem p = classic_problem(rows[i][0], (uint64_t)rows[i][1]);
		struct neap_plan plan = planned(&p, "revolve", NULL);
		assert_true(plan.feasible);
		assert_int_equal(plan.advance_steps, rows[i][2]);
		assert_int_equal(plan.record_steps, rows[i][0]);
	}
}

static void table(const char *name, int *rows, double *slowest)
{
	char path[4200], line[256];
	snprintf(path, sizeof path, "%s/%s", test_oracles(), name);
	FILE *f = fopen(path, "r");
	if (!f)
		fail_msg("%s: cannot be read", path);
	while (fgets(line, sizeof line, f)) {
		long long n, s, extra;
		if (sscanf(line, "%lld,%lld,%lld", &n, &s, &extra) != 3)
			continue;
		struct neap_problem p = classic_problem(n, (uint64_t)s);
		p.chain.slot_write = p.chain.slot_read = (double)(*rows % 3);
		double before = test_seconds();
		struct neap_plan plan = planned(&p, "revolve", NULL);
		double took = test_seconds() - before;
		assert_true(plan.feasible);
		if (plan.advance_steps != extra)
			fail_msg("%s: n=%lld s=%lld: %lld, not %lld", name, n, s,
				(long long)plan.advance_steps, extra);
		if (p.chain.slot_write == 0)
			assert_true(near(plan.makespan, plan.bound));
		*slowest = took > *slowest ? took : *slowest;
		++*rows;
	}
	fclose(f);
}

static void revolve_tables(void **state)
{
	int rows = 0;
	double slowest = 0;
	(void)state;
	table("revolve.csv", &rows, &slowest);
	table("revolve_large.csv", &rows, &slowest);
	fprintf(stderr, "# %d rows, slowest plan %.3f ms\n", rows, 1e3 * slowest);
	assert_true(rows > 200);
	test_limit("the slowest row", slowest, 0.05);
}

/* Exhaustive: the least advance steps for l steps, s slots, the start in one. */
static int64_t search(int64_t l, int64_t s, int64_t (*memo)[12])
{
	if (l <= 1)
		return 0;
	if (s == 0)
		return 1 << 20;
	if (memo[l][s])
		return memo[l][s];
	int64_t best = INT64_MAX;
	for (int64_t y = 1; y < l; y++) {
		int64_t cost = y + search(l - y, s - 1, memo) + search(y, s, memo);
		best = cost < best ? cost : best;
	}
	return memo[l][s] = best;
}

static void revolve_exhaustive(void **state)
{
	static int64_t memo[80][12];
	(void)state;
	for (int64_t l = 1; l < 80; l++)
		for (int64_t s = 1; s < 12; s++) {
			struct neap_problem p = classic_problem(l, (uint64_t)s);
			p.chain.slot_write = 3;
			p.chain.slot_read = 0.5;
			struct neap_plan plan = planned(&p, "revolve", NULL);
			assert_int_equal(plan.advance_steps, search(l, s, memo));
			struct neap_verdict v = verified(&p, &plan);
			assert_int_equal(v.advance_steps, plan.advance_steps);
			assert_int_equal(v.peak_bytes, plan.peak_bytes);
			assert_true(v.peak_bytes <= (uint64_t)s);
			assert_true(near(simulated(&p, &plan).makespan, plan.makespan));
		}
}

/* Saves are counted in closed form: against the schedule, on longer chains. */
static void revolve_copies(void **state)
{
	(void)state;
	for (int64_t s = 1; s < 60; s = s * 3 / 2 + 1)
		for (int64_t l = 1; l < 20000; l = l * 5 / 4 + 1) {
			struct neap_problem p = classic_problem(l, (uint64_t)s);
			p.chain.slot_write = 1e6;
			struct neap_plan plan = planned(&p, "revolve", NULL);
			if (plan.advance_steps > 3000000)
				continue;
			assert_true(near(simulated(&p, &plan).makespan, plan.makespan));
		}
}

/* S = A = 1, T = 900: memory besides the live state. */
static void paper_example(void **state)
{
	(void)state;
	struct neap_problem p = unit_problem(900, 900);
	assert_int_equal(planned(&p, "bptt", NULL).peak_bytes, 901);
	p.memory--;
	struct neap_plan plan = planned(&p, "bptt", NULL);
	assert_false(plan.feasible);
	assert_int_equal(plan.least_bytes, 901);

	/* standard: 2 sqrt(T S A) = 60, less the slot of the chunk that is recorded at once. */
	p = unit_problem(900, 59);
	plan = planned(&p, "standard", NULL);
	assert_true(plan.feasible);
	assert_int_equal(plan.params.chunk, 30);
	assert_int_equal(plan.peak_bytes, 60);
	assert_int_equal(plan.advance_steps, 870);
	p.memory--;
	assert_false(planned(&p, "standard", NULL).feasible);
	assert_int_equal(planned(&p, "standard", NULL).least_bytes, 60);

	/* double, R = 30: 11, less one slot, with the live state as the prefetch buffer. */
	struct neap_params params = {.remote_chunk = 30};
	p = unit_problem(900, 10);
	add_tier(&p, NEAP_INFINITE, 0.5, 0);
	plan = planned(&p, "double", &params);
	assert_true(plan.feasible);
	assert_true(plan.peak_bytes <= 11);
	assert_int_equal(plan.slow_bytes, 29);
	p.memory = 2;
	assert_int_equal(planned(&p, "double", &params).least_bytes, 11);

	/* c = 10, k = 9: hierarchical and double both within 19 + W. */
	params = (struct neap_params){.chunk = 10, .checkpoints = 9};
	p = unit_problem(900, 19);
	add_tier(&p, NEAP_INFINITE, 0.5, 0);
	plan = planned(&p, "hierarchical", &params);
	assert_true(plan.feasible);
	assert_int_equal(plan.peak_bytes, 20);
	assert_int_equal(plan.advance_steps, 890);
	assert_int_equal(plan.tiers[0].written, 80);
	plan = planned(&p, "double", &params);
	assert_true(plan.feasible);
	assert_true(plan.peak_bytes <= 20);
	assert_int_equal(plan.params.remote_chunk, 90);
	assert_int_equal(plan.tiers[0].written, 9);
	assert_int_equal(plan.advance_steps, 9 * (2 * 90 - 10) + 80);

	/* remote: S + c A. */
	params = (struct neap_params){.chunk = 10};
	plan = planned(&p, "remote", &params);
	assert_true(plan.feasible);
	assert_true(plan.peak_bytes <= 11);
	assert_int_equal(plan.tiers[0].written, 89);
}

/* Closed-form times of the paper, where transfers are synchronous. */
static void synchronous_times(void **state)
{
	(void)state;
	struct neap_problem p = unit_problem(900, 19);
	add_tier(&p, NEAP_INFINITE, 0.25, NEAP_TIER_SYNC);
	p.chain.record = 1.5;
	p.chain.backward = 2;
	struct neap_params params = {.chunk = 10, .remote_chunk = 90};
	struct neap_plan plan = planned(&p, "double", &params);
	assert_true(near(plan.makespan, 9 * 170 + 80 + 900 * 3.5 + 2 * 9 * 0.25));
	assert_true(near(plan.stall, 2 * 9 * 0.25));
	plan = planned(&p, "remote", &params);
	assert_true(near(plan.makespan, 890 + 900 * 3.5 + 2 * 89 * 0.25));
}

/* What `standard` does without the tier, `double` can do as well, whose staging it need not pay. */
static void double_without_its_tier(void **state)
{
	(void)state;
	struct neap_problem p = unit_problem(300, 20);
	add_tier(&p, NEAP_INFINITE, 1000, NEAP_TIER_SYNC);
	p.tiers[0].staging = 7;
	for (p.memory = 36; p.memory < 200; p.memory++) {
		struct neap_plan alone = planned(&p, "standard", NULL);
		struct neap_plan plan = planned(&p, "double", NULL);
		assert_true(alone.feasible && plan.feasible);
		assert_true(plan.makespan <= alone.makespan);
		assert_int_equal(plan.params.chunk, alone.params.chunk);
	}
}

/* Writes and reads that fit beside the computation cost nothing. */
static void overlapped_times(void **state)
{
	(void)state;
	struct neap_problem p = unit_problem(900, 19);
	add_tier(&p, NEAP_INFINITE, 8, 0);
	struct neap_params params = {.chunk = 10, .remote_chunk = 90};
	struct neap_plan plan = planned(&p, "double", &params);
	assert_true(near(plan.makespan, 9 * 170 + 80 + 900 * 2));
	assert_true(plan.stall == 0);
	plan = planned(&p, "remote", &params);
	assert_true(near(plan.makespan, 890 + 900 * 2));
	params.checkpoints = 9;
	plan = planned(&p, "hierarchical", &params);
	assert_true(near(plan.makespan, 890 + 900 * 2));
}

/*
 * Slots that hold a state or a tape, one tape more for the step at hand: the
 * bound's hull lies below the optimum, and near it.
 */
static void bound_mixed(void **state)
{
	char path[4200], line[256];
	int rows = 0;
	double sum = 0, worst = 0;
	(void)state;
	snprintf(path, sizeof path, "%s/mixed.csv", test_oracles());
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		long long n, s, total;
		if (sscanf(line, "%lld,%lld,%lld", &n, &s, &total) != 3)
			continue;
		struct neap_problem p = unit_problem(n, (uint64_t)s + 1);
		double forward = neap_bound(&p) - (double)n; /* b = 1 */
		if (forward > (double)total + 1e-9)
			fail_msg("n=%lld s=%lld: bound %g above %lld", n, s, forward, total);
		worst = fmax(worst, (double)total / forward - 1);
		sum += (double)total / forward - 1;
		rows++;
	}
	fclose(f);
	fprintf(stderr, "# %d rows: optimum above the bound by %.2f%% on average, %.2f%% at most\n",
		rows, 100 * sum / rows, 100 * worst);
	assert_true(rows > 50 && sum / rows < 0.05);
}

/* Which strategies can do a step or two with no slot or one: alone, and with a free tier. */
enum { T1S0 = 1, T1S1 = 8, T1 = 9, T2S0 = 2, T2S1 = 4, ALL = 15 };
static const struct {
	const char *strategy;
	int alone, with_tier;
} least_rows[] = {
	{"bptt", T1, T1},
	{"standard", T1 | T2S1, T1 | T2S1},
	{"remote", 0, ALL},
	{"hierarchical", 0, T1 | T2S1}, /* at least one checkpoint is here */
	{"double", 0, ALL},
	{"revolve", T1 | T2S1, T1 | T2S1},
	{"mixed", T1, T1}, /* slots that hold tapes are another problem */
	{"stream", 0, 0},
	{"async", 0, ALL},
	{"replay", 0, 0}, /* classic problems have no log */
	{"chain", 0, 0},
	{"join", 0, 0},
	{"multistage", T1 | T2S1, ALL},
	{"periodic", 0, ALL},
	{"disk-revolve", 0, ALL},
	{"h-revolve", T1 | T2S1, ALL},
	{"online", T1S1 | T2S1, T1S1 | T2S1}, /* it keeps x_0, not knowing that it need not */
	{"pofo", 0, 0},
	{"auto", T1 | T2S1, ALL},
};

static void check_least(const char *strategy, int with_tier, int64_t steps, uint64_t slots, int can)
{
	struct neap_problem p = classic_problem(steps, slots);
	if (with_tier)
		add_tier(&p, NEAP_INFINITE, 0, NEAP_TIER_SYNC);
	struct neap_plan plan = planned(&p, strategy, NULL);
	if (plan.feasible != can)
		fail_msg("%s, T=%lld, %llu slots%s: %s", strategy, (long long)steps,
			(unsigned long long)slots, with_tier ? ", a tier" : "",
			can ? plan.why : "feasible");
	if (!can)
		return;
	assert_true(near(plan.makespan, (double)(steps > 1 ? 5 : 2 * steps)));
	assert_true(plan.bound <= plan.makespan);
	struct neap_verdict v = verified(&p, &plan);
	assert_int_equal(v.peak_bytes, plan.peak_bytes);
	assert_true(v.peak_bytes <= slots);
}

static void least_problems(void **state)
{
	(void)state;
	for (int i = 0; neap_strategy_name(i); i++) {
		size_t row = 0, rows = sizeof least_rows / sizeof least_rows[0];
		const char *name = neap_strategy_name(i);
		while (row < rows && strcmp(least_rows[row].strategy, name) != 0)
			row++;
		if (row == rows)
			fail_msg("%s is not in the table", name);
		for (int with_tier = 0; with_tier < 2; with_tier++) {
			int can = with_tier ? least_rows[row].with_tier : least_rows[row].alone;
			check_least(name, with_tier, 0, 0, 1);
			check_least(name, with_tier, 0, 1, 1);
			check_least(name, with_tier, 1, 0, (can & T1S0) != 0);
			check_least(name, with_tier, 1, 1, (can & T1S1) != 0);
			check_least(name, with_tier, 2, 0, (can & T2S0) != 0);
			check_least(name, with_tier, 2, 1, (can & T2S1) != 0);
		}
	}
}

/* Budgets from nothing to more than there can be, sizes up to where they are refused. */
static void extreme_budgets(void **state)
{
	static const uint64_t budgets[] = {
		0, 1, (uint64_t)1 << 62, ((uint64_t)1 << 63) - 1, (uint64_t)1 << 63, UINT64_MAX};
	static const struct {
		int64_t steps;
		uint64_t state, tape, adjoint, live, staging;
	} sizes[] = {
		{1, 1, 1, 0, 0, 0},
		{2, 1, 0, 1, 1, 1},
		{1000, 1, 1, 1, 1, 0},
		{1, (uint64_t)1 << 59, (uint64_t)1 << 59, (uint64_t)1 << 60, (uint64_t)1 << 60,
			(uint64_t)1 << 60},
		{1 << 10, (uint64_t)1 << 49, (uint64_t)1 << 49, (uint64_t)1 << 60,
			(uint64_t)1 << 60, (uint64_t)1 << 60},
		{(int64_t)1000000000000, 1000, 1000, 1000, 1000, 1000},
	};
	(void)state;
	for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
		for (size_t b = 0; b < sizeof budgets / sizeof budgets[0]; b++)
			for (int classic = 0; classic < 2; classic++) {
				struct neap_problem p = classic_problem(sizes[i].steps, budgets[b]);
				struct neap_params params = {.effort = 10};
				if (!classic) {
					p.chain.flags = 0;
					p.chain.state = sizes[i].state;
					p.chain.tape = sizes[i].tape;
					p.chain.adjoint = sizes[i].adjoint;
					p.chain.live = sizes[i].live;
				}
				add_tier(&p, NEAP_INFINITE, 1, 0);
				add_tier(&p, budgets[b], 0, NEAP_TIER_SYNC | NEAP_TIER_DUPLEX);
				p.tiers[0].staging = classic ? 0 : sizes[i].staging;
				for (int n = 0; neap_strategy_name(n); n++) {
					struct neap_plan plan =
						planned(&p, neap_strategy_name(n), &params);
					if (!plan.feasible)
						continue;
					assert_true(plan.arena_bytes <= p.memory);
					assert_true(plan.bound <= plan.makespan * (1 + 1e-12));
					if (p.chain.steps <= 1024)
						assert_int_equal(verified(&p, &plan).peak_bytes,
							plan.peak_bytes);
				}
				if (classic || b < 2)
					continue;
				struct neap_plan all = planned(&p, "bptt", NULL);
				assert_true(all.feasible);
				assert_true(near(planned(&p, "auto", &params).makespan, all.bound));
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(least_problems),
		cmocka_unit_test(extreme_budgets),
		cmocka_unit_test(revolve_embedded),
		cmocka_unit_test(revolve_tables),
		cmocka_unit_test(revolve_exhaustive),
		cmocka_unit_test(revolve_copies),
		cmocka_unit_test(bound_mixed),
		cmocka_unit_test(paper_example),
		cmocka_unit_test(synchronous_times),
		cmocka_unit_test(double_without_its_tier),
		cmocka_unit_test(overlapped_times),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
