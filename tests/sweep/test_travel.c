/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans whose tapes travel: streams, and blocks with streamed and recomputed parts,
 * over tiers of every speed, as long as planned and not; tiers that fail again and
 * again, have no room, or take no tapes. The gradient is always the same to the bit.
 */
#include "chainmodel.h"

#include <math.h>
#include "store/fault_tier.h"
#include "sweep/sweep_state.h"
#include "sweep/sweep.h"

#define STEPS 900

static struct seen {
	int64_t runs, blocks, travelled, overflows, recoveries, extra;
} seen;

static uint32_t waves(const struct model *m, int64_t t)
{
	return (uint32_t)neap__random_below(m->seed, NEAP__STREAM_TEST, 2, (uint64_t)t / 30, 40);
}

/* Planned with such a rate, in bytes a second beside steps of a second. */
static struct neap_tier *rated(struct neap_tier *tier, double rate)
{
	neap_tier_set_rates(tier, rate, 1.5 * rate, 0.1);
	return tier;
}

/* `async` keeps its plan: what a loaded machine measures would give it another one. */
static struct neap_sweep_options options_of(
	uint64_t memory, const char *strategy, struct neap_tier **tier)
{
	return (struct neap_sweep_options){.size = sizeof(struct neap_sweep_options),
		FIXED_COSTS,
		.steps = STEPS,
		.memory = memory,
		.strategy = strategy,
		.tiers = tier,
		.ntiers = 1,
		.no_replan = strcmp(strategy, "async") == 0};
}

static void init(struct model *m, uint32_t extra)
{
	model_init(m, STEPS, 21);
	m->extra_most = extra;
	m->extra = waves;
}

/* 0 where the plan is infeasible. */
static int sweep_once(struct model *m, const struct gradient *want, uint64_t memory,
	const char *strategy, struct neap_tier *tier, struct neap_sweep_stats *stats)
{
	struct neap_step_ops ops = model_ops(m, m->extra_most ? 288 : 0);
	struct neap_sweep_options o = options_of(memory, strategy, &tier);
	struct neap_sweep *sweep;
	struct gradient got;
	int rc = neap_sweep_create(&sweep, &ops, m, &o);
	if (rc == NEAP_EINFEASIBLE)
		return 0;
	assert_int_equal(rc, 0);
	neap__sweep_poison(sweep, 1);
	rc = run_model(sweep, m, &got, stats);
	if (rc < 0 || m->broken[0] || memcmp(&got, want, sizeof got) != 0)
		fail_msg("%s memory=%llu: %d %s; %s", strategy, (unsigned long long)memory, rc,
			rc < 0 ? neap_detail() : "gradient", m->broken);
	const struct neap_plan *plan = neap_sweep_plan(sweep);
	assert_true(stats->peak_measured <= stats->arena_bytes);
	assert_true(stats->arena_bytes <= memory);
	if (!m->extra_most && stats->recoveries == 0) {
		assert_int_equal(stats->peak_measured, plan->peak_bytes);
		assert_int_equal(stats->overflows, 0);
		assert_int_equal(stats->recomputed, 0);
		assert_int_equal(stats->written[0], plan->tiers[0].written);
		assert_int_equal(stats->read[0], plan->tiers[0].read);
	}
	assert_int_equal(stats->advance_steps + stats->record_steps,
		plan->advance_steps + plan->record_steps + stats->recomputed);
	seen.runs++;
	seen.blocks += plan->blocks.advance > 0 && plan->blocks.record > 0;
	seen.travelled += sweep->sizes.scattered;
	seen.overflows += stats->overflows;
	seen.recoveries += stats->recoveries;
	seen.extra += stats->recomputed;
	neap_sweep_free(sweep);
	return 1;
}

static void check_plans(int file, uint32_t extra)
{
	static const double rates[] = {1e9, 600, 150, 40};
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct model m;
	seen = (struct seen){0};
	init(&m, extra);
	struct gradient want = reference(&m);
	for (uint64_t memory = 2500; memory < 100000; memory *= 2)
		for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++)
			for (int k = 0; k < 2; k++) {
				struct neap_tier *tier;
				int rc = file ? neap_tier_open_file(&tier, "/var/tmp", NULL)
					      : neap_tier_open_memory(&tier, NEAP_INFINITE);
				assert_int_equal(rc, 0);
				sweep_once(&m, &want, memory + (file ? 4096 : 0),
					k ? "stream" : "auto", rated(tier, rates[i]), &stats);
				neap_tier_close(tier);
			}
	print_message("# %lld runs, %lld of blocks, tapes travelled in %lld; %lld overflows, %.2f "
		      "steps recomputed a step\n",
		(long long)seen.runs, (long long)seen.blocks, (long long)seen.travelled,
		(long long)seen.overflows, (double)seen.extra / STEPS / (double)seen.runs);
	assert_true(seen.blocks > 5 && seen.travelled > 20);
	assert_int_equal(seen.recoveries, 0);
	model_fini(&m);
}

static void over_memory(void **state)
{
	(void)state;
	check_plans(0, 0);
	check_plans(0, 60);
}

static void over_file(void **state)
{
	struct neap_tier *tier;
	(void)state;
	if (neap_tier_open_file(&tier, "/var/tmp", NULL) < 0) {
		print_message("# no file tier in /var/tmp: %s\n", neap_detail());
		skip();
	}
	neap_tier_close(tier);
	check_plans(1, 0);
	check_plans(1, 60);
}

/* States come while others are dropped: in the least memory no tape waits for them. */
static void states_that_come(void **state)
{
	struct model m;
	int64_t ran = 0;
	(void)state;
	init(&m, 0);
	struct gradient want = reference(&m);
	for (uint64_t memory = 600; memory < 4000; memory += 64)
		for (double rate = 20; rate < 100; rate += 16) {
			struct neap_sweep_stats stats = {.size = sizeof stats};
			struct neap_tier *tier;
			assert_int_equal(neap_tier_open_memory(&tier, NEAP_INFINITE), 0);
			int did = sweep_once(&m, &want, memory, "async", rated(tier, rate), &stats);
			neap_tier_close(tier);
			ran += did && stats.read[0] > 0;
			assert_true(stats.stalls[NEAP_STALL_ROOM] == 0);
		}
	assert_true(ran > 20);
	model_fini(&m);
}

/* Requests that fail in a row, the tier gone from some point on, no tier at all. */
static void check_faults(uint32_t extra, double rate)
{
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct model m;
	seen = (struct seen){0};
	init(&m, extra);
	struct gradient want = reference(&m);
	for (int k = 0; k < 2; k++)
		for (int64_t n = 0; n < 40; n++) {
			struct neap__faults f = {.row = 1 + n % 5, .at_once = (int)(n & 1)};
			int64_t *const rows[] = {&f.fail_put, &f.fail_get, &f.lose_put,
				&f.corrupt_put, &f.truncate_put, &f.gone_after};
			struct neap_tier *inner, *tier;
			*rows[n % 6] = 1 + n * 2;
			f.no_format = n == 39;
			assert_int_equal(neap_tier_open_memory(&inner, NEAP_INFINITE), 0);
			assert_int_equal(neap__fault_open(&tier, inner, &f), 0);
			assert_true(sweep_once(
				&m, &want, 9000, k ? "stream" : "auto", rated(tier, rate), &stats));
			if (f.no_format) {
				assert_true(stats.recoveries > 3);
				print_message("# no tier: %.1f steps recomputed a step\n",
					(double)stats.recomputed / STEPS);
				assert_true(stats.recomputed < 40 * STEPS);
			}
			neap_tier_close(tier);
		}
	print_message("# %lld runs, %lld recoveries, %.2f steps recomputed a step\n",
		(long long)seen.runs, (long long)seen.recoveries,
		(double)seen.extra / STEPS / (double)seen.runs);
	assert_true(seen.recoveries > 80);
	model_fini(&m);
}

static void faults(void **state)
{
	(void)state;
	check_faults(0, 1e9);
	check_faults(0, 150);
	check_faults(60, 1e9);
	check_faults(60, 150);
}

/* Whatever a tier holds: no plan needs more, headers and padding included. */
static void capacities(void **state)
{
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct model m;
	(void)state;
	for (uint32_t extra = 0; extra <= 60; extra += 60) {
		seen = (struct seen){0};
		init(&m, extra);
		struct gradient want = reference(&m);
		for (uint64_t capacity = 1000; capacity < 2000000; capacity += capacity / 3)
			for (int k = 0; k < 3; k++) {
				struct neap_file_options fo = {
					.size = sizeof fo, .capacity = capacity};
				struct neap_tier *tier;
				if (k < 2)
					assert_int_equal(neap_tier_open_memory(&tier, capacity), 0);
				else if (neap_tier_open_file(&tier, "/var/tmp", &fo) < 0)
					continue;
				sweep_once(&m, &want, 12000, k ? "auto" : "stream",
					rated(tier, 150), &stats);
				neap_tier_close(tier);
			}
		assert_int_equal(seen.recoveries, 0);
		print_message("# %lld runs, tapes travelled in %lld\n", (long long)seen.runs,
			(long long)seen.travelled);
		assert_true(seen.travelled > 10);
		model_fini(&m);
	}
}

/* An engine that takes no tapes: they stay, and `stream` says so. */
static void without_tapes(void **state)
{
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct neap_tier *tier;
	struct model m;
	(void)state;
	init(&m, 0);
	struct gradient want = reference(&m);
	assert_int_equal(neap_tier_open_memory(&tier, NEAP_INFINITE), 0);
	tier->ops.format_tapes = NULL;
	assert_false(sweep_once(&m, &want, 9000, "stream", rated(tier, 1e9), &stats));
	assert_non_null(strstr(neap_detail(), "tapes cannot be offloaded"));
	seen = (struct seen){0};
	assert_true(sweep_once(&m, &want, 9000, "auto", rated(tier, 1e9), &stats));
	assert_int_equal(seen.travelled, 0);
	neap_tier_close(tier);
	model_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(states_that_come),
		cmocka_unit_test(over_memory),
		cmocka_unit_test(over_file),
		cmocka_unit_test(faults),
		cmocka_unit_test(capacities),
		cmocka_unit_test(without_tapes),
	};
	if (getenv("NEAP_IO")) /* tiers in memory know no engine */
		cmocka_set_test_filter("over_file");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
