/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_planner.c: the processor seconds that plans take, the median of several runs. Every
 * strategy with a target (plan_seconds in its row) plans the chains of 10^6 steps of
 * plan_problems.c; its row names the slowest. Infeasible plans are timed as well.
 */
#include "bench/benchmark.h"
#include <neap/machine.h>

#include <math.h>
#include <stdio.h>
#include <string.h>
#include "base/fail.h"
#include "bench/plan_problems.h"
#include "plan/strategy_table.h"

#define PULLED 3000000 /* actions timed: some tenths of a second */

/* Seconds of one plan. */
static int time_plan(double *seconds, struct neap_plan *plan, const struct neap_problem *problem,
	const char *strategy)
{
	double began = neap_cpu_clock();
	NEAP_TRY(neap_plan_make(plan, problem, strategy, NULL));
	*seconds = neap_cpu_clock() - began;
	return 0;
}

/* Runs of one plan: as many as asked for, of long ones three. */
static int time_runs(struct neap_bench_row *row, struct neap_plan *plan,
	const struct neap__bench *bench, const struct neap_problem *problem, const char *strategy)
{
	double samples[NEAP__BENCH_RUNS_MOST];
	int runs = neap__bench_runs(bench, 5), n = 0;
	while (n < runs) {
		NEAP_TRY(time_plan(&samples[n++], plan, problem, strategy));
		NEAP_TRY(neap__bench_stopped(bench));
		if (n == 3 && samples[0] > 0.3 && bench->options.runs == 0)
			break;
	}
	neap__bench_sample(row, samples, n);
	row->unit = "s";
	return 0;
}

/* The strategy at T = 10^6: the problem that takes longest. */
static int million(struct neap__bench *bench, const struct neap__strategy *strategy)
{
	struct neap_bench_row slowest = {.value = -1};
	int n, feasible = 0;
	const struct neap__plan_problem *problems = neap__million_problems(&n);
	char name[48];
	snprintf(name, sizeof name, "%s, T = 10^6", strategy->name);
	if (!neap__bench_wants(bench, name))
		return 0;
	for (int i = 0; i < n; i++) {
		struct neap_bench_row row = {.target = strategy->plan_seconds};
		struct neap_plan plan = {.size = sizeof plan};
		NEAP_TRY(time_runs(&row, &plan, bench, &problems[i].problem, strategy->name));
		feasible += plan.feasible;
		snprintf(row.what, sizeof row.what, "slowest of %d: %s", n, problems[i].name);
		if (row.value > slowest.value)
			slowest = row;
	}
	memcpy(slowest.name, name, sizeof name);
	slowest.more[slowest.nmore].name = "feasible";
	slowest.more[slowest.nmore++].value = feasible;
	return neap__bench_row(bench, &slowest);
}

/* Revolve at T = 10^9: the plan, then its actions one by one. */
static int billion(struct neap__bench *bench)
{
	struct neap_problem p = {.size = sizeof p,
		.chain = {.steps = 1000000000,
			.state = 1,
			.advance = 1,
			.record = 1,
			.backward = 2,
			.flags = NEAP_CHAIN_CLASSIC},
		.memory = 1000};
	struct neap_bench_row row = {.name = "revolve, T = 10^9", .target = 1e-3};
	struct neap_plan plan = {.size = sizeof plan};
	int rc = 1;
	if (!neap__bench_wants(bench, row.name))
		return 0;
	NEAP_TRY(time_runs(&row, &plan, bench, &p, "revolve"));
	snprintf(row.what, sizeof row.what, "1000 slots: the plan");
	NEAP_TRY(neap__bench_row(bench, &row));

	double samples[NEAP__BENCH_RUNS_MOST];
	int runs = neap__bench_runs(bench, 5);
	for (int i = 0; i < runs; i++) {
		struct neap_schedule *s;
		struct neap_action a;
		int64_t n = 0;
		NEAP_TRY(neap_schedule_open(&s, &p, &plan));
		double began = neap_cpu_clock();
		while (n < PULLED && (rc = neap_schedule_next(s, &a)) > 0)
			n++;
		samples[i] = (neap_cpu_clock() - began) / (double)(n ? n : 1);
		neap_schedule_close(s);
		NEAP_TRY(rc);
	}
	row = (struct neap_bench_row){
		.name = "revolve, T = 10^9, an action", .unit = "s", .target = 100e-9};
	neap__bench_sample(&row, samples, runs);
	snprintf(row.what, sizeof row.what, "1000 slots: each of the first %d pulled", PULLED);
	return neap__bench_row(bench, &row);
}

/* Slots of tier 0 and of slower, synchronous tiers; the last row of each ends with 0. */
static const struct {
	const char *name;
	uint64_t slots[3];
	double cost[3];
} nests[] = {
	{"10+50", {10, 50}, {0, 2}},
	{"10+50 slow", {10, 50}, {0, 20}},
	{"10+500", {10, 500}, {0, 2}},
	{"10+50+500", {10, 50, 500}, {0, 2, 20}},
};

/* H-Revolve at T = 10^5: time, and growth of resident memory, schedule included. */
static int nested(struct neap__bench *bench, int n)
{
	struct neap_problem p = {.size = sizeof p,
		.chain = {.steps = 100000,
			.state = 1,
			.advance = 1,
			.record = 1,
			.backward = 2,
			.flags = NEAP_CHAIN_CLASSIC},
		.memory = nests[n].slots[0]};
	struct neap_bench_row row = {.target = NEAP__PLANS_IN_CLOSED_FORM}, memory;
	struct neap_schedule *s;
	struct neap_plan plan = {.size = sizeof plan};
	snprintf(row.name, sizeof row.name, "h-revolve %s, T = 10^5", nests[n].name);
	if (!neap__bench_wants(bench, row.name))
		return 0;
	for (int i = 1; i < 3 && nests[n].slots[i]; i++)
		p.tiers[p.ntiers++] = (struct neap_tier_spec){.name = "tier",
			.capacity = nests[n].slots[i],
			.write_fixed = nests[n].cost[i],
			.read_fixed = nests[n].cost[i],
			.flags = NEAP_TIER_SYNC};
	int known = neap_resident_reset() >= 0;
	uint64_t before = neap_resident_peak();
	NEAP_TRY(time_runs(&row, &plan, bench, &p, "h-revolve"));
	NEAP_TRY(neap_schedule_open(&s, &p, &plan));
	neap_schedule_close(s);
	uint64_t after = neap_resident_peak();
	snprintf(row.what, sizeof row.what, "slots a tier; schedule and certified gap");
	row.more[row.nmore].name = "certified_gap";
	row.more[row.nmore++].value =
		plan.model_bound > 0 ? plan.makespan / plan.model_bound - 1 : NAN;
	memory = row;
	NEAP_TRY(neap__bench_row(bench, &row));
	if (!known)
		return 0;
	snprintf(memory.name, sizeof memory.name, "h-revolve %s, T = 10^5, memory", nests[n].name);
	snprintf(memory.what, sizeof memory.what, "growth of resident memory");
	memory.unit = "bytes";
	memory.nmore = 0;
	memory.value = memory.low = memory.high = (double)(after - before);
	memory.target = 64 * 1024.0 * 1024;
	return neap__bench_row(bench, &memory);
}

#define STAGES 200

/* A deep net of unequal layers; sizes that do not divide the budget: 500 levels. */
static int layers(struct neap__bench *bench)
{
	double forward[STAGES], backward[STAGES + 1];
	uint64_t state[STAGES + 1], tape[STAGES], all = 0;
	for (int i = 0; i <= STAGES; i++) {
		uint64_t width = 1 + (uint64_t)(i * i + 7 * i) % 23;
		state[i] = 65537 * width;
		backward[i] = i < STAGES ? 1e-3 * (double)width : 0;
		if (i == STAGES)
			break;
		forward[i] = backward[i] / 2;
		tape[i] = state[i] + 32771 * ((uint64_t)i * 5 % 17);
		all += tape[i];
	}
	struct neap_stages stages = {.advance = forward,
		.backward = backward,
		.state = state,
		.tape = tape,
		.flags = NEAP_STAGES_TAPE_HOLDS_OUTPUT | NEAP_STAGES_BACKWARD_NEEDS_INPUT};
	struct neap_problem p = {
		.size = sizeof p, .chain = {.steps = STAGES, .stages = &stages}, .memory = all / 8};
	struct neap_bench_row row = {.name = "chain, 200 stages", .target = 0.5};
	struct neap_plan plan = {.size = sizeof plan};
	if (!neap__bench_wants(bench, row.name))
		return 0;
	for (int i = 0; i < STAGES; i++)
		tape[i] += state[i + 1];
	NEAP_TRY(time_runs(&row, &plan, bench, &p, "chain"));
	snprintf(row.what, sizeof row.what, "500 levels of memory, %.80s",
		plan.feasible ? "an eighth of all tapes" : plan.why);
	return neap__bench_row(bench, &row);
}

static int run(struct neap__bench *bench)
{
	for (int i = 0; neap__strategies[i]; i++)
		if (neap__strategies[i]->plan_seconds > 0)
			NEAP_TRY(million(bench, neap__strategies[i]));
	NEAP_TRY(billion(bench));
	for (size_t i = 0; i < sizeof nests / sizeof nests[0]; i++)
		NEAP_TRY(nested(bench, (int)i));
	return layers(bench);
}

const struct neap__benchmark neap__bench_planner = {
	"planner", "how long plans take, against their targets", run};
