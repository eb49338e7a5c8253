/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records that are refused, lost, changed or cut off, each in turn: the gradient
 * is the same to the bit, and the event is counted.
 */
#include "chainmodel.h"

#include "store/fault_tier.h"
#include "sweep/sweep.h"

/*
 * Every row of the table takes part; those that plan other chains (`chain`, `join`) or
 * do not fit refuse. A short search makes the same kinds of plans as a long one.
 */
#define EFFORT 10

#define STEPS 72

static int64_t sweeps, repaired;

static struct neap_tier *inner_tier(int file)
{
	struct neap_tier *tier;
	int rc = file ? neap_tier_open_file(&tier, "/var/tmp", NULL)
		      : neap_tier_open_memory(&tier, NEAP_INFINITE);
	return rc < 0 ? NULL : tier;
}

struct outcome {
	struct neap_sweep_stats stats;
	struct neap__fault_counts counts;
};

/* One sweep with faults, twice over: a sweep forgets the bad records of the one before. */
static struct outcome run_with(struct model *m, const struct gradient *want, const char *strategy,
	uint64_t memory, int file, const struct neap__faults *faults, int *feasible)
{
	struct outcome out = {0};
	struct neap_tier *tier;
	struct neap_sweep *sweep;
	struct gradient got;
	struct neap_step_ops ops = model_ops(m, m->extra_most ? 200 : 0);
	assert_int_equal(neap__fault_open(&tier, inner_tier(file), faults), 0);
	struct neap_sweep_options o = {.size = sizeof o,
		FIXED_COSTS,
		.steps = m->steps,
		.memory = memory,
		.strategy = strategy,
		.params = {.effort = EFFORT},
		.tiers = &tier,
		.ntiers = 1};
	int rc = neap_sweep_create(&sweep, &ops, m, &o);
	*feasible = rc == 0;
	if (rc == 0) {
		neap__sweep_poison(sweep, 1);
		for (int i = 0; i < 2; i++) {
			rc = run_model(sweep, m, &got, &out.stats);
			if (i == 0)
				out.counts = neap__fault_counts(tier);
			if (rc < 0 || m->broken[0] || memcmp(&got, want, sizeof got) != 0)
				fail_msg("%s memory=%llu: %d %s; %s", strategy,
					(unsigned long long)memory, rc,
					rc < 0 ? neap_detail() : "gradient", m->broken);
			assert_true(out.stats.peak_measured <= out.stats.arena_bytes);
			if (i == 0)
				continue;
			/* The second sweep's calls have numbers beyond the faults. */
			if (!faults->gone_after && !faults->full_at && !faults->truncate_put &&
				out.stats.recoveries != 0)
				fail_msg("%s memory=%llu: bad records in the second sweep "
					 "(put %lld get %lld lose %lld corrupt %lld)",
					strategy, (unsigned long long)memory,
					(long long)faults->fail_put, (long long)faults->fail_get,
					(long long)faults->lose_put,
					(long long)faults->corrupt_put);
		}
		neap_sweep_free(sweep);
	} else {
		assert_int_equal(rc, NEAP_EINFEASIBLE);
	}
	neap_tier_close(tier);
	return out;
}

/* The first sweep's statistics, too, for faults that must show. */
static int64_t recoveries_of(struct model *m, const struct gradient *want, const char *strategy,
	uint64_t memory, int file, const struct neap__faults *faults)
{
	struct neap_tier *tier;
	struct neap_sweep *sweep;
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct gradient got;
	struct neap_step_ops ops = model_ops(m, m->extra_most ? 200 : 0);
	assert_int_equal(neap__fault_open(&tier, inner_tier(file), faults), 0);
	struct neap_sweep_options o = {.size = sizeof o,
		FIXED_COSTS,
		.steps = m->steps,
		.memory = memory,
		.strategy = strategy,
		.params = {.effort = EFFORT},
		.tiers = &tier,
		.ntiers = 1};
	assert_int_equal(neap_sweep_create(&sweep, &ops, m, &o), 0);
	assert_int_equal(run_model(sweep, m, &got, &stats), 0);
	assert_memory_equal(&got, want, sizeof got);
	sweeps++;
	repaired += stats.recoveries > 0;
	assert_true((stats.recomputed > 0) <= (stats.recoveries + stats.overflows > 0));
	assert_int_equal(stats.advance_steps + stats.record_steps,
		neap_sweep_plan(sweep)->advance_steps + neap_sweep_plan(sweep)->record_steps +
			stats.recomputed);
	neap_sweep_free(sweep);
	neap_tier_close(tier);
	return stats.recoveries;
}

enum { FAIL_PUT, FAIL_GET, LOSE_PUT, CORRUPT_PUT, TRUNCATE_PUT, GONE_AFTER, FAULTS };

static struct neap__faults fault(int kind, int64_t n)
{
	struct neap__faults f = {.at_once = n % 3 == 1};
	int64_t *const rows[FAULTS] = {&f.fail_put, &f.fail_get, &f.lose_put, &f.corrupt_put,
		&f.truncate_put, &f.gone_after};
	*rows[kind] = n;
	return f;
}

static void check_strategy(struct model *m, const struct gradient *want, const char *strategy,
	uint64_t memory, int file)
{
	static const struct neap__faults none;
	int feasible;
	struct outcome clean = run_with(m, want, strategy, memory, file, &none, &feasible);
	if (!feasible || clean.counts.puts == 0)
		return;
	assert_int_equal(clean.counts.failed, 0);
	for (int kind = 0; kind < FAULTS; kind++) {
		int64_t calls = kind == FAIL_GET     ? clean.counts.gets
				: kind == GONE_AFTER ? clean.counts.puts + clean.counts.gets
						     : clean.counts.puts;
		int64_t stride = calls / (file ? 3 : 8) + 1;
		for (int64_t n = 1; n <= calls; n += stride) {
			struct neap__faults f = fault(kind, n);
			run_with(m, want, strategy, memory, file, &f, &feasible);
			int64_t seen = recoveries_of(m, want, strategy, memory, file, &f);
			/* What no GET asks for again can be lost unnoticed. */
			if (kind != GONE_AFTER && clean.counts.gets == clean.counts.puts)
				assert_true(seen >= 1);
		}
	}
	struct neap__faults full = {.full_at = 500};
	run_with(m, want, strategy, memory, file, &full, &feasible);
	struct neap__faults slow = {.delay_us = 30, .fail_get = 1};
	run_with(m, want, strategy, memory, file, &slow, &feasible);
}

#define FACTOR (TEST_SANITIZED ? 5 : 4) /* from one budget to the next */

static void check(int64_t steps, uint32_t extra, int file)
{
	struct model m;
	int swept = 0;
	model_init(&m, steps, 11);
	m.extra_most = extra;
	struct gradient want = reference(&m);
	for (int i = 0; neap_strategy_name(i); i++)
		for (uint64_t memory = 2000; memory < 20000; memory *= FACTOR) {
			uint64_t staging = file ? 4096 : 0;
			check_strategy(&m, &want, neap_strategy_name(i), memory + staging, file);
			swept++;
		}
	assert_true(swept > 0);
	model_fini(&m);
}

static void memory_faults(void **state)
{
	(void)state;
	check(STEPS, 0, 0);
}

static uint32_t spiky(const struct model *m, int64_t t)
{
	return neap__random_below(m->seed, NEAP__STREAM_TEST, 2, (uint64_t)t / 20, 3) ? 3 : 64;
}

/* Overflows and lost records at once. */
static void memory_faults_and_overflows(void **state)
{
	struct model m;
	(void)state;
	model_init(&m, STEPS, 12);
	m.extra_most = 64;
	m.extra = spiky;
	struct gradient want = reference(&m);
	for (int i = 0; neap_strategy_name(i); i++)
		for (uint64_t memory = 3000; memory < 30000; memory *= FACTOR)
			check_strategy(&m, &want, neap_strategy_name(i), memory, 0);
	model_fini(&m);
}

static void file_faults(void **state)
{
	struct neap_tier *tier = inner_tier(1);
	(void)state;
	if (!tier) {
		print_message("# no file tier in /var/tmp: %s\n", neap_detail());
		skip();
	}
	neap_tier_close(tier);
	check(STEPS, 0, 1);
}

/* A write is lost in the second sweep, where the first one's record still lies. */
static void stale_records(void **state)
{
	(void)state;
	for (int file = 0; file < 2; file++) {
		struct neap_tier *inner = inner_tier(file), *tier;
		struct neap__faults f = {0};
		struct neap_sweep *sweep;
		struct neap_sweep_stats stats = {.size = sizeof stats};
		struct gradient got;
		struct model m;
		if (!inner)
			continue;
		model_init(&m, 180, 31);
		struct neap_step_ops ops = model_ops(&m, 0);
		assert_int_equal(neap__fault_open(&tier, inner, &f), 0);
		struct neap_sweep_options o = {.size = sizeof o,
			FIXED_COSTS,
			.steps = 180,
			.memory = 8000,
			.strategy = "remote",
			.tiers = &tier,
			.ntiers = 1};
		assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), 0);
		assert_int_equal(run_model(sweep, &m, &got, &stats), 0);
		int64_t puts = neap__fault_counts(tier).puts;
		assert_true(puts > 1);
		for (int64_t lost = 1; lost <= puts; lost++) {
			f.lose_put = lost * puts + lost;
			m.w[0] += 0.25; /* another gradient each time */
			struct gradient want = reference(&m);
			assert_int_equal(run_model(sweep, &m, &got, &stats), 0);
			assert_memory_equal(&got, &want, sizeof got);
			assert_int_equal(stats.recoveries, 1);
		}
		neap_sweep_free(sweep);
		neap_tier_close(tier);
		model_fini(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory_faults),
		cmocka_unit_test(memory_faults_and_overflows),
		cmocka_unit_test(file_faults),
		cmocka_unit_test(stale_records),
	};
	if (getenv("NEAP_IO")) /* tiers in memory know no engine */
		cmocka_set_test_filter("file_faults");
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	printf("# %lld sweeps with a fault, %lld of them repaired\n", (long long)sweeps,
		(long long)repaired);
	return failed;
}
