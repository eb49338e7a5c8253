/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sweeps whose plan is replaced while they run, as a tier turns out slower or faster than planned:
 * the gradient is the same to the bit, the budget holds, and the plan that came of it can be
 * written, read, and run again. Faults on the way change nothing of that.
 *
 *     test_replan_sweep          what `make check` runs
 *     test_replan_sweep N        N random sweeps instead of 32
 */
#include "chainmodel.h"
#include "store/fault_tier.h"
#include "sweep/sweep.h"
#include "store/tier_state.h"
#include "sys/clock.h"

#include <math.h>

#define STEP 5e-6 /* seconds */

static int rounds = 32;

static void spin(double seconds)
{
	double start = neap__seconds();
	while (neap__seconds() - start < seconds)
		;
}

static int (*plain_advance)(void *, void *, int64_t, int64_t, int);
static int (*plain_record)(
	void *, void *, int64_t, int64_t, int, void *, size_t, size_t *, int64_t *);

static int slow_advance(void *user, void *state, int64_t t0, int64_t t1, int first)
{
	spin(STEP * (double)(t1 - t0));
	return plain_advance(user, state, t0, t1, first);
}

static int slow_record(void *user, void *state, int64_t t0, int64_t t1, int first, void *tape,
	size_t room, size_t *used, int64_t *done)
{
	int rc = plain_record(user, state, t0, t1, first, tape, room, used, done);
	spin(STEP * (double)(*done - t0));
	return rc;
}

static uint64_t draw(uint64_t *seed, uint64_t n)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (*seed >> 33) % n;
}

static int keep_text(void *user, const char *text, size_t length)
{
	char *all = user;
	assert_true(strlen(all) + length < 16384);
	strncat(all, text, length);
	return 0;
}

static uint32_t even(const struct model *m, int64_t t)
{
	return (uint32_t)((uint64_t)t * 2654435761u >> 7) % (m->extra_most + 1);
}

struct sweep_case {
	struct model m;
	struct neap_step_ops ops;
	struct neap_sweep_options o;
	struct neap_tier *tier;
	struct neap__faults faults;
	struct gradient want;
};

/* A state takes `tau` steps to write, and was thought to take `factor` times less. */
static void make_case(struct sweep_case *x, uint64_t seed)
{
	static const char *const strategies[] = {"async", "auto", "stream"};
	uint64_t r = seed;
	double tau = 5 + (double)draw(&r, 30), factor = draw(&r, 3) ? 4 : 0.25;
	struct neap_tier *inner;
	*x = (struct sweep_case){.faults = {.byte_seconds = tau * STEP / 128}};
	model_init(&x->m, 500 + (int64_t)draw(&r, 1500), seed);
	if (draw(&r, 3) == 0) { /* tapes of other sizes than planned */
		x->m.extra_most = 64;
		x->m.extra = even;
	}
	x->want = reference(&x->m);
	x->ops = model_ops(&x->m, x->m.extra_most ? 152 : 0);
	plain_advance = x->ops.advance;
	plain_record = x->ops.record;
	x->ops.advance = slow_advance;
	x->ops.record = slow_record;
	if (draw(&r, 3) == 0)
		x->faults.lose_put = 5 + (int64_t)draw(&r, 20);
	assert_int_equal(neap_tier_open_memory(&inner, 1 << 22), 0);
	assert_int_equal(neap__fault_open(&x->tier, inner, &x->faults), 0);
	neap_tier_set_rates(x->tier, 128 * factor / (tau * STEP), 128 * factor / (tau * STEP), 0);
	x->o = (struct neap_sweep_options){.size = sizeof x->o,
		.steps = x->m.steps,
		.memory = 128 * (20 + draw(&r, 100)),
		.strategy = strategies[draw(&r, 3)],
		.params = {.effort = 20},
		.tiers = &x->tier,
		.ntiers = 1,
		.advance = STEP,
		.record = STEP,
		.backward = 2e-7};
}

static struct neap_sweep_stats run_once(struct sweep_case *x, struct neap_sweep *sweep)
{
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct gradient got;
	if (run_model(sweep, &x->m, &got, &stats) < 0 || x->m.broken[0])
		fail_msg("%s %s", neap_detail(), x->m.broken);
	assert_memory_equal(&got, &x->want, sizeof got);
	assert_true(stats.peak_measured <= x->o.memory);
	return stats;
}

/* The plan that came of a run, as text and back, makes a sweep of its own. */
static void run_saved(struct sweep_case *x, const struct neap_sweep *sweep)
{
	char text[16384] = "";
	struct neap_saved *saved;
	struct neap_sweep *again;
	struct neap_sweep_options o = x->o;
	assert_int_equal(neap_plan_write(neap_sweep_plan(sweep), neap_sweep_problem(sweep), 0,
				 keep_text, text),
		0);
	if (neap_plan_read(&saved, text, strlen(text), 1 << 30) < 0)
		fail_msg("%s\n%s", neap_detail(), text);
	o.saved = saved;
	if (neap_sweep_create(&again, &x->ops, &x->m, &o) < 0)
		fail_msg("%s", neap_detail());
	assert_int_equal(run_once(x, again).replans, 0);
	assert_int_equal(
		neap_sweep_plan(again)->replan_count, neap_sweep_plan(sweep)->replan_count);
	neap_sweep_free(again);
	neap_saved_free(saved);
}

static void replaced(void **state)
{
	(void)state;
	int64_t replans = 0, sweeps = 0;
	for (int i = 0; i < rounds; i++) {
		struct sweep_case x;
		struct neap_sweep *sweep;
		make_case(&x, test_seed(1) + (uint64_t)i);
		x.o.no_replan = i % 8 == 7 ? 1 : -1;
		int rc = neap_sweep_create(&sweep, &x.ops, &x.m, &x.o);
		if (rc == 0) {
			neap__sweep_poison(sweep, 1);
			int64_t n = run_once(&x, sweep).replans;
			assert_true(n == neap_sweep_plan(sweep)->replan_count);
			assert_true(n == 0 || x.o.no_replan < 0);
			x.faults.lose_put = 0;
			if (n > 0)
				run_saved(&x, sweep);
			run_once(&x, sweep);
			replans += n;
			sweeps++;
			neap_sweep_free(sweep);
		} else {
			assert_int_equal(rc, NEAP_EINFEASIBLE);
		}
		neap_tier_close(x.tier);
		model_fini(&x.m);
	}
	fprintf(stderr, "# %lld sweeps, %lld replans\n", (long long)sweeps, (long long)replans);
	assert_true(replans > 0);
}

/*
 * Costs that the test sets: a step takes `pace` virtual steps, and a write as long as
 * planned. Virtual seconds are so long that those of the machine do not count.
 */
#define VIRTUAL_STEP 10.0
#define VIRTUAL_TAU 12 /* steps that a write of a state takes */

static struct neap_sweep *timed;
static double virtual_now;
static double (*pace)(int64_t t, int64_t steps);

static double virtual_seconds(int64_t t0, int64_t t1)
{
	double seconds = 0;
	for (int64_t t = t0; t < t1; t++)
		seconds += VIRTUAL_STEP * pace(t, timed->problem.chain.steps);
	return seconds;
}

static int virtual_advance(void *user, void *state, int64_t t0, int64_t t1, int first)
{
	timed->stats.advance += virtual_seconds(t0, t1);
	return plain_advance(user, state, t0, t1, first);
}

static int virtual_record(void *user, void *state, int64_t t0, int64_t t1, int first, void *tape,
	size_t room, size_t *used, int64_t *done)
{
	int rc = plain_record(user, state, t0, t1, first, tape, room, used, done);
	timed->stats.record += virtual_seconds(t0, *done);
	return rc;
}

/* One write follows the other. */
static void virtual_times(void *self, double *start, double *end)
{
	(void)self;
	*start = virtual_now = fmax(virtual_now, neap__seconds());
	*end = virtual_now += VIRTUAL_TAU * VIRTUAL_STEP;
}

static double as_planned(int64_t t, int64_t steps)
{
	(void)t, (void)steps;
	return 1;
}

/* The first steps find cold caches, and then another program has the processor for a while. */
static double disturbed(int64_t t, int64_t steps)
{
	return t < steps / 10 || (t > steps / 4 && t < steps / 2) ? 12 : 1;
}

static double faster(int64_t t, int64_t steps)
{
	(void)t, (void)steps;
	return 0.2;
}

/* Runs 3000 steps at a pace; returns the replans. */
static int64_t virtual_replans(double (*at)(int64_t t, int64_t steps), uint64_t memory)
{
	struct model m;
	struct neap_tier *tier;
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct gradient got, want;
	model_init(&m, 3000, 7);
	want = reference(&m);
	struct neap_step_ops ops = model_ops(&m, 0);
	plain_advance = ops.advance;
	plain_record = ops.record;
	ops.advance = virtual_advance;
	ops.record = virtual_record;
	pace = at;
	virtual_now = 0;
	assert_int_equal(neap_tier_open_memory(&tier, 1 << 22), 0);
	tier->ops.times = virtual_times;
	const double rate = 128 / (VIRTUAL_TAU * VIRTUAL_STEP);
	neap_tier_set_rates(tier, rate, rate, 0);
	struct neap_sweep_options o = {.size = sizeof o,
		.steps = m.steps,
		.memory = memory,
		.strategy = "async",
		.params = {.effort = 20},
		.tiers = &tier,
		.ntiers = 1,
		.no_replan = -1,
		.advance = VIRTUAL_STEP,
		.record = VIRTUAL_STEP,
		.backward = 0.1 * VIRTUAL_STEP};
	if (neap_sweep_create(&timed, &ops, &m, &o) < 0)
		fail_msg("%s", neap_detail());
	if (run_model(timed, &m, &got, &stats) < 0)
		fail_msg("%s", neap_detail());
	assert_memory_equal(&got, &want, sizeof got);
	neap_sweep_free(timed);
	neap_tier_close(tier);
	model_fini(&m);
	return stats.replans;
}

/*
 * Steps that are slow for a while replace no plan, though they seem slow by all steps so far; steps
 * that are fast throughout, and therefore hide fewer transfers, do.
 */
static void cold_costs(void **state)
{
	(void)state;
	for (uint64_t memory = 128 * 24; memory <= 128 * 96; memory *= 2) {
		assert_int_equal(virtual_replans(as_planned, memory), 0);
		assert_int_equal(virtual_replans(disturbed, memory), 0);
		assert_true(virtual_replans(faster, memory) > 0);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replaced),
		cmocka_unit_test(cold_costs),
	};
	if (argc > 1)
		rounds = atoi(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
