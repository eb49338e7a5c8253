/* SPDX-License-Identifier: Apache-2.0 */
/* How long ranges of a sweep take, over models whose steps last as long as they are told. */
#include "test.h"
#include "measure/sweep_pace.h"

#include <math.h>

enum { STEPS = 6400, TAPE = 256, LOG = 64 /* bytes per step */ };

struct slow {
	int64_t from, to; /* these steps last longer, forward */
	int64_t back;	  /* below this one backward does */
	int64_t calls;
};

/* The only time that passes is what steps are told to last. */
static double now;

static double seconds(void)
{
	return now;
}

static int advance(void *user, void *state, int64_t t0, int64_t t1, int first)
{
	struct slow *s = user;
	(void)first;
	*(int64_t *)state += t1 - t0;
	s->calls++;
	for (int64_t t = t0; t < t1; t++)
		now += (t >= s->from && t < s->to ? 8e-6 : 2e-6);
	return 0;
}

static int record(void *user, void *state, int64_t t0, int64_t t1, int first, void *tape,
	size_t room, size_t *used, int64_t *t_done)
{
	(void)room;
	memset(tape, 0, (size_t)(t1 - t0) * TAPE);
	*used = (size_t)(t1 - t0) * TAPE;
	*t_done = t1;
	return advance(user, state, t0, t1, first);
}

static int advance_log(void *user, void *state, int64_t t0, int64_t t1, int first, void *log,
	size_t room, size_t *used, int64_t *t_done)
{
	(void)room;
	memset(log, 0, (size_t)(t1 - t0) * LOG);
	*used = (size_t)(t1 - t0) * LOG;
	*t_done = t1;
	return advance(user, state, t0, t1, first);
}

static int replay(void *user, void *state, int64_t t0, int64_t t1, const void *log, int64_t log_t0,
	void *tape, size_t room, size_t *used, int64_t *t_done)
{
	(void)log;
	(void)log_t0;
	return record(user, state, t0, t1, 0, tape, room, used, t_done);
}

static int turn(void *user, const void *state, void *adjoint, double *loss)
{
	(void)user;
	assert_int_equal(*(const int64_t *)state, STEPS);
	*(int64_t *)adjoint = STEPS;
	*loss = 1;
	return 0;
}

static int backward(void *user, void *adjoint, int64_t t1, int64_t t0, const void *tape)
{
	struct slow *s = user;
	(void)tape;
	assert_int_equal(*(int64_t *)adjoint, t1);
	*(int64_t *)adjoint = t0;
	for (int64_t t = t1; t-- > t0;)
		now += (t < s->back ? 8e-6 : 2e-6);
	return 0;
}

static struct neap_pace sweep(
	struct slow *slow, const char *strategy, uint64_t memory, int64_t steps)
{
	struct neap__sweep_pace timed = {.seconds = seconds};
	struct neap_step_ops ops = {.size = sizeof ops,
		.advance = advance,
		.record = record,
		.turn = turn,
		.backward = backward,
		.advance_log = advance_log,
		.replay = replay,
		.log_bytes = LOG,
		.state_bytes = 64,
		.adjoint_bytes = 64,
		.tape_bytes = TAPE};
	struct neap_sweep_options o = {
		.size = sizeof o, .steps = steps, .memory = memory, .strategy = strategy};
	struct neap_sweep *s;
	struct neap_pace pace;
	double loss;
	neap__sweep_pace_wrap(&timed, &ops, slow);
	if (neap_sweep_create(&s, &ops, &timed, &o) < 0)
		fail_msg("%s", neap_detail());
	assert_int_equal(neap_sweep_touch(s), 0);
	for (int i = 0; i < 2; i++) { /* a second run starts afresh */
		neap__sweep_pace_start(&timed, steps);
		assert_int_equal(neap_sweep_run(s, NULL, NULL, &loss, NULL), 0);
		if (timed.range == 0)
			continue;
		/* A range may reach over the end of a range, and the last over two; calls with logs
		 * are not cut. */
		const struct neap__pace_marks *f = &timed.forward, *b = &timed.backward;
		int least = strcmp(strategy, "replay") == 0 ? 10 : 95;
		assert_in_range(f->marks, least, 101);
		assert_in_range(b->marks, least, 101);
		assert_int_equal(f->at[0], 0);
		assert_int_equal(f->at[f->marks - 1], steps);
		assert_int_equal(b->at[0], steps);
		assert_int_equal(b->at[b->marks - 1], 0);
	}
	neap__sweep_pace_now(&timed, &pace);
	neap_sweep_free(s);
	return pace;
}

static void slower_at_the_end(void **state)
{
	(void)state;
	struct slow slow = {.from = STEPS * 8 / 10, .to = STEPS, .back = STEPS * 2 / 10};
	struct neap_pace p = sweep(&slow, "bptt", 0, STEPS);
	assert_int_equal(p.range, 64);
	assert_true(p.forward_last > 1.5 * p.forward_first);
	assert_true(p.backward_last > 1.5 * p.backward_first);
}

static void slower_at_the_start(void **state)
{
	(void)state;
	struct slow slow = {.from = 0, .to = STEPS * 2 / 10, .back = 0};
	struct neap_pace p = sweep(&slow, "bptt", 0, STEPS);
	assert_true(p.forward_first > 1.5 * p.forward_last);
}

/* Long calls of advance are cut, recomputation counts where it happens. */
static void with_recomputation(void **state)
{
	(void)state;
	struct slow slow = {0};
	struct neap_pace p = sweep(&slow, "revolve", 100 * 64, STEPS);
	assert_true(slow.calls > 100);
	assert_true(isfinite(p.forward_first) && isfinite(p.backward_last));
	assert_true(p.backward_first + p.backward_last > p.forward_first + p.forward_last);
}

/* The first pass of a plan with logs is in calls of advance_log. */
static void with_logs(void **state)
{
	(void)state;
	struct slow slow = {.from = STEPS * 8 / 10, .to = STEPS, .back = STEPS * 2 / 10};
	struct neap_pace p = sweep(&slow, "replay", STEPS * LOG + 100 * TAPE, STEPS);
	assert_int_equal(p.range, 64);
	assert_true(slow.calls > 100);
	assert_true(p.forward_last > 1.5 * p.forward_first);
	assert_true(p.backward_last > 1.5 * p.backward_first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slower_at_the_end),
		cmocka_unit_test(slower_at_the_start),
		cmocka_unit_test(with_recomputation),
		cmocka_unit_test(with_logs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
