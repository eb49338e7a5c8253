/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_auto.c: the makespan of `auto` over that of the best other strategy, one row a setting,
 * with the gain and the gaps of both to the lower bound. Plans alone are compared, nothing is
 * timed, so that every machine gives the same numbers.
 *
 * Advance and record take 1 s a step, a state has 1000 bytes, the adjoint none; a tier takes tau
 * seconds a state each way.
 */
#include "bench/benchmark.h"

#include <neap/plan.h>
#include <stdio.h>
#include "base/fail.h"

#define STATE 1000

struct bench_setting {
	int64_t steps;
	double budget, tape;  /* states: M/S, A/S */
	double backward, tau; /* seconds */
	int half;	      /* one channel for both ways */
	int64_t capacity;     /* states the tier holds; 0: any number */
	double near;	      /* budget of a first tier, 20 times as fast, in states; 0: none */
};

static const struct bench_setting settings[] = {
	{1000, 4, 1, 2, 100, 0, 0, 0},
	{1000, 10, 0.3, 4, 10, 0, 0, 0},
	{1000, 10, 1, 2, 100, 0, 0, 0},
	{1000, 50, 1, 4, 10, 0, 0, 0},
	{1000, 200, 1, 1, 10, 0, 0, 0},
	{10000, 4, 0.3, 4, 100, 0, 0, 0},
	{10000, 4, 3, 2, 10, 0, 0, 0},
	{10000, 10, 3, 4, 10, 0, 0, 0},
	{10000, 50, 3, 4, 1, 0, 0, 0},
	{100000, 10, 1, 2, 100, 0, 0, 0},
	{100000, 50, 0.3, 4, 10, 0, 0, 0},
	{100000, 200, 3, 1, 1, 0, 0, 0},
	{1000000, 10, 0.3, 4, 10, 0, 0, 0},
	{1000000, 50, 0.3, 1, 10, 0, 0, 0},
	{10000, 4, 0.3, 4, 100, 1, 0, 0},
	{10000, 50, 3, 4, 1, 1, 0, 0},
	{100000, 10, 1, 2, 100, 1, 0, 0},
	{1000, 10, 0.3, 4, 10, 0, 50, 0},
	{10000, 50, 3, 4, 1, 0, 250, 0},
	{100000, 200, 3, 1, 1, 0, 1000, 0},
	{1000, 10, 0.3, 4, 10, 0, 0, 40},
	{10000, 50, 3, 4, 1, 0, 0, 200},
	{100000, 10, 1, 2, 100, 0, 0, 40},
};

static struct neap_tier_spec tier_of(const struct bench_setting *x, double faster, double states)
{
	struct neap_tier_spec t = {.name = "tier", .flags = x->half ? 0 : NEAP_TIER_DUPLEX};
	t.capacity = states > 0 ? (uint64_t)(states * STATE) : NEAP_INFINITE;
	t.write_rate = t.read_rate = faster * STATE / x->tau;
	return t;
}

static struct neap_problem problem_of(const struct bench_setting *x)
{
	struct neap_problem p = {.size = sizeof p,
		.chain = {.steps = x->steps,
			.state = STATE,
			.live = STATE,
			.tape = (uint64_t)(x->tape * STATE),
			.advance = 1,
			.record = 1,
			.backward = x->backward},
		.memory = (uint64_t)(x->budget * STATE)};
	if (x->near > 0)
		p.tiers[p.ntiers++] = tier_of(x, 20, x->near);
	p.tiers[p.ntiers++] = tier_of(x, 1, (double)x->capacity);
	return p;
}

static void describe(struct neap_bench_row *row, const struct bench_setting *x)
{
	char more[40] = "", name[160];
	if (x->half)
		snprintf(more, sizeof more, ", half duplex");
	else if (x->capacity)
		snprintf(more, sizeof more, ", holds %lld", (long long)x->capacity);
	else if (x->near > 0)
		snprintf(more, sizeof more, ", near tier of %g", x->near);
	snprintf(name, sizeof name, "T=%lld M=%g A=%g b=%g tau=%g%s", (long long)x->steps,
		x->budget, x->tape, x->backward, x->tau, more);
	snprintf(row->name, sizeof row->name, "%.47s", name);
}

/* The fastest named strategy. */
static int best_named(struct neap_plan *best, const struct neap_problem *p)
{
	best->feasible = 0;
	for (int i = 0; neap_strategy_name(i); i++) {
		struct neap_plan plan = {.size = sizeof plan};
		if (neap_strategy_traits(neap_strategy_name(i)) & NEAP_STRATEGY_CHOOSES)
			continue;
		NEAP_TRY(neap_plan_make(&plan, p, neap_strategy_name(i), NULL));
		if (plan.feasible && (!best->feasible || plan.makespan < best->makespan))
			*best = plan;
	}
	return 0;
}

static void add(struct neap_bench_row *row, const char *name, double value)
{
	row->more[row->nmore].name = name;
	row->more[row->nmore++].value = value;
}

static int compare(struct neap__bench *bench, const struct bench_setting *x)
{
	struct neap_problem p = problem_of(x);
	struct neap_bench_row row = {.unit = "ratio", .target = 1, .runs = 1};
	struct neap_plan named = {.size = sizeof named}, found = {.size = sizeof found};
	describe(&row, x);
	if (!neap__bench_wants(bench, row.name))
		return 0;
	NEAP_TRY(best_named(&named, &p));
	NEAP_TRY(neap_plan_make(&found, &p, "auto", NULL));
	if (!found.feasible || !named.feasible)
		return neap__fail(NEAP_EINFEASIBLE, "benchmark auto: %s is infeasible", row.name);
	row.value = row.low = row.high = found.makespan / named.makespan;
	double gain = 1 - row.value, before = named.makespan / found.bound - 1;
	snprintf(row.what, sizeof row.what, "%s: %.2f%% over the bound; auto: %.2f%%, gains %.2f%%",
		named.strategy, 100 * before, 100 * found.gap, 100 * gain);
	add(&row, "gain", gain);
	add(&row, "gap", found.gap);
	add(&row, "named_gap", before);
	add(&row, "makespan", found.makespan);
	return neap__bench_row(bench, &row);
}

static int run(struct neap__bench *bench)
{
	for (size_t i = 0; i < sizeof settings / sizeof settings[0]; i++)
		NEAP_TRY(compare(bench, &settings[i]));
	return 0;
}

const struct neap__benchmark neap__bench_auto = {
	"auto", "where auto beats the best named strategy, and how far the bound is", run};
