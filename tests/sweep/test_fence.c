/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_fence.c: models whose calls return before they are done (neap_step_ops.fence): when a sweep
 * waits for them, what it measures, and what it answers if one of them fails. late_calls.c has
 * the queue; with it the other tests of sweeps compare results.
 */
#include "chainmodel.h"
#include "late_calls.h"
#include "lazy_tier.h"

#include "base/fail.h"
#include "store/tier_state.h"
#include "sys/clock.h"

#define SPIN 2e-5 /* seconds of a step: the least that any measurement may find */

static int is_in_order;
static int64_t steps_done, late_requests;

static void spin(int64_t steps)
{
	double end = neap__seconds() + SPIN * (double)steps;
	while (neap__seconds() < end)
		continue;
	steps_done += steps;
}

static int slow_advance(void *user, void *state, int64_t t0, int64_t t1, int first)
{
	spin(t1 - t0);
	return model_advance(user, state, t0, t1, first);
}

static int slow_record(void *user, void *state, int64_t t0, int64_t t1, int first, void *tape,
	size_t room, size_t *used, int64_t *done)
{
	spin(t1 - t0);
	return model_record(user, state, t0, t1, first, tape, room, used, done);
}

static int slow_backward(void *user, void *adjoint, int64_t t1, int64_t t0, const void *tape)
{
	spin(t1 - t0);
	return model_backward(user, adjoint, t1, t0, tape);
}

static struct neap_step_ops slow_ops(const struct model *m)
{
	struct neap_step_ops ops = model_ops(m, 0);
	ops.advance = slow_advance;
	ops.record = slow_record;
	ops.backward = slow_backward;
	return ops;
}

static int run_late(struct model *m, struct neap_step_ops ops, const struct neap_sweep_options *o,
	struct gradient *got, struct neap_sweep_stats *stats)
{
	struct neap_sweep *sweep;
	void *user = m;
	ops = late_steps(&ops, &user);
	NEAP_TRY(neap_sweep_create(&sweep, &ops, user, o));
	int rc = run_model(sweep, m, got, stats);
	neap_sweep_free(sweep);
	return rc;
}

/* The seconds of each kind of steps contain their work, whoever waited for it. */
static void times_contain_work(void **state)
{
	struct neap_sweep_stats stats;
	struct gradient got, want;
	struct model m;
	(void)state;
	model_init(&m, 300, 5);
	want = reference(&m);
	const struct neap_step_ops ops = slow_ops(&m);
	struct neap_sweep_options o = {.size = sizeof o,
		.steps = 300,
		.strategy = "standard",
		.memory = 8000,
		.advance = SPIN,
		.record = SPIN,
		.backward = SPIN};
	steps_done = 0;
	assert_int_equal(run_late(&m, ops, &o, &got, &stats), 0);
	assert_memory_equal(&got, &want, sizeof got);
	assert_int_equal(
		steps_done, stats.advance_steps + stats.record_steps + stats.backward_steps);
	double work = SPIN * (double)steps_done;
	assert_true(stats.compute >= work);
	assert_true(stats.advance + stats.record + stats.backward >= work);
	assert_true(stats.seconds >= stats.compute);
	model_fini(&m);
}

/* Calibration tells the kinds apart; half of a step may count as a call's. */
static void calibration_waits(void **state)
{
	struct neap_sweep_options o = {.size = sizeof o, .steps = 300};
	struct model m;
	_Alignas(64) double x[WIDTH];
	(void)state;
	model_init(&m, 300, 5);
	model_start(x);
	void *user = &m;
	struct neap_step_ops ops = slow_ops(&m);
	ops = late_steps(&ops, &user);
	assert_int_equal(neap_sweep_calibrate(&o, &ops, user, x, 0.05), 0);
	assert_true(o.advance >= SPIN / 2);
	assert_true(o.record >= SPIN / 2);
	assert_true(o.backward >= SPIN / 2);
	model_fini(&m);
}

/* A sweep without costs times its first steps. */
static void first_steps_are_whole(void **state)
{
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct gradient got;
	struct neap_sweep *sweep;
	struct neap_tier *tier;
	struct model m;
	(void)state;
	model_init(&m, 300, 5);
	void *user = &m;
	struct neap_step_ops ops = slow_ops(&m);
	ops = late_steps(&ops, &user);
	assert_int_equal(lazy_open(&tier, NEAP_INFINITE), 0);
	struct neap_sweep_options o = {
		.size = sizeof o, .steps = 300, .memory = 8000, .tiers = &tier, .ntiers = 1};
	assert_int_equal(neap_sweep_create(&sweep, &ops, user, &o), 0);
	assert_int_equal(run_model(sweep, &m, &got, &stats), 0);
	assert_true(neap_sweep_problem(sweep)->chain.advance >= SPIN * 0.999);
	assert_true(neap_sweep_problem(sweep)->chain.record >= SPIN * 0.999);
	neap_sweep_free(sweep);
	neap_tier_close(tier);
	model_fini(&m);
}

static struct neap_sweep *watched;
static int (*late_record)(
	void *, void *, int64_t, int64_t, int, void *, size_t, size_t *, int64_t *);
static int queued_then; /* calls when the sweep had foreseen its end; -1: not yet */

static int watching_record(void *user, void *state, int64_t t0, int64_t t1, int first, void *tape,
	size_t room, size_t *used, int64_t *done)
{
	if (queued_then < 0 && neap_sweep_foreseen(watched) > 0)
		queued_then = late_queued();
	return late_record(user, state, t0, t1, first, tape, room, used, done);
}

/* What a sweep foresees is of steps that are done. */
static void foreseen_steps_are_done(void **state)
{
	struct neap_sweep_options o = {
		.size = sizeof o, FIXED_COSTS, .steps = 1000, .strategy = "bptt"};
	struct gradient got;
	struct model m;
	(void)state;
	model_init(&m, 1000, 5);
	void *user = &m;
	struct neap_step_ops ops = model_ops(&m, 0);
	ops = late_steps(&ops, &user);
	late_record = ops.record;
	ops.record = watching_record;
	queued_then = -1;
	assert_int_equal(neap_sweep_create(&watched, &ops, user, &o), 0);
	assert_int_equal(run_model(watched, &m, &got, NULL), 0);
	assert_int_equal(queued_then, 0);
	neap_sweep_free(watched);
	model_fini(&m);
}

/* A tier that counts requests which come while calls are queued. */
static int seeing_put(
	void *self, int64_t place, uint64_t tag, const void *from, uint64_t bytes, int64_t *ticket)
{
	late_requests += late_queued();
	late_drain();
	return lazy_put(self, place, tag, from, bytes, ticket);
}

static int seeing_get(
	void *self, int64_t place, uint64_t tag, void *into, uint64_t bytes, int64_t *ticket)
{
	late_requests += late_queued();
	late_drain();
	return lazy_get(self, place, tag, into, bytes, ticket);
}

static void tiers_in_order(void **state)
{
	struct neap_sweep_stats stats;
	struct gradient got, want;
	struct model m;
	(void)state;
	model_init(&m, 400, 6);
	want = reference(&m);
	for (is_in_order = 0; is_in_order < 2; is_in_order++) {
		struct neap_tier *tier;
		late_requests = 0;
		assert_int_equal(lazy_open(&tier, NEAP_INFINITE), 0);
		tier->ops.put = seeing_put;
		tier->ops.get = seeing_get;
		tier->ops.in_order = is_in_order;
		struct neap_sweep_options o = {.size = sizeof o,
			FIXED_COSTS,
			.steps = 400,
			.strategy = "double",
			.memory = 4096,
			.tiers = &tier,
			.ntiers = 1};
		assert_int_equal(run_late(&m, model_ops(&m, 0), &o, &got, &stats), 0);
		assert_memory_equal(&got, &want, sizeof got);
		assert_true(stats.written[0] > 0);
		assert_int_equal(late_requests > 0, is_in_order);
		neap_tier_close(tier);
	}
	model_fini(&m);
}

/* A call that fails ends the run with its code and line, and the next run is a new one. */
static void failures_end_the_run(void **state)
{
	struct neap_sweep_options o = {
		.size = sizeof o, FIXED_COSTS, .steps = 100, .strategy = "revolve", .memory = 1500};
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct gradient got, want;
	struct neap_sweep *sweep;
	struct model m;
	(void)state;
	model_init(&m, 100, 7);
	want = reference(&m);
	int64_t calls = 0;
	void *user = &m;
	struct neap_step_ops ops = model_ops(&m, 0);
	ops = late_steps(&ops, &user);
	assert_int_equal(neap_sweep_create(&sweep, &ops, user, &o), 0);
	assert_int_equal(run_model(sweep, &m, &got, &stats), 0);
	calls = m.calls;
	for (int64_t i = 1; i <= calls; i += calls / 7) {
		m.fail_at = i;
		assert_int_equal(run_model(sweep, &m, &got, &stats), -EDOM);
		assert_non_null(strstr(neap_detail(), "answered"));
		late_expect_none("the end of a run");
	}
	m.fail_at = 0;
	assert_int_equal(run_model(sweep, &m, &got, &stats), 0);
	assert_memory_equal(&got, &want, sizeof got);
	neap_sweep_free(sweep);
	model_fini(&m);
}

static int odd_fence(void *user)
{
	(void)user;
	return 3;
}

static void fences_that_answer_nonsense(void **state)
{
	struct neap_sweep_options o = {.size = sizeof o, FIXED_COSTS, .steps = 10};
	struct gradient got;
	struct neap_sweep *sweep;
	struct model m;
	(void)state;
	model_init(&m, 10, 8);
	struct neap_step_ops ops = model_ops(&m, 0);
	ops.fence = odd_fence;
	assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), 0);
	assert_int_equal(run_model(sweep, &m, &got, NULL), NEAP_EMODEL);
	assert_string_equal(neap_detail(), "the model's fence answered 3");
	neap_sweep_free(sweep);
	model_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(times_contain_work),
		cmocka_unit_test(calibration_waits), cmocka_unit_test(first_steps_are_whole),
		cmocka_unit_test(foreseen_steps_are_done), cmocka_unit_test(tiers_in_order),
		cmocka_unit_test(failures_end_the_run),
		cmocka_unit_test(fences_that_answer_nonsense)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
