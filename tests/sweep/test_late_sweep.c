/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transfers that never come: each call of a small sweep in turn, all from some call on,
 * and the engine of a file itself. The gradient is the same to the bit, what was given
 * up is counted, and neither the next run nor the end of sweep and tier waits for it.
 */
#include "chainmodel.h"

#include "store/fault_tier.h"
#include "store/mover.h"
#include "sweep/sweep.h"
#include "sys/clock.h"
#include "store/stall_injection.h"

#define EFFORT 10
#define STEPS 72
#define PATIENCE 1e-3 /* seconds; memory moves at once, so nothing else is late */
#define LONG 60	      /* the test is stuck */

static int64_t sweeps, calls;

struct outcome {
	struct neap_sweep_stats stats;
	struct neap__fault_counts counts;
	int64_t marked; /* in the trace */
};

static int64_t late_events(const struct neap_trace *trace)
{
	int64_t n = 0;
	for (int64_t i = 0; i < neap_trace_events(trace); i++)
		n += (trace->ring[i].flags & NEAP__EVENT_LATE) != 0 &&
		     trace->ring[i].kind == NEAP__EVENT_TRANSFER;
	return n;
}

/* One sweep; 0: there is no such plan. */
static int run_with(struct model *m, const struct gradient *want, const char *strategy,
	uint64_t memory, const struct neap__faults *faults, struct outcome *out)
{
	struct neap_tier *tier, *inner;
	struct neap_sweep *sweep;
	struct neap_trace *trace;
	struct gradient got;
	struct neap_step_ops ops = model_ops(m, m->extra_most ? 200 : 0);
	*out = (struct outcome){0};
	assert_int_equal(neap_tier_open_memory(&inner, NEAP_INFINITE), 0);
	assert_int_equal(neap__fault_open(&tier, inner, faults), 0);
	assert_int_equal(neap_trace_create(&trace, strategy, 0), 0);
	struct neap_sweep_options o = {.size = sizeof o,
		FIXED_COSTS,
		.steps = m->steps,
		.memory = memory,
		.strategy = strategy,
		.params = {.effort = EFFORT},
		.tiers = &tier,
		.ntiers = 1,
		.trace = trace,
		.patience = PATIENCE};
	int rc = neap_sweep_create(&sweep, &ops, m, &o);
	int feasible = rc == 0;
	if (feasible) {
		neap__sweep_poison(sweep, 1);
		rc = run_model(sweep, m, &got, &out->stats);
		if (rc < 0 || m->broken[0] || memcmp(&got, want, sizeof got) != 0)
			fail_msg("%s memory=%llu: %d %s; %s", strategy, (unsigned long long)memory,
				rc, rc < 0 ? neap_detail() : "gradient", m->broken);
		assert_true(out->stats.peak_measured <= out->stats.arena_bytes);
		out->counts = neap__fault_counts(tier);
		out->marked = late_events(trace);
		neap_sweep_free(sweep);
		sweeps++;
	} else {
		assert_int_equal(rc, NEAP_EINFEASIBLE);
	}
	neap_trace_free(trace);
	neap_tier_close(tier);
	return feasible;
}

static void each_call(
	struct model *m, const struct gradient *want, const char *strategy, uint64_t memory)
{
	static const struct neap__faults none;
	struct outcome clean, out;
	if (!run_with(m, want, strategy, memory, &none, &clean))
		return;
	assert_int_equal(clean.stats.late, 0);
	for (int get = 0; get < 2; get++)
		for (int64_t n = 1; n <= (get ? clean.counts.gets : clean.counts.puts); n++) {
			struct neap__faults f = {0};
			*(get ? &f.hang_get : &f.hang_put) = n;
			assert_true(run_with(m, want, strategy, memory, &f, &out));
			assert_int_equal(out.counts.hung, 1);
			assert_int_equal(out.stats.late, 1);
			assert_int_equal(out.marked, 1);
			assert_true(out.stats.recoveries >= get);
			calls++;
		}
	int64_t all = clean.counts.puts + clean.counts.gets;
	for (int64_t n = 1; n < all; n += all / 6 + 1) {
		struct neap__faults f = {.hang_after = n};
		assert_true(run_with(m, want, strategy, memory, &f, &out));
		assert_true(out.counts.hung > 0);
		assert_int_equal(out.stats.late, out.counts.hung);
		assert_int_equal(out.marked, out.counts.hung);
	}
}

static uint32_t spiky(const struct model *m, int64_t t)
{
	return neap__random_below(m->seed, NEAP__STREAM_TEST, 2, (uint64_t)t / 20, 3) ? 3 : 64;
}

static void any_call_hangs(void **state)
{
	(void)state;
	if (getenv("NEAP_IO"))
		skip(); /* memory is the same on all of them */
	for (int vary = 0; vary < 2; vary++) {
		struct model m;
		model_init(&m, STEPS, 11);
		m.extra_most = vary ? 64 : 0;
		m.extra = vary ? spiky : NULL;
		struct gradient want = reference(&m);
		for (int i = 0; neap_strategy_name(i); i++)
			for (uint64_t memory = 2500; memory < 20000; memory *= 3)
				each_call(&m, &want, neap_strategy_name(i), memory);
		model_fini(&m);
	}
	print_message(
		"# %lld calls hung in turn, %lld sweeps\n", (long long)calls, (long long)sweeps);
	assert_true(calls > 200);
}

enum { FREE_SWEEP_FIRST, CLOSE_TIER_FIRST, PLAN_ANEW, RELEASE, ENDS };

/*
 * The engine of a file hangs from some move on; the sweep runs twice. Then both go while
 * moves hang that lead into staging of the arena, and these come back after that.
 */
static void hanging_file(
	struct model *m, const struct gradient *want, int64_t n, int write, int how)
{
	static struct neap__stall_injection stalls;
	struct neap_tier *tier;
	struct neap_sweep *sweep;
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct gradient got;
	struct neap_step_ops ops = model_ops(m, 0);
	memset(&stalls, 0, sizeof stalls);
	*(write ? &stalls.write : &stalls.read) = n;
	stalls.row = how == RELEASE ? 3 : 100000;
	neap__io_engine_stalls = &stalls;
	assert_int_equal(neap_tier_open_file(&tier, "/var/tmp", NULL), 0);
	neap__io_engine_stalls = NULL;
	struct neap_sweep_options o = {.size = sizeof o,
		FIXED_COSTS,
		.steps = m->steps,
		.memory = 12000,
		.strategy = n % 2 ? "stream" : "remote",
		.tiers = &tier,
		.ntiers = 1,
		.patience = 0.02};
	assert_int_equal(neap_sweep_create(&sweep, &ops, m, &o), 0);
	double start = neap__seconds();
	for (int i = 0; i < 2; i++) {
		assert_int_equal(run_model(sweep, m, &got, &stats), 0);
		assert_memory_equal(&got, want, sizeof got);
		if (stats.late == 0 && i == 0)
			fail_msg("%s: none of %lld reads, %lld writes was late (%lld, %d, %d)",
				o.strategy, (long long)stalls.reads, (long long)stalls.writes,
				(long long)n, write, how);
		if (how == PLAN_ANEW && i == 0) {
			o.strategy = n % 2 ? "remote" : "hierarchical";
			assert_int_equal(neap_sweep_replan(sweep, &ops, &o), 0);
		}
		if (how == RELEASE && i == 0)
			neap_sweep_release(sweep);
	}
	if (how == CLOSE_TIER_FIRST)
		neap_tier_close(tier);
	neap_sweep_free(sweep);
	if (how != CLOSE_TIER_FIRST)
		neap_tier_close(tier);
	assert_true(neap__seconds() - start < LONG);
	atomic_store(&stalls.released, 1);
	for (start = neap__seconds(); neap__movers_left(); neap__sleep(1e-4))
		assert_true(neap__seconds() - start < LONG);
	sweeps += 2;
}

static void a_file_hangs(void **state)
{
	const char *name = getenv("NEAP_IO");
	struct model m;
	(void)state;
	if (name && strcmp(name, "sync") == 0)
		skip();
	model_init(&m, 300, 21);
	struct gradient want = reference(&m);
	for (int64_t n = 1; n < 4; n++)
		for (int write = 0; write < 2; write++)
			for (int how = 0; how < ENDS; how++)
				hanging_file(&m, &want, n, write, how);
	model_fini(&m);
}

static void bad_patience(void **state)
{
	static const double bad[] = {-1, NAN};
	struct neap_sweep *sweep;
	struct model m;
	(void)state;
	model_init(&m, 10, 1);
	struct neap_step_ops ops = model_ops(&m, 0);
	for (int i = 0; i < 2; i++) {
		struct neap_sweep_options o = {
			.size = sizeof o, FIXED_COSTS, .steps = 10, .patience = bad[i]};
		assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), NEAP_EUSAGE);
		assert_non_null(strstr(neap_detail(), "patience"));
	}
	model_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_call_hangs),
		cmocka_unit_test(a_file_hangs),
		cmocka_unit_test(bad_patience),
	};
	if (getenv("NEAP_IO")) /* tiers in memory know no engine */
		cmocka_set_test_filter("a_file_hangs");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
