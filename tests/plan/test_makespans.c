/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No strategy plans slower than it did: for random problems of several kinds, the mean logarithm of
 * the makespan over the time with all memory; and no bound is lower. A search that loses a
 * candidate, or a plan that waits for nothing, is legal and as predicted, so that no other test
 * notices it. After a change that makes plans faster, `test_makespans print` prints new rows.
 */
#include "chain_test.h"
#include "plan/blocks/block_seeds.h"
#include "plan/core/sizing.h"

static int printing = 0;

struct kind_row {
	const char *kind;
	int plans;
	double mean,
		bound; /* of ln(makespan / (T (r + b))), and of the lower bound of the makespan */
};

static struct kind_row seen[64];
static int kinds = 0;

static void count(const char *kind, const struct neap_plan *plan, double least)
{
	int k = 0;
	while (k < kinds && strcmp(seen[k].kind, kind) != 0)
		k++;
	assert_true(k < 64);
	kinds = k == kinds ? k + 1 : kinds;
	seen[k].kind = kind;
	seen[k].plans++;
	seen[k].mean += log(plan->makespan / least);
	seen[k].bound += log(plan->bound / least);
}

static void compare(const struct kind_row *rows, int n)
{
	int worse = 0;
	for (int k = 0; k < kinds; k++) {
		double mean = seen[k].mean / seen[k].plans, bound = seen[k].bound / seen[k].plans;
		int i = 0;
		while (i < n && strcmp(rows[i].kind, seen[k].kind) != 0)
			i++;
		if (printing)
			fprintf(stderr, "\t\t{\"%s\", %d, %.10f, %.10f},\n", seen[k].kind,
				seen[k].plans, mean, bound);
		else if (i == n || rows[i].plans > seen[k].plans || mean > rows[i].mean + 1e-8 ||
			 bound < rows[i].bound - 1e-8)
			worse += fprintf(stderr, "# %s: %d plans, %.10f, bound %.10f\n",
				seen[k].kind, seen[k].plans, mean, bound);
	}
	int all = kinds;
	memset(seen, 0, sizeof seen);
	kinds = 0;
	assert_int_equal(worse, 0);
	assert_true(printing || all == n);
}

/* All strategies, for the random problems of the other tests. */
static void strategies(void **state)
{
	static const struct kind_row rows[] = {
		{"standard", 71, 0.2282361481, 0.2100768625},
		{"revolve", 87, 0.8442254914, 0.6193004461},
		{"mixed", 92, 0.6143457965, 0.4863471947},
		{"online", 75, 0.9944928510, 0.7109197771},
		{"multistage", 116, 0.9892750140, 0.6084586495},
		{"h-revolve", 120, 0.9447280411, 0.5884582510},
		{"auto", 134, 0.7187837874, 0.5266791367},
		{"periodic", 81, 0.9429363670, 0.5084617187},
		{"disk-revolve", 84, 0.8881840782, 0.5031732829},
		{"bptt", 59, 0.2094777441, 0.1991794532},
		{"remote", 76, 0.8936286981, 0.5016242435},
		{"hierarchical", 52, 0.5244576334, 0.4194628184},
		{"double", 78, 0.8102296360, 0.4926468419},
		{"stream", 62, 1.1343496920, 0.5840546433},
		{"async", 54, 0.9759719983, 0.4070508917},
		{"replay", 18, 0.7110169104, 0.2084282806},
	};
	const struct neap_params params = {.effort = 30};
	(void)state;
	for (uint64_t i = 0; i < 150; i++) {
		struct random r = {1000 + i, 0};
		struct neap_problem p = random_problem(&r, 120);
		double least = (double)p.chain.steps * (p.chain.record + p.chain.backward);
		for (int n = 0; least > 0 && neap_strategy_name(n); n++) {
			struct neap_plan plan = {.size = sizeof plan};
			assert_int_equal(
				neap_plan_make(&plan, &p, neap_strategy_name(n), &params), 0);
			if (plan.feasible)
				count(neap_strategy_name(n), &plan, least);
		}
	}
	compare(rows, sizeof rows / sizeof rows[0]);
}

/* Bytes in units of 2^24: the same plans, in as many times the memory. Products of sizes
 * do not overflow. */
static void larger_units(void **state)
{
	const uint64_t unit = 1 << 24;
	const struct neap_params params = {.effort = 20};
	int plans = 0;
	(void)state;
	for (uint64_t i = 0; i < 60; i++) {
		struct random r = {4000 + i, 0};
		struct neap_problem p = random_problem(&r, 60), large = p;
		struct neap_chain *c = &large.chain;
		if (c->flags & NEAP_CHAIN_CLASSIC)
			continue;
		uint64_t *sizes[] = {&c->state, &c->tape, &c->tape_max, &c->adjoint, &c->live,
			&c->log, &large.memory};
		for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; k++)
			*sizes[k] *= unit;
		for (int k = 0; k < large.ntiers; k++) {
			struct neap_tier_spec *t = &large.tiers[k];
			t->capacity =
				t->capacity == NEAP_INFINITE ? NEAP_INFINITE : t->capacity * unit;
			t->staging *= unit;
			t->write_rate *= (double)unit;
			t->read_rate *= (double)unit;
			t->cpu /= (double)unit;
		}
		for (int n = 0; neap_strategy_name(n); n++) {
			struct neap_plan a = {.size = sizeof a}, b = {.size = sizeof b};
			assert_int_equal(neap_plan_make(&a, &p, neap_strategy_name(n), &params), 0);
			assert_int_equal(
				neap_plan_make(&b, &large, neap_strategy_name(n), &params), 0);
			if (a.feasible != b.feasible ||
				(a.feasible && (!near(a.makespan, b.makespan) ||
						       a.peak_bytes * unit != b.peak_bytes)))
				fail_msg("problem %d, %s: %d %g in %g, not %d %g in %g", (int)i,
					neap_strategy_name(n), b.feasible, b.makespan,
					(double)b.peak_bytes, a.feasible, a.makespan,
					(double)a.peak_bytes);
			plans += a.feasible;
		}
	}
	assert_true(plans > 200);
}

/* Blocks over one tier or two: the coordinate search and its seeds. */
static void blocks(void **state)
{
	static const struct kind_row rows[] = {
		{"one tier", 20, 0.2552558704, 0.2283495415},
		{"a small tier", 20, 0.4498106961, 0.4003469091},
		{"two tiers", 20, 0.1603623032, 0.1456627355},
	};
	static const char *const kind[] = {"one tier", "a small tier", "two tiers"};
	const struct neap_params params = {.effort = 30};
	(void)state;
	for (uint64_t i = 0; i < 60; i++) {
		struct random r = {2000 + i, 0};
		struct neap_problem p = NEAP_PROBLEM_INIT;
		struct neap_plan plan = {.size = sizeof plan};
		const double size = 1e6;
		p.chain.steps = (int64_t)decades(&r, 50, 1000);
		p.chain.state = p.chain.live = (uint64_t)size;
		p.chain.tape = (uint64_t)(size * decades(&r, 0.2, 5));
		p.chain.advance = p.chain.record = 1;
		p.chain.backward = decades(&r, 0.5, 4);
		p.memory = (uint64_t)(size * decades(&r, 4, 100)) + p.chain.state + p.chain.tape;
		for (uint64_t k = 0; k <= (i % 3 == 2); k++) {
			add_tier(&p, NEAP_INFINITE, 0, uniform(&r) < 0.5 ? NEAP_TIER_DUPLEX : 0);
			p.tiers[k].write_rate = p.tiers[k].read_rate = size / decades(&r, 0.5, 100);
		}
		if (i % 3 == 1)
			p.tiers[0].capacity =
				(uint64_t)(size * (double)p.chain.steps * decades(&r, 0.003, 0.3));
		assert_int_equal(neap_plan_make(&plan, &p, "auto", &params), 0);
		assert_true(plan.feasible);
		count(kind[i % 3], &plan,
			(double)p.chain.steps * (p.chain.record + p.chain.backward));
	}
	compare(rows, sizeof rows / sizeof rows[0]);
}

/* Of the blocks from which a search starts, some fill the tier exactly: with the shortest J that
 * fits, with and without a tail. */
static void full_tiers(void **state)
{
	static struct neap__block_seeds seeds;
	(void)state;
	for (int64_t places = 1; places < 40; places++) {
		struct neap_problem p = unit_problem(1000, 100);
		struct neap__block_costs costs = {0};
		p.chain.tape = 3;
		add_tier(&p, (uint64_t)places, 1, NEAP_TIER_DUPLEX);
		assert_int_equal(neap__block_costs_init(&costs, &p, 1), 0);
		neap__block_seeds_make(&seeds, &costs);
		for (int tail = 0; tail < 2; tail++) {
			int found = 0;
			for (int64_t i = 0; i < seeds.count; i++) {
				const struct neap_blocks *b = &seeds.row[i].b;
				int64_t body = p.chain.steps - b->tail;
				found += (b->tail > 0) == tail && b->record == 0 &&
					 b->advance == neap__ceil_div(body, places);
			}
			if (!found)
				fail_msg("%lld places, tail %d", (long long)places, tail);
		}
		neap__block_costs_free(&costs);
	}
}

/* Stages of different sizes over a tier, which may hold exactly some of them. */
static void stages(void **state)
{
	static const struct kind_row rows[] = {
		{"no tier", 15, 0.2618284665, 0.1645339863},
		{"a large tier", 15, 0.2303984555, 0.1094142044},
		{"a full tier", 15, 0.2028014769, 0.1256990691},
	};
	static const char *const kind[] = {"no tier", "a large tier", "a full tier"};
	static struct chain c;
	(void)state;
	for (uint64_t i = 0; i < 45; i++) {
		struct random r = {3000 + i, 0};
		int64_t n = 4 + below(&r, 16);
		uint64_t all = 0, some = 0;
		double least = 0;
		memset(&c, 0, sizeof c);
		wire(&c, n);
		for (int64_t t = 0; t <= n; t++) {
			c.state[t] = 1 + (uint64_t)below(&r, 8);
			c.advance[t] = 1 + (double)below(&r, 4);
			c.backward[t] = 1 + (double)below(&r, 6);
		}
		for (int64_t t = 0; t < n; t++) {
			c.tape[t] = c.state[t + 1] + (uint64_t)below(&r, 12);
			all += c.tape[t];
			some += uniform(&r) < 0.3 ? c.tape[t] : 0;
			least += c.advance[t] + c.backward[t];
		}
		struct neap_problem p = c.p;
		if (i % 3) {
			add_tier(&p, i % 3 == 2 ? some : NEAP_INFINITE, 0, NEAP_TIER_DUPLEX);
			p.tiers[0].write_rate = p.tiers[0].read_rate = decades(&r, 0.3, 10);
		}
		p.memory =
			neap_problem_least(&p) + (uint64_t)((double)all * decades(&r, 0.02, 0.6));
		struct neap_plan plan = {.size = sizeof plan};
		const struct neap_params params = {.effort = 60};
		assert_int_equal(neap_plan_make(&plan, &p, "auto", &params), 0);
		assert_true(plan.feasible);
		count(kind[i % 3], &plan, least);
	}
	compare(rows, sizeof rows / sizeof rows[0]);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(strategies),
		cmocka_unit_test(larger_units),
		cmocka_unit_test(blocks),
		cmocka_unit_test(full_tiers),
		cmocka_unit_test(stages),
	};
	printing = argc > 1 && strcmp(argv[1], "print") == 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
