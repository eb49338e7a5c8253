/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sweeps over chains whose length the model tells: the bits of a sweep that knew it,
 * within the budget, at every length; tapes of varying size, errors, a second run.
 */
#include "chainmodel.h"
#include "sweep/sweep_state.h"
#include "sweep/sweep.h"
#include "store/fault_tier.h"

static int64_t told_at; /* what the model's rule says: at this step */
static int how;		/* enum neap_ended */
static int64_t asked;

static int ended(void *user, const void *state, int64_t t)
{
	struct model *m = user;
	EXPECT(m, t == asked && (uintptr_t)state % 64 == 0);
	asked++;
	return t == told_at ? how : NEAP_GO_ON;
}

static uint32_t wild(const struct model *m, int64_t t)
{
	return (uint32_t)neap__random_below(m->seed, NEAP__STREAM_TEST, 1, (uint64_t)t / 30, 2) *
	       32;
}

static void run_both_ways(struct neap_sweep *sweep, struct model *m)
{
	struct gradient want = reference(m), got;
	struct neap_sweep_stats stats = {.size = sizeof stats};
	for (how = NEAP_ENDED; how <= NEAP_LAST_STEP; how++) {
		if (how == NEAP_LAST_STEP && m->steps == 0)
			continue;
		told_at = m->steps - (how == NEAP_LAST_STEP);
		asked = 0;
		if (run_model(sweep, m, &got, &stats) < 0)
			fail_msg("T = %lld: %s", (long long)m->steps, neap_detail());
		if (m->broken[0])
			fail_msg("T = %lld: %s", (long long)m->steps, m->broken);
		assert_memory_equal(&got, &want, sizeof got);
		assert_int_equal(asked, told_at + 1);
		assert_int_equal(neap_sweep_problem(sweep)->chain.steps, m->steps);
		assert_int_equal(stats.backward_steps, m->steps);
		assert_true(stats.peak_measured <= stats.arena_bytes);
		assert_true(stats.arena_bytes <= sweep->options.memory);
		if (!m->extra_most)
			assert_int_equal(stats.overflows + stats.recomputed, 0);
	}
}

static void lengths(void **state)
{
	static const uint64_t budgets[] = {600, 900, 1500, 4000, 20000};
	(void)state;
	for (size_t i = 0; i < sizeof budgets / sizeof budgets[0]; i++)
		for (uint32_t extra = 0; extra <= 32; extra += 32)
			for (int64_t n = 0; n < 3000; n += n < 140 ? 1 : 477) {
				struct neap_sweep *sweep;
				struct model m;
				model_init(&m, n, 5);
				m.extra_most = extra;
				m.extra = wild;
				struct neap_step_ops ops = model_ops(&m, extra ? 150 : 0);
				ops.ended = ended;
				struct neap_sweep_options o = {
					.size = sizeof o, FIXED_COSTS, .memory = budgets[i]};
				int rc = neap_sweep_create(&sweep, &ops, &m, &o);
				if (rc < 0) {
					assert_int_equal(rc, NEAP_EINFEASIBLE);
					assert_true(budgets[i] < 1500);
					model_fini(&m);
					break;
				}
				neap__sweep_poison(sweep, 1);
				run_both_ways(sweep, &m);
				neap_sweep_free(sweep);
				model_fini(&m);
			}
}

/* The advance steps are those of the plan that `online` makes for the length. */
static void as_planned(void **state)
{
	struct neap_sweep *sweep;
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct gradient got;
	struct model m;
	(void)state;
	model_init(&m, 5000, 5);
	struct neap_step_ops ops = model_ops(&m, 0);
	ops.ended = ended;
	struct neap_sweep_options o = {
		.size = sizeof o, FIXED_COSTS, .memory = 3000, .strategy = "online"};
	assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), 0);
	told_at = m.steps - 1;
	how = NEAP_LAST_STEP;
	asked = 0;
	assert_int_equal(run_model(sweep, &m, &got, &stats), 0);
	neap_sweep_free(sweep);
	ops.ended = NULL;
	o.steps = m.steps;
	struct gradient again;
	assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), 0);
	assert_int_equal(neap_sweep_plan(sweep)->advance_steps, stats.advance_steps);
	assert_int_equal(run_model(sweep, &m, &again, NULL), 0);
	assert_memory_equal(&got, &again, sizeof got);
	neap_sweep_free(sweep);
	model_fini(&m);
}

/* Runs 3,000 steps with a tier that writes a state in `tau` steps; the faults are its. */
static struct neap_sweep_stats over_a_tier(
	double tau, const struct neap__faults *faults, uint64_t capacity)
{
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct neap_tier *memory, *tier;
	struct neap_sweep *sweep;
	struct gradient got;
	struct model m;
	model_init(&m, 3000, 5);
	struct gradient want = reference(&m);
	struct neap_step_ops ops = model_ops(&m, 0);
	ops.ended = ended;
	assert_int_equal(neap_tier_open_memory(&memory, capacity), 0);
	neap_tier_set_rates(memory, 128e6 / tau, 128e6 / tau, 0);
	assert_int_equal(neap__fault_open(&tier, memory, faults), 0);
	struct neap_sweep_options o = {.size = sizeof o,
		.memory = 6000,
		.tiers = &tier,
		.ntiers = 1,
		.advance = 1e-6,
		.record = 1e-6,
		.backward = 1e-6};
	assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), 0);
	neap__sweep_poison(sweep, 1);
	how = NEAP_ENDED;
	for (int again = 0; again < 2; again++) {
		told_at = m.steps;
		asked = 0;
		if (run_model(sweep, &m, &got, &stats) < 0 || m.broken[0])
			fail_msg("%g: %s %s", tau, neap_detail(), m.broken);
		assert_memory_equal(&got, &want, sizeof got);
		assert_int_equal(asked, m.steps + 1);
		assert_true(stats.peak_measured <= stats.arena_bytes && stats.arena_bytes <= 6000);
	}
	neap_sweep_free(sweep);
	neap_tier_close(tier);
	model_fini(&m);
	fprintf(stderr, "# tau %g: %lld + %lld steps forward, %lld lost, %llu bytes written\n", tau,
		(long long)stats.advance_steps, (long long)stats.record_steps,
		(long long)stats.recoveries, (unsigned long long)stats.written[0]);
	return stats;
}

/* States, or tapes, leave; a tier with few places is thinned; one that dies costs steps. */
static void tiers(void **state)
{
	struct neap__faults none = {0}, dies = {.gone_after = 100}, dead = {.gone_after = 1};
	(void)state;
	struct neap_sweep_stats fast = over_a_tier(0.1, &none, NEAP_INFINITE);
	struct neap_sweep_stats slow = over_a_tier(10, &none, NEAP_INFINITE);
	struct neap_sweep_stats full = over_a_tier(10, &none, 6000);
	struct neap_sweep_stats gone = over_a_tier(10, &dies, NEAP_INFINITE);
	struct neap_sweep_stats lost = over_a_tier(10, &dead, NEAP_INFINITE);
	assert_true(fast.written[0] > slow.written[0]);
	assert_true(slow.written[0] > 0 && slow.recoveries == 0);
	assert_true(full.advance_steps > slow.advance_steps && full.recoveries == 0);
	assert_true(gone.recoveries > 0 && lost.recoveries > 0);
	/* What is left is reversed as Revolve would: not every record anew from far below. */
	assert_true(gone.advance_steps < 12000 && lost.advance_steps < 12000);
}

static int stop_asking(void *user, const void *state, int64_t t)
{
	(void)user;
	(void)state;
	return t == 30 ? -EDOM : t == 40 ? 7 : NEAP_GO_ON;
}

static void refusals(void **state)
{
	struct neap_sweep *sweep;
	struct gradient got;
	struct model m;
	(void)state;
	model_init(&m, 50, 5);
	struct neap_step_ops ops = model_ops(&m, 0);
	ops.ended = stop_asking;
	struct neap_sweep_options o = {.size = sizeof o, FIXED_COSTS};
	assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), NEAP_EUSAGE);
	o.memory = 5000;
	o.strategy = "revolve";
	assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), NEAP_EUSAGE);
	o.strategy = NULL;
	o.memory = 100;
	assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), NEAP_EINFEASIBLE);
	o.memory = 5000;
	assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), 0);
	assert_int_equal(run_model(sweep, &m, &got, NULL), -EDOM);
	neap_sweep_free(sweep);
	/* Every callback that fails ends the sweep, which can run again. */
	ops.ended = ended;
	assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), 0);
	for (int64_t n = 1;; n++) {
		told_at = 50;
		how = NEAP_ENDED;
		asked = 0;
		model_restart(&m);
		m.fail_at = n;
		_Alignas(64) double x[WIDTH];
		double loss;
		model_start(x);
		int rc = neap_sweep_run(sweep, x, got.dx, &loss, NULL);
		if (rc == 0)
			break;
		assert_int_equal(rc, -EDOM);
	}
	m.fail_at = 0;
	run_both_ways(sweep, &m);
	neap_sweep_free(sweep);
	model_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lengths),
		cmocka_unit_test(as_planned),
		cmocka_unit_test(tiers),
		cmocka_unit_test(refusals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
