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
#include "sys/clock.h"

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

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(replaced),
	};
	if (argc > 1)
		rounds = atoi(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
