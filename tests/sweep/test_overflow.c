/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tapes that vary: whatever they take, the gradient is the same to the bit and
 * the arena never larger than the plan said.
 */
#include "chainmodel.h"

#include "store/tier_state.h"
#include "sweep/sweep.h"

/*
 * Every row of the table takes part; those that plan other chains (`chain`, `join`) or
 * do not fit refuse. A short search makes the same kinds of plans as a long one.
 */
#define EFFORT 10

#define MOST 64 /* doubles of junk: the largest tape is 632 bytes, the least 120 */

static uint32_t even(const struct model *m, int64_t t)
{
	return (uint32_t)neap__random_below(m->seed, NEAP__STREAM_TEST, 1, (uint64_t)t, 20);
}

static uint32_t bursts(const struct model *m, int64_t t)
{
	int burst = neap__random_below(m->seed, NEAP__STREAM_TEST, 2, (uint64_t)t / 40, 5) == 0;
	return burst ? MOST : even(m, t) / 4;
}

static uint32_t all_small(const struct model *m, int64_t t)
{
	(void)m;
	(void)t;
	return 0;
}

static uint32_t all_large(const struct model *m, int64_t t)
{
	(void)m;
	(void)t;
	return MOST;
}

static uint32_t late(const struct model *m, int64_t t)
{
	return t > m->steps / 2 ? MOST : 0;
}

static uint32_t early(const struct model *m, int64_t t)
{
	return t < m->steps / 2 ? MOST : 0;
}

static const struct shape {
	const char *name;
	uint32_t (*extra)(const struct model *m, int64_t t);
	int64_t recomputed; /* steps in all runs without tiers, at most; measured by this test */
} shapes[] = {
	{"even", even, 52742},
	{"bursts", bursts, 56765},
	{"all_small", all_small, 0},
	{"all_large", all_large, 80321},
	{"late", late, 56871},
	{"early", early, 61503},
};

static struct totals {
	int64_t runs, overflowed, recomputed, overflows;
	double worst; /* recomputed steps a step of the chain */
} totals;

static void check_one(struct model *m, const struct neap_step_ops *ops, const struct gradient *want,
	const struct neap_sweep_options *o, const char *shape)
{
	struct neap_sweep *sweep;
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct gradient got;
	int rc = neap_sweep_create(&sweep, ops, m, o);
	if (rc == NEAP_EINFEASIBLE)
		return;
	assert_int_equal(rc, 0);
	neap__sweep_poison(sweep, 1);
	rc = run_model(sweep, m, &got, &stats);
	if (rc < 0 || m->broken[0] || memcmp(&got, want, sizeof got) != 0)
		fail_msg("%s %s T=%lld memory=%llu replans=%lld tape=%zu: %d %s; %s", o->strategy,
			shape, (long long)o->steps, (unsigned long long)o->memory,
			(long long)stats.replans, ops->tape_bytes, rc,
			rc < 0 ? neap_detail() : "gradient", m->broken);
	assert_true(stats.peak_measured <= stats.arena_bytes);
	assert_true(stats.arena_bytes <= o->memory);
	assert_int_equal(stats.recoveries, 0);
	assert_true((stats.recomputed > 0) <= (stats.overflows > 0));
	assert_int_equal(stats.advance_steps + stats.record_steps,
		neap_sweep_plan(sweep)->advance_steps + neap_sweep_plan(sweep)->record_steps +
			stats.recomputed);
	double extra = (double)stats.recomputed / (double)(o->steps + 1);
	totals.runs++;
	totals.overflowed += stats.overflows > 0;
	totals.recomputed += stats.recomputed;
	totals.overflows += stats.overflows;
	if (extra > totals.worst)
		totals.worst = extra;
	neap_sweep_free(sweep);
}

static void check_shape(const struct shape *shape, struct neap_tier **tiers, int ntiers)
{
	static const int64_t lengths[] = {1, 2, 65, 130, 500};
	static const size_t means[] = {120, 152, 632}; /* 120: a fifth of the largest */
	totals = (struct totals){0};
	for (size_t l = 0; l < sizeof lengths / sizeof lengths[0]; l++) {
		struct model m;
		model_init(&m, lengths[l], 70 + l);
		m.extra_most = MOST;
		m.extra = shape->extra;
		struct gradient want = reference(&m);
		for (size_t k = 0; k < sizeof means / sizeof means[0]; k++) {
			struct neap_step_ops ops = model_ops(&m, means[k]);
			for (int i = 0; neap_strategy_name(i); i++)
				for (uint64_t memory = 1000; memory < 900000; memory *= 3) {
					struct neap_sweep_options o = {
						.size = sizeof o,
						FIXED_COSTS,
						.steps = lengths[l],
						.memory = memory,
						.strategy = neap_strategy_name(i),
						.params = {.effort = EFFORT},
						.tiers = tiers,
						.ntiers = ntiers,
					};
					check_one(&m, &ops, &want, &o, shape->name);
				}
		}
		model_fini(&m);
	}
	print_message("# %-10s %d tiers: %lld runs, %lld overflowed, %lld overflows, %lld steps "
		      "recomputed, at most %.1f a step\n",
		shape->name, ntiers, (long long)totals.runs, (long long)totals.overflowed,
		(long long)totals.overflows, (long long)totals.recomputed, totals.worst);
	assert_true(totals.runs > 100);
}

static void without_tiers(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
		check_shape(&shapes[i], NULL, 0);
		/* As measured once: of the ways to make room, each takes the cheapest. */
		assert_true(totals.recomputed <= shapes[i].recomputed);
		if (shapes[i].extra == all_large)
			assert_true(totals.overflowed > totals.runs / 4);
	}
}

static void over_memory(void **state)
{
	struct neap_tier *tier;
	(void)state;
	assert_int_equal(neap_tier_open_memory(&tier, NEAP_INFINITE), 0);
	for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
		check_shape(&shapes[i], &tier, 1);
	neap_tier_close(tier);
}

/* A plan for tapes of a twentieth of what comes: the cost must stay far from T^2. */
static void adversary(void **state)
{
	struct model m;
	struct neap_sweep *sweep;
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct gradient got;
	(void)state;
	model_init(&m, 20000, 9);
	m.extra_most = 400;
	m.extra = all_large;
	struct gradient want = reference(&m);
	struct neap_step_ops ops = model_ops(&m, 160);
	struct neap_sweep_options o = {.size = sizeof o,
		FIXED_COSTS,
		.steps = 20000,
		.memory = 20000 * 192 + 8192,
		.strategy = "bptt"};
	assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), 0);
	m.extra_most = 400;
	neap__sweep_poison(sweep, 1);
	int rc = run_model(sweep, &m, &got, &stats);
	if (rc < 0)
		fail_msg("%s", neap_detail());
	assert_string_equal(m.broken, "");
	assert_memory_equal(&got, &want, sizeof got);
	print_message("# adversary: %lld overflows, %.2f steps recomputed a step\n",
		(long long)stats.overflows, (double)stats.recomputed / 20000);
	assert_true(stats.overflows > 0);
	assert_true(stats.recomputed < 4 * 20000);
	neap_sweep_free(sweep);
	model_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_tiers),
		cmocka_unit_test(over_memory),
		cmocka_unit_test(adversary),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
