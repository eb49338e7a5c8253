/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sweeps in the memory of the fake device: the gradient of the host to the last bit, with every
 * plan, tier and order of the device's work; what is noticed if a wait is missing, a call of the
 * driver fails, or a record is lost.
 */
#include "toy_model.h"
#include "store/fault_tier.h"

#include <errno.h>

#define FILES "/var/tmp"

static const struct toy_plan plans[] = {
	{"bptt", 0, NULL},
	{"revolve", 6 << 10, NULL},
	{"auto", 20 << 10, NULL},
	{"double", 24 << 10, "pinned:1M"},
	{"async", 24 << 10, "pinned:1M"},
	{"stream", 40 << 10, "pinned:1M"},
	{"auto", 30 << 10, "pinned:1M"},
	{"auto", 24 << 10, "pinned:4K," FILES},
	{"double", 24 << 10, FILES},
	{"stream", 40 << 10, FILES},
	{"async", 24 << 10, "mem:1M"},
};
enum { PLANS = sizeof plans / sizeof plans[0] };

static int is_right(const struct toy_run *run)
{
	const struct toy_gradient want = toy_reference();
	return run->got.loss == want.loss && memcmp(run->got.dx, want.dx, sizeof want.dx) == 0 &&
	       memcmp(run->got.dw, want.dw, sizeof want.dw) == 0;
}

/* Runs a plan, with the driver as set before; 1: without an error, with the right gradient. */
static int runs_well(const struct toy_plan *plan, struct toy_run *run)
{
	int rc = toy_run(plan, run);
	assert_int_equal(fake()->alive, 0);
	if (rc < 0)
		assert_true(neap_detail()[0]);
	return rc == 0 && is_right(run);
}

static void bits_are_those_of_the_host(void **state)
{
	(void)state;
	for (int i = 0; i < PLANS; i++)
		for (uint64_t seed = 0; seed < 12; seed++) {
			struct toy_run run = {0};
			fake_call("fake_driver_reset", seed);
			if (!runs_well(&plans[i], &run))
				fail_msg("plan %d, seed %d: %s", i, (int)seed, neap_detail());
			assert_int_equal(run.stats.recoveries, 0);
			assert_int_equal(
				!plans[i].tiers, run.stats.written[0] + run.stats.written[1] == 0);
		}
}

/*
 * 1 if something is wrong, or was lost, without a wait, for some order of the device's work. The
 * background thread may wait for the next copy on a stream before the model goes on: without the
 * waits from that number on.
 */
static int is_noticed(const struct toy_plan *plan, int kind, int64_t number)
{
	/* A background thread that is slow may hide a wait for many orders. */
	uint64_t orders = kind == FAKE_STREAM_WAIT_EVENT ? 11 : 80;
	for (uint64_t seed = 0; seed < orders; seed++) {
		struct toy_run run = {0};
		fake_call("fake_driver_reset", seed);
		fake()->ignored_wait = kind;
		fake()->ignored_number = number;
		fake()->ignored_count = kind == FAKE_EVENT_SYNCHRONIZE ? 1000 : 1;
		if (!runs_well(plan, &run) || run.stats.recoveries > 0)
			return 1;
	}
	return 0;
}

/*
 * A wait of a stream is not noticed if the pending work happens not to use the bytes that are
 * copied: test_device.c has one of each kind that does.
 */
static void every_wait_is_needed(void **state)
{
	const int with_tiers[] = {3, 5, 6, 7, 8};
	(void)state;
	for (size_t i = 0; i < sizeof with_tiers / sizeof with_tiers[0]; i++) {
		const struct toy_plan *plan = &plans[with_tiers[i]];
		struct toy_run run = {0};
		fake_call("fake_driver_reset", 0);
		assert_true(runs_well(plan, &run));
		const struct fake_driver whole = *fake();
		for (int kind = 0; kind < FAKE_WAITS; kind++) {
			int pending = 0, noticed = 0;
			for (int64_t k = 1; k <= whole.waits[kind]; k++) {
				/* x0 does not change until its copy is done. */
				if (!whole.pending[kind][k] ||
					(kind == FAKE_STREAM_SYNCHRONIZE && k == 2))
					continue;
				pending++;
				noticed += is_noticed(plan, kind, k);
			}
			assert_true(noticed > 0);
			if (kind != FAKE_STREAM_WAIT_EVENT)
				assert_int_equal(noticed, pending);
		}
	}
}

/* Every call of the driver fails once: an error, or a record that is recomputed. */
static void every_call_fails(void **state)
{
	const int some[] = {0, 3, 5, 7};
	(void)state;
	for (size_t i = 0; i < sizeof some / sizeof some[0]; i++) {
		int64_t failed = 0, calls;
		struct toy_run whole = {0};
		fake_call("fake_driver_reset", 0);
		assert_true(runs_well(&plans[some[i]], &whole));
		calls = fake()->calls;
		for (int64_t k = 1; k <= calls; k++) {
			struct toy_run run = {0};
			fake_call("fake_driver_reset", 0);
			fake()->fail_call = k;
			fake()->fail_code = k % 2 ? 999 : 2;
			int rc = toy_run(&plans[some[i]], &run);
			if (fake()->alive)
				fail_msg("plan %d, call %d", some[i], (int)k);
			if (rc < 0)
				assert_true(strstr(neap_detail(), "CUDA error") ||
					    strstr(neap_detail(), "bytes are free") ||
					    strstr(neap_detail(), "neap_memory_ops"));
			else
				assert_true(is_right(&run));
			failed += rc < 0;
		}
		assert_true(failed > calls / 4);
	}
}

/* Work of the device fails: the wait for it does, and all later ones. */
static void every_job_fails(void **state)
{
	(void)state;
	for (int64_t k = 1, jobs = 1; k <= jobs; k++) {
		struct toy_run run = {0};
		fake_call("fake_driver_reset", 0);
		fake()->fail_job = k;
		int rc = toy_run(&plans[6], &run);
		jobs = fake()->jobs > jobs ? fake()->jobs : jobs;
		assert_int_equal(rc, -EIO);
		assert_true(strstr(neap_detail(), "CUDA error 719") != NULL);
		assert_int_equal(fake()->alive, 0);
	}
}

static void memory_runs_out(void **state)
{
	const struct toy_plan plan = {"bptt", 0, NULL};
	struct toy_run run = {0};
	(void)state;
	fake_call("fake_driver_reset", 0);
	fake()->total_bytes = NEAP__SCRATCH + 3 * 4096 + 40000;
	assert_int_equal(toy_run(&plan, &run), -ENOMEM);
	assert_true(strstr(neap_detail(), "61440 bytes of device memory were requested") != NULL);
	assert_true(strstr(neap_detail(), "and 40000 of 1100864 bytes are free") != NULL);
	assert_int_equal(fake()->alive, 0);
}

/* Faults of a tier in pinned memory, or of one that is behind pinned pieces. */
static int open_faulty_pinned(
	struct neap_device *device, struct neap_tier **tiers, int *count, void *user)
{
	struct neap_tier *inner;
	NEAP_TRY(neap__pinned_open(&inner, device, 1 << 20));
	*count = 1;
	return neap__fault_open(tiers, inner, user);
}

static int open_faulty_inner(
	struct neap_device *device, struct neap_tier **tiers, int *count, void *user)
{
	struct neap_tier *inner, *faulty;
	NEAP_TRY(neap_tier_open_memory(&inner, 1 << 20));
	NEAP_TRY(neap__fault_open(&faulty, inner, user));
	*count = 1;
	return neap__bounce_open(tiers, device, faulty);
}

static void bad_records_are_recomputed(void **state)
{
	/* clang-format off */
	struct neap__faults faults[] = {{.lose_put = 2}, {.fail_put = 1, .at_once = 1}, {.fail_get = 1}, {.hang_put = 2},
		{.hang_get = 1}, {.gone_after = 3}, {.corrupt_put = 2}, {.truncate_put = 1}};
	/* clang-format on */
	(void)state;
	for (int i = 0; i < 16; i++) {
		int behind = i / 8;
		int64_t recoveries = 0;
		if (!behind && (faults[i % 8].corrupt_put || faults[i % 8].truncate_put))
			continue; /* a tier in pinned memory cannot be damaged by fault_tier.c */
		for (int p = 3; p < 7; p++) {
			struct toy_run run = {
				.open = behind ? open_faulty_inner : open_faulty_pinned,
				.open_user = &faults[i % 8],
				.patience = 0.01};
			if (p == 4) /* has too many records that hang */
				continue;
			fake_call("fake_driver_reset", 0);
			if (!runs_well(&plans[p], &run))
				fail_msg("faults %d, plan %d: %s", i, p, neap_detail());
			recoveries += run.stats.recoveries;
		}
		assert_true(recoveries > 0);
	}
}

static void damage(void)
{
	fake_call("fake_driver_damage_pinned", 5 * TOY_BYTES + 7);
}

static void a_changed_byte_is_noticed(void **state)
{
	const struct toy_plan *plan = &plans[4]; /* keeps a record of each state */
	struct toy_run run = {.at_turn = damage};
	(void)state;
	fake_call("fake_driver_reset", 0);
	assert_true(runs_well(plan, &run));
	assert_int_equal(run.stats.recoveries, 1);
}

static void a_tier_is_of_one_memory(void **state)
{
	struct neap_tier *tier;
	struct neap_sweep *sweep;
	struct toy toy;
	int count;
	(void)state;
	fake_call("fake_driver_reset", 0);
	assert_int_equal(toy_open(&toy), 0);
	assert_int_equal(neap_device_tiers_open(toy.device, &tier, &count, "pinned:1M", NULL), 0);
	struct neap_step_ops ops = toy_ops(&toy);
	const struct neap_sweep_options options = {.size = sizeof options,
		.steps = TOY_STEPS,
		.memory = 24 << 10,
		.tiers = &tier,
		.ntiers = 1,
		.advance = 1,
		.record = 1,
		.backward = 1};
	ops.memory = NULL;
	assert_int_equal(neap_sweep_create(&sweep, &ops, &toy, &options), NEAP_EUSAGE);
	assert_true(strstr(neap_detail(), "tiers[0] (pinned memory of cuda:0)") != NULL);
	neap_tier_close(tier);
	toy_close(&toy);
	assert_int_equal(fake()->alive, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bits_are_those_of_the_host),
		cmocka_unit_test(every_wait_is_needed),
		cmocka_unit_test(every_call_fails),
		cmocka_unit_test(every_job_fails),
		cmocka_unit_test(memory_runs_out),
		cmocka_unit_test(bad_records_are_recomputed),
		cmocka_unit_test(a_changed_byte_is_noticed),
		cmocka_unit_test(a_tier_is_of_one_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
