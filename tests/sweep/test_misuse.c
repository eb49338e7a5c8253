/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls at the wrong time: sweeps, tiers, schedules, chains of unknown length and journals that are
 * called from their own callbacks, from two threads, twice, and in the wrong order. Every call
 * answers success or a code with a line, every run that succeeds has the right gradient, and
 * nothing is corrupted, which the sanitizers see.
 *   test_misuse [ROUNDS]     of random calls; NEAP_SEED
 */
#include "smallmodel.h"

#include "base/philox.h"
#include "sys/clock.h"

#include <neap/machine.h>
#include <pthread.h>

static uint64_t rounds = 40;

static struct neap_sweep_options options(struct neap_tier *const *tiers, int ntiers, int kind)
{
	return (struct neap_sweep_options){.size = sizeof(struct neap_sweep_options),
		.memory = (kind == SMALL_JOIN ? 2048 : 1024) + 16384 * (uint64_t)ntiers,
		.advance = 1e-6,
		.record = 1e-6,
		.backward = 1e-6,
		.tiers = tiers,
		.ntiers = ntiers};
}

static void refused(int rc)
{
	if (rc != NEAP_EUSAGE || !strstr(neap_detail(), "in use by a call that has not returned"))
		fail_msg("%d, not refused: %s", rc, rc < 0 ? neap_detail() : "");
}

static int replan(
	const struct small_sweep *s, struct small *m, struct neap_tier *const *tiers, int ntiers)
{
	struct neap_step_ops ops = small_ops();
	struct neap_sweep_options o = options(tiers, ntiers, s->kind);
	o.steps = SMALL_STAGES;
	o.interrupted = small_interrupted;
	o.interrupted_user = m;
	if (s->kind == SMALL_ONLINE)
		ops.ended = small_ended;
	return neap_sweep_replan(s->steps, &ops, &o);
}

/* What a journal keeps of a model that gathers nothing. */
static int save_nothing(void *user, int (*write)(void *, const void *, size_t), void *to)
{
	(void)user;
	return write(to, "", 1);
}

static int load_nothing(void *user, int (*read)(void *, void *, size_t), void *from)
{
	char byte;
	(void)user;
	return read(from, &byte, 1);
}

/* What is called in every callback, or by another thread while one lasts. */
struct intruder {
	struct small_sweep sweep;
	struct neap_tier *tier;
	int another_thread, calls;
};

static void *intrude(void *user)
{
	struct small *m = user;
	struct intruder *x = m->inside_user;
	struct neap_tier_spec spec;
	double dx[2 * NUMBERS], loss;
	char bytes[STATE];
	int64_t ticket;
	x->calls++;
	refused(small_run(&x->sweep, dx, &loss));
	small_free(&x->sweep); /* does nothing */
	if (x->sweep.steps) {
		uint64_t mapped = neap_sweep_mapped(x->sweep.steps);
		refused(replan(&x->sweep, m, &x->tier, 1));
		refused(neap_sweep_touch(x->sweep.steps));
		neap_sweep_release(x->sweep.steps);
		neap_sweep_watch(x->sweep.steps, 0);
		assert_true(neap_sweep_mapped(x->sweep.steps) == mapped);
		assert_true(neap_sweep_foreseen(x->sweep.steps) >= 0);
		assert_true(neap_sweep_spared(x->sweep.steps) == 0);
		assert_non_null(neap_sweep_plan(x->sweep.steps));
	}
	refused(neap_tier_format(x->tier, STATE, 4, NULL));
	refused(neap_tier_format_tapes(x->tier, STATE, 4, 0));
	refused(neap_tier_put(x->tier, 0, 1, bytes, STATE, &ticket));
	refused(neap_tier_get(x->tier, 0, 1, bytes, STATE, &ticket));
	refused(neap_tier_wait(x->tier, 0));
	refused(neap_tier_done(x->tier, 0));
	refused(neap_tier_forget(x->tier, 0));
	refused(neap_tier_measure(x->tier, STATE, 1e-3));
	neap_tier_lend(x->tier, 4096);
	neap_tier_set_patience(x->tier, 1e-9);
	neap_tier_describe(x->tier, STATE, &spec);
	neap_tier_set_rates(x->tier, spec.write_rate, spec.read_rate, 0);
	return NULL;
}

static void intrude_once(struct small *m)
{
	struct intruder *x = m->inside_user;
	pthread_t thread;
	if (!x->another_thread) {
		intrude(m);
		return;
	}
	assert_int_equal(pthread_create(&thread, NULL, intrude, m), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static void in_use(int another_thread)
{
	for (int kind = 0; kind < SMALL_KINDS; kind++) {
		struct intruder x = {.another_thread = another_thread};
		struct small m;
		double dx[2 * NUMBERS], loss;
		assert_int_equal(neap_tier_open_memory(&x.tier, 1 << 20), 0);
		neap_tier_set_rates(x.tier, 1e9, 1e9, 0);
		struct neap_sweep_options o = options(&x.tier, 1, kind);
		small_init(&m);
		int rc = small_create(&x.sweep, kind, &m, &o);
		if (rc < 0)
			fail_msg("%d: %s", kind, neap_detail());
		for (int again = 0; again < 2; again++) {
			m.inside = intrude_once;
			m.inside_user = &x;
			rc = small_run(&x.sweep, dx, &loss);
			if (rc < 0)
				fail_msg("%d: %s", kind, neap_detail());
			assert_true(small_right(&x.sweep, dx));
		}
		assert_true(x.calls > 2 * SMALL_STAGES / 10);
		small_free(&x.sweep);
		neap_tier_close(x.tier);
	}
}

static void in_callbacks(void **state)
{
	(void)state;
	in_use(0);
}

static void in_another_thread(void **state)
{
	(void)state;
	in_use(1);
}

/* A callback runs a second sweep, over the tier of the first, which it may not have. */
static void run_other(struct small *m)
{
	const struct small_sweep *other = m->inside_user;
	double dx[2 * NUMBERS], loss;
	refused(small_run(other, dx, &loss));
}

static void one_tier_two_sweeps(void **state)
{
	(void)state;
	for (int kind = 0; kind < SMALL_KINDS; kind++) {
		struct small_sweep first, second;
		struct neap_tier *tier;
		struct small m, quiet;
		double dx[2 * NUMBERS], loss;
		assert_int_equal(neap_tier_open_memory(&tier, 1 << 20), 0);
		struct neap_sweep_options o = options(&tier, 1, kind);
		small_init(&m);
		small_init(&quiet);
		assert_int_equal(small_create(&first, kind, &m, &o), 0);
		assert_int_equal(small_create(&second, kind, &quiet, &o), 0);
		m.inside = run_other;
		m.inside_user = &second;
		assert_int_equal(small_run(&first, dx, &loss), 0);
		assert_true(small_right(&first, dx));
		assert_int_equal(small_run(&second, dx, &loss), 0);
		assert_true(small_right(&second, dx));
		small_free(&first);
		small_free(&second);
		neap_tier_close(tier);
	}
}

static void close_tier(struct small *m)
{
	struct neap_tier **tier = m->inside_user;
	if (*tier)
		neap_tier_close(*tier);
	*tier = NULL;
}

/* Tiers are closed while sweeps know them: by a callback, or before the sweeps are freed. */
static void tiers_first(void **state)
{
	(void)state;
	for (int kind = 0; kind < SMALL_KINDS; kind++)
		for (int way = 0; way < 4; way++) {
			int inside = way % 2,
			    uncosted = way / 2; /* its run plans again, once it has costs */
			struct small_sweep s;
			struct neap_tier *tier;
			struct small m;
			double dx[2 * NUMBERS], loss;
			int rc = kind % 2 ? neap_tier_open_memory(&tier, 1 << 20)
					  : neap_tier_open_file(&tier, "/var/tmp", NULL);
			assert_int_equal(rc, 0);
			struct neap_sweep_options o = options(&tier, 1, kind);
			if (uncosted)
				o.advance = o.record = o.backward = 0;
			small_init(&m);
			assert_int_equal(small_create(&s, kind, &m, &o), 0);
			m.inside = inside ? close_tier : NULL;
			m.inside_user = &tier;
			assert_int_equal(small_run(&s, dx, &loss), 0);
			assert_true(small_right(&s, dx));
			if (!inside)
				neap_tier_close(tier);
			assert_int_equal(small_run(&s, dx, &loss), NEAP_EUSAGE);
			assert_non_null(strstr(neap_detail(), "was closed"));
			small_free(&s);
		}
}

struct format_calls {
	struct neap_tier *tier;
	int refused, done;
};

static void format_tier(struct small *m)
{
	struct format_calls *calls = m->inside_user;
	if (neap_tier_format(calls->tier, 64, 2, NULL) < 0)
		calls->refused++;
	else
		calls->done++;
}

/* A tier whose rates are measured is not for callbacks, and stays if one of them closes it. */
static void calibrated_tiers(void **state)
{
	(void)state;
	for (int closing = 0; closing < 2; closing++) {
		struct neap_tier *tier, *given;
		struct small m;
		struct neap_step_ops ops = small_ops();
		assert_int_equal(neap_tier_open_memory(&tier, 1 << 20), 0);
		given = tier;
		struct format_calls calls = {.tier = tier};
		struct neap_sweep_options o = options(&given, 1, 0);
		o.steps = 200;
		o.memory = 1 << 20;
		small_init(&m);
		m.inside = closing ? close_tier : format_tier;
		m.inside_user = closing ? (void *)&tier : (void *)&calls;
		int rc = neap_sweep_calibrate(&o, &ops, &m, NULL, 0.02);
		if (closing) {
			assert_int_equal(rc, NEAP_EUSAGE); /* closed before its turn came */
			assert_non_null(strstr(neap_detail(), "was closed"));
			continue;
		}
		assert_int_equal(rc, 0);
		assert_true(calls.refused > 0);
		assert_int_equal(neap_tier_format(tier, 64, 2, NULL), 0);
		neap_tier_close(tier);
	}
}

static void wrong_tiers(void **state)
{
	struct neap_tier *tiers[2] = {NULL, NULL};
	struct small_sweep s;
	struct small m;
	(void)state;
	small_init(&m);
	for (int kind = 0; kind < SMALL_KINDS; kind++) {
		assert_int_equal(neap_tier_open_memory(&tiers[0], 1 << 20), 0);
		struct neap_sweep_options o = options(tiers, 2, kind);
		tiers[1] = NULL;
		assert_int_equal(small_create(&s, kind, &m, &o), NEAP_EUSAGE);
		assert_non_null(strstr(neap_detail(), "tiers[1] of 2 is NULL"));
		tiers[1] = tiers[0];
		assert_int_equal(small_create(&s, kind, &m, &o), NEAP_EUSAGE);
		assert_non_null(strstr(neap_detail(), "tiers[0] and tiers[1] are the same tier"));
		neap_tier_close(tiers[0]);
	}
}

/* A sweep lends its tier memory of its arena, which is unmapped when it is freed. */
static void tier_after_sweep(void **state)
{
	(void)state;
	for (int kind = 0; kind < SMALL_KINDS; kind++) {
		struct small_sweep s;
		struct neap_tier *tier;
		struct small m;
		double dx[2 * NUMBERS], loss, numbers[NUMBERS] = {0};
		int64_t ticket;
		assert_int_equal(neap_tier_open_file(&tier, "/var/tmp", NULL), 0);
		struct neap_sweep_options o = options(&tier, 1, kind);
		small_init(&m);
		assert_int_equal(small_create(&s, kind, &m, &o), 0);
		assert_int_equal(small_run(&s, dx, &loss), 0);
		small_free(&s);
		assert_int_equal(neap_tier_put(tier, 0, 1, numbers, STATE, &ticket), NEAP_EUSAGE);
		assert_non_null(strstr(neap_detail(), "Call neap_tier_format first"));
		assert_int_equal(neap_tier_format(tier, STATE, 1, NULL), 0);
		assert_int_equal(neap_tier_put(tier, 0, 1, numbers, STATE, &ticket), 0);
		assert_int_equal(neap_tier_wait(tier, ticket), 0);
		neap_tier_close(tier);
	}
}

/* A new plan for a sweep with a journal, and a model that cannot save what it gathered. */
static void journal_without_gathering(void **state)
{
	struct neap_step_ops ops = small_ops();
	struct neap_sweep_options o = options(NULL, 0, SMALL_STEPS);
	struct neap_sweep *sweep;
	struct small m;
	char folder[] = "/dev/shm/neap-misuse-XXXXXX";
	double loss;
	(void)state;
	small_init(&m);
	assert_non_null(mkdtemp(folder));
	ops.grad_save = save_nothing;
	ops.grad_load = load_nothing;
	o.steps = SMALL_STAGES;
	o.journal = folder;
	o.journal_in_memory = 1;
	assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), 0);
	ops.grad_save = NULL;
	assert_int_equal(neap_sweep_replan(sweep, &ops, &o), NEAP_EUSAGE);
	assert_non_null(strstr(neap_detail(), "a journal requires grad_save and grad_load"));
	assert_int_equal(neap_sweep_run(sweep, NULL, NULL, &loss, NULL), 0);
	neap_sweep_free(sweep);
	assert_int_equal(rmdir(folder), 0);
}

/* A schedule of one's own that asks itself, and closes itself. */
static int ask_itself(void *user, struct neap_action *action)
{
	struct neap_schedule **schedule = user;
	refused(neap_schedule_next(*schedule, action));
	neap_schedule_close(*schedule);
	return 0;
}

static void schedules(void **state)
{
	struct neap_schedule *schedule;
	struct neap_problem p = NEAP_PROBLEM_INIT;
	struct neap_verdict v = {.size = sizeof v};
	struct neap_action action;
	(void)state;
	assert_int_equal(neap_schedule_wrap(&schedule, ask_itself, NULL, &schedule), 0);
	assert_int_equal(neap_schedule_next(schedule, &action), 0);
	p.chain.steps = 3;
	p.chain.state = p.chain.tape = p.chain.adjoint = 64;
	assert_true(neap_verify(&v, &p, schedule) < 0);
	neap_schedule_close(schedule);
}

#include "random_misuse.h"

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_callbacks),
		cmocka_unit_test(in_another_thread),
		cmocka_unit_test(one_tier_two_sweeps),
		cmocka_unit_test(tiers_first),
		cmocka_unit_test(calibrated_tiers),
		cmocka_unit_test(wrong_tiers),
		cmocka_unit_test(tier_after_sweep),
		cmocka_unit_test(journal_without_gathering),
		cmocka_unit_test(schedules),
		cmocka_unit_test(random_calls),
	};
	if (argc > 1)
		rounds = strtoull(argv[1], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
