/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_random.c: random legal schedules (random_schedule.h) run on a model, with tapes of any
 * size, a lazy tier and faults. NEAP_SEED, NEAP_ROUNDS.
 */
#include "chainmodel.h"

#include "lazy_tier.h"
#include "random_schedule.h"
#include "store/fault_tier.h"
#include "sweep/sweep_state.h"
#include "sweep/sweep.h"

static uint32_t varied(const struct model *m, int64_t t)
{
	return neap__random_below(m->seed, NEAP__STREAM_TEST, 2, (uint64_t)t / 17, 4) ? 2 : 90;
}

struct totals {
	int64_t actions, overflows, recoveries, runs;
};

static void check_round(uint64_t seed, int faulty, int vary, struct totals *totals)
{
	static struct maker k;
	struct neap__faults faults = {0};
	struct neap_tier *inner, *tier;
	struct neap_sweep *sweep;
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct gradient got;
	struct model m;
	uint64_t steps = 1 + neap__random_below(seed, NEAP__STREAM_TEST, 5, 0, 400);

	model_init(&m, (int64_t)steps, seed);
	make(&k, m.steps, seed);
	m.extra_most = vary ? 90 : 0;
	m.extra = varied;
	struct gradient want = reference(&m);
	struct neap_step_ops ops = model_ops(&m, vary ? 160 : 0);
	int lazy = seed % 2 == 0; /* it knows no damage, only refusals */
	assert_int_equal(lazy ? lazy_open(&inner, NEAP_INFINITE)
			      : neap_tier_open_memory(&inner, NEAP_INFINITE),
		0);
	if (faulty) {
		int64_t *const rows[] = {&faults.fail_put, &faults.fail_get, &faults.gone_after,
			&faults.lose_put, &faults.corrupt_put, &faults.truncate_put};
		for (int i = 0; i < (lazy ? 3 : 6); i++)
			if (draw(&k, 3) == 0)
				*rows[i] = 1 + (int64_t)draw(&k, 40);
		faults.at_once = (int)draw(&k, 2);
	}
	assert_int_equal(neap__fault_open(&tier, inner, &faults), 0);
	struct neap_sweep_options o = {
		.size = sizeof o, FIXED_COSTS, .steps = m.steps, .tiers = &tier, .ntiers = 1};
	int rc = neap__sweep_create_over(&sweep, &ops, &m, &o, maker_open, &k);
	if (rc < 0)
		fail_msg("seed %llu: %s", (unsigned long long)seed, neap_detail());
	neap__sweep_poison(sweep, 1);
	const struct neap_problem *p = neap_sweep_problem(sweep);
	uint64_t peak = exact_peak(&k, p);
	assert_true(peak <= neap_sweep_plan(sweep)->peak_bytes);
	sweep->arena.bytes = peak + (vary ? p->chain.tape_max - p->chain.tape : 0);
	rc = run_model(sweep, &m, &got, &stats);
	if (rc < 0 || m.broken[0] || memcmp(&got, &want, sizeof got) != 0)
		fail_msg("seed %llu T=%lld: %d %s; %s", (unsigned long long)seed,
			(long long)m.steps, rc, rc < 0 ? neap_detail() : "gradient", m.broken);
	assert_true(stats.peak_measured <= stats.arena_bytes);
	assert_int_equal(stats.advance_steps + stats.record_steps,
		neap_sweep_plan(sweep)->advance_steps + neap_sweep_plan(sweep)->record_steps +
			stats.recomputed);
	if (!vary && !stats.recoveries) {
		assert_int_equal(stats.peak_measured, peak);
		assert_int_equal(stats.recomputed, 0);
	}
	totals->runs++;
	totals->actions += (int64_t)k.count;
	totals->overflows += stats.overflows;
	totals->recoveries += stats.recoveries;
	neap_sweep_free(sweep);
	neap_tier_close(tier);
	model_fini(&m);
}

static void random_schedules(void **state)
{
	const char *given = getenv("NEAP_ROUNDS");
	uint64_t seed = test_seed(1), rounds = given ? strtoull(given, NULL, 0) : 1500;
	(void)state;
	for (int mode = 0; mode < 4; mode++) {
		struct totals totals = {0};
		for (uint64_t i = 0; i < rounds; i++)
			check_round(seed + i, mode & 1, mode & 2, &totals);
		print_message("# %lld schedules, %lld actions, %lld overflows, %lld recoveries\n",
			(long long)totals.runs, (long long)totals.actions,
			(long long)totals.overflows, (long long)totals.recoveries);
		assert_true(rounds < 100 || (totals.recoveries > 0) == (mode & 1));
		assert_true(rounds < 100 || mode < 2 || totals.overflows > 0);
	}
}

/* A slot that is being sent moves to make room for tapes: only once it was sent. */
static void sent_slot_moves(void **state)
{
	static const struct neap_action actions[] = {
		{.kind = NEAP_SAVE, .slot = 0, .t0 = 0},
		{.kind = NEAP_PUT, .tier = 1, .slot = 0, .t0 = 0, .place = 0, .ticket = 1},
		{.kind = NEAP_WAIT, .ticket = 1},
		{.kind = NEAP_ADVANCE, .t0 = 0, .t1 = 10},
		{.kind = NEAP_SAVE, .slot = 1, .t0 = 10},
		{.kind = NEAP_PUT, .tier = 1, .slot = 1, .t0 = 10, .place = 1, .ticket = 2},
		{.kind = NEAP_DROP, .slot = 0, .t0 = 0},
		{.kind = NEAP_ADVANCE, .t0 = 10, .t1 = 12},
		{.kind = NEAP_RECORD, .t0 = 12, .t1 = 22},
		{.kind = NEAP_TURN, .t0 = 22, .t1 = 22},
		{.kind = NEAP_BACKWARD, .t0 = 12, .t1 = 22},
		{.kind = NEAP_WAIT, .ticket = 2},
		{.kind = NEAP_DROP, .slot = 1, .t0 = 10},
		{.kind = NEAP_GET, .tier = 1, .slot = NEAP_LIVE, .t0 = 10, .place = 1, .ticket = 3},
		{.kind = NEAP_WAIT, .ticket = 3},
		{.kind = NEAP_RECORD, .t0 = 10, .t1 = 12},
		{.kind = NEAP_BACKWARD, .t0 = 10, .t1 = 12},
		{.kind = NEAP_GET, .tier = 1, .slot = NEAP_LIVE, .t0 = 0, .place = 0, .ticket = 3},
		{.kind = NEAP_WAIT, .ticket = 3},
		{.kind = NEAP_RECORD, .t0 = 0, .t1 = 10},
		{.kind = NEAP_BACKWARD, .t0 = 0, .t1 = 10},
	};
	static struct maker k;
	struct neap_tier *tier;
	struct neap_sweep *sweep;
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct gradient got;
	struct model m;
	(void)state;
	memcpy(k.actions, actions, sizeof actions);
	k.count = sizeof actions / sizeof actions[0];
	model_init(&m, 22, 3);
	struct gradient want = reference(&m);
	struct neap_step_ops ops = model_ops(&m, 0);
	assert_int_equal(lazy_open(&tier, NEAP_INFINITE), 0);
	struct neap_sweep_options o = {
		.size = sizeof o, FIXED_COSTS, .steps = m.steps, .tiers = &tier, .ntiers = 1};
	assert_int_equal(neap__sweep_create_over(&sweep, &ops, &m, &o, maker_open, &k), 0);
	neap__sweep_poison(sweep, 1);
	sweep->arena.bytes = exact_peak(&k, neap_sweep_problem(sweep));
	assert_int_equal(run_model(sweep, &m, &got, &stats), 0);
	assert_string_equal(m.broken, "");
	assert_memory_equal(&got, &want, sizeof got);
	assert_int_equal(stats.overflows, 0);
	assert_int_equal(stats.peak_measured, sweep->arena.bytes);
	neap_sweep_free(sweep);
	neap_tier_close(tier);
	model_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sent_slot_moves), cmocka_unit_test(random_schedules)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
