/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fork while a tier is in use: in the child every call fails at once and the tier's memory can
 * be given back; the parent goes on as if nothing had been.
 */
#include "../test.h"

#include <neap/sweep.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * Sanitizers leave their own locks as a fork finds them: with them, transfers are over before the
 * process forks, and its child starts no thread.
 */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

enum { BYTES = 1 << 20, PLACES = 8 };

static unsigned char from[BYTES], into[BYTES];

/* Runs in the child: the number of the first thing that is wrong, 0 where all is as it should. */
static int child(struct neap_tier *tier, int64_t in_flight)
{
	struct neap_span span = {from, 100};
	struct neap_tier_spec spec;
	int64_t ticket;
	const int answers[] = {neap_tier_put(tier, 0, 1, from, BYTES, &ticket),
		neap_tier_get(tier, 0, 1, into, BYTES, &ticket), neap_tier_wait(tier, in_flight),
		neap_tier_wait_for(tier, in_flight, 1), neap_tier_done(tier, in_flight),
		neap_tier_put_spans(tier, 0, 1, &span, 1, &ticket),
		neap_tier_get_spans(tier, 0, 1, &span, 1, &ticket),
		neap_tier_put_tapes(tier, 0, 1, &span, 1, &ticket),
		neap_tier_get_tapes(tier, 0, 1, &span, 1, &ticket), neap_tier_forget(tier, 0),
		neap_tier_format(tier, BYTES, PLACES, NULL),
		neap_tier_format_tapes(tier, BYTES, PLACES, 0), neap_tier_holds_staging(tier),
		neap_tier_measure(tier, BYTES, 0.1)};
	for (int i = 0; i < (int)(sizeof answers / sizeof *answers); i++)
		if (answers[i] != NEAP_EFORKED)
			return i + 1;
	if (!strstr(neap_detail(), "belongs to the process that forked"))
		return 100;
	neap_tier_set_patience(tier, 1);
	neap_tier_lend(tier, 4096);
	neap_tier_describe(tier, BYTES, &spec);
	if (in_flight & 1)
		neap_tier_close(tier);
	else
		neap_tier_abandon(tier);
	/* A tier of its own works. */
	if (SANITIZED)
		return 0;
	if (neap_tier_open_memory(&tier, NEAP_INFINITE) < 0 ||
		neap_tier_format(tier, BYTES, PLACES, NULL) < 0 ||
		neap_tier_put(tier, 0, 1, from, BYTES, &ticket) < 0 ||
		neap_tier_wait(tier, ticket) < 0)
		return 101;
	neap_tier_close(tier);
	return 0;
}

static void forks(const char *kind)
{
	struct neap_tier *tier;
	int64_t tickets[PLACES];
	int count = 1;
	for (size_t i = 0; i < BYTES; i++)
		from[i] = (unsigned char)(i * 40503u >> 3);
	assert_int_equal(neap_tiers_open(&tier, &count, kind, NULL), 0);
	assert_int_equal(neap_tier_format(tier, BYTES, PLACES, NULL), 0);
	for (int i = 0; i < PLACES; i++)
		assert_int_equal(neap_tier_put(tier, i, 1, from, BYTES, &tickets[i]), 0);
	for (int i = 0; i < PLACES && SANITIZED; i++)
		while (neap_tier_done(tier, tickets[i]) == 0)
			;
	for (int round = 0; round < 4; round++) {
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			alarm(20);
			_exit(child(tier, tickets[round]));
		}
		int status;
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		assert_int_equal(WEXITSTATUS(status), 0);
	}
	for (int i = 0; i < PLACES; i++) {
		assert_int_equal(neap_tier_wait(tier, tickets[i]), 0);
		assert_int_equal(neap_tier_get(tier, i, 1, into, BYTES, &tickets[i]), 0);
		assert_int_equal(neap_tier_wait(tier, tickets[i]), 0);
		assert_memory_equal(from, into, BYTES);
	}
	neap_tier_abandon(tier);
}

static void memory(void **state)
{
	(void)state;
	forks("mem:64M");
}

static void file(void **state)
{
	(void)state;
	forks("/var/tmp");
}

static int move(void *user, void *state, int64_t t0, int64_t t1, int first)
{
	(void)user;
	(void)first;
	*(int64_t *)state += t1 - t0;
	return 0;
}

static int record(void *user, void *state, int64_t t0, int64_t t1, int first, void *tape,
	size_t room, size_t *used, int64_t *t_done)
{
	int64_t steps = (int64_t)(room / 8) < t1 - t0 ? (int64_t)(room / 8) : t1 - t0;
	memset(tape, 0, (size_t)steps * 8);
	*used = (size_t)steps * 8;
	*t_done = t0 + steps;
	return move(user, state, t0, t0 + steps, first);
}

static int turn(void *user, const void *state, void *adjoint, double *loss)
{
	(void)user;
	*loss = (double)*(const int64_t *)state;
	*(int64_t *)adjoint = 0;
	return 0;
}

static int back(void *user, void *adjoint, int64_t t1, int64_t t0, const void *tape)
{
	(void)user;
	(void)tape;
	*(int64_t *)adjoint += t1 - t0;
	return 0;
}

/* A sweep over a tier of the parent is refused as a whole. */
static void sweep(void **state)
{
	struct neap_step_ops ops = {.size = sizeof ops,
		.advance = move,
		.record = record,
		.turn = turn,
		.backward = back,
		.state_bytes = 8,
		.adjoint_bytes = 8,
		.tape_bytes = 8};
	struct neap_tier *tier;
	struct neap_sweep *run;
	double loss = 0;
	(void)state;
	assert_int_equal(neap_tier_open_memory(&tier, NEAP_INFINITE), 0);
	struct neap_sweep_options o = {
		.size = sizeof o, .ntiers = 1, .tiers = &tier, .steps = 500, .memory = 2048};
	assert_int_equal(neap_sweep_create(&run, &ops, NULL, &o), 0);
	assert_int_equal(neap_sweep_run(run, NULL, NULL, &loss, NULL), 0);
	pid_t pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(20);
		int answer = neap_sweep_run(run, NULL, NULL, &loss, NULL);
		neap_sweep_free(run);
		neap_tier_abandon(tier);
		_exit(answer == NEAP_EFORKED ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(neap_sweep_run(run, NULL, NULL, &loss, NULL), 0);
	assert_true(loss == 500);
	neap_sweep_free(run);
	neap_tier_close(tier);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(memory),
		cmocka_unit_test(file),
		cmocka_unit_test(sweep),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
