/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Costs that are measured: neap_sweep_calibrate fills them and leaves the model as it was; a sweep
 * that is given none times its first steps, and its gradient is the same to the bit.
 */
#include "chainmodel.h"
#include "store/fault_tier.h"
#include <math.h>
#include <unistd.h>

static int save_gathered(void *user, int (*write)(void *, const void *, size_t), void *to)
{
	struct model *m = user;
	int rc = write(to, m->dw, sizeof m->dw);
	return rc < 0 ? rc : write(to, m->passed, (size_t)m->steps * sizeof *m->passed);
}

static int load_gathered(void *user, int (*read)(void *, void *, size_t), void *from)
{
	struct model *m = user;
	int rc = read(from, m->dw, sizeof m->dw);
	return rc < 0 ? rc : read(from, m->passed, (size_t)m->steps * sizeof *m->passed);
}

static int ended(void *user, const void *state, int64_t t)
{
	const struct model *m = user;
	(void)state;
	return t == m->steps ? NEAP_ENDED : NEAP_GO_ON;
}

static void calibrated(void **state)
{
	(void)state;
	for (int kind = 0; kind < 6; kind++) {
		int unknown = kind % 2, tiers = kind >= 2;
		struct neap_tier *tier = NULL;
		struct model m;
		_Alignas(64) double x[WIDTH];
		model_init(&m, 400, 5);
		model_start(x);
		m.dw[3] = 7;
		struct neap_step_ops ops = model_ops(&m, 0);
		ops.grad_save = save_gathered;
		ops.grad_load = load_gathered;
		ops.ended = unknown ? ended : NULL;
		if (tiers)
			assert_int_equal(neap_tier_open_memory(&tier, 1 << 22), 0);
		struct neap_sweep_options o = {.size = sizeof o,
			.steps = m.steps,
			.memory = kind < 4 ? 20000 : 1 << 20,
			.tiers = &tier,
			.ntiers = tiers};
		if (neap_sweep_calibrate(&o, &ops, &m, x, 0.01) < 0)
			fail_msg("%d: %s", kind, neap_detail());
		assert_true(o.advance > 0 && o.record > 0 && o.backward > 0 && o.call >= 0);
		assert_true(o.slot_write > 0 && o.slot_read > 0 && o.advance < 1e-2);
		assert_true(m.dw[3] == 7 && m.dw[2] == 0);
		for (int64_t t = 0; t < m.steps; t++)
			assert_int_equal(m.passed[t], 0);
		assert_string_equal(m.broken, "");
		assert_true(o.steps == m.steps && o.ntiers == tiers);
		neap_tier_close(tier);
		model_fini(&m);
	}
}

static void refusals(void **state)
{
	struct model m;
	(void)state;
	model_init(&m, 50, 5);
	struct neap_step_ops ops = model_ops(&m, 0);
	struct neap_sweep_options o = {.size = sizeof o};
	assert_int_equal(neap_sweep_calibrate(&o, &ops, &m, NULL, 0.01), NEAP_EUSAGE);
	o.steps = 50;
	o.memory = 100;
	assert_int_equal(neap_sweep_calibrate(&o, &ops, &m, NULL, 0.01), NEAP_EINFEASIBLE);
	o.memory = 1 << 20;
	m.fail_at = 20;
	assert_int_equal(neap_sweep_calibrate(&o, &ops, &m, NULL, 0.01), -EDOM);
	assert_true(o.advance == 0);
	m.fail_at = 0;
	static const double no_time[] = {-1, NAN, INFINITY};
	for (int i = 0; i < 3; i++)
		assert_int_equal(neap_sweep_calibrate(&o, &ops, &m, NULL, no_time[i]), NEAP_EUSAGE);
	model_fini(&m);
}

/* A tier that is too small, or whose every transfer fails, is an error; nothing is filled in. */
static void bad_tiers(void **state)
{
	(void)state;
	static const struct neap__faults fails = {.fail_put = 1};
	for (int kind = 0; kind < 2; kind++) {
		struct model m;
		struct neap_tier *tier;
		model_init(&m, 400, 5);
		struct neap_step_ops ops = model_ops(&m, 0);
		assert_int_equal(neap_tier_open_memory(&tier, kind ? 1 << 22 : 256), 0);
		if (kind) {
			struct neap_tier *inner = tier;
			assert_int_equal(neap__fault_open(&tier, inner, &fails), 0);
		}
		struct neap_sweep_options o = {.size = sizeof o,
			.steps = 400,
			.memory = 20000,
			.tiers = &tier,
			.ntiers = 1};
		int rc = neap_sweep_calibrate(&o, &ops, &m, NULL, 0.01);
		assert_int_equal(rc, kind ? -EIO : NEAP_EINFEASIBLE);
		assert_true(o.advance == 0 && o.record == 0);
		neap_tier_close(tier);
		model_fini(&m);
	}
}

static uint64_t sum_of(const char *path)
{
	uint64_t sum = 0;
	FILE *file = fopen(path, "rb");
	assert_non_null(file);
	for (int c; (c = getc(file)) != EOF;)
		sum = (sum ^ (unsigned char)c) * UINT64_C(0x100000001b3);
	assert_int_equal(fclose(file), 0);
	return sum;
}

/* Records of an interrupted sweep stay as they are. */
static void kept_records(void **state)
{
	(void)state;
	enum { BYTES = 1 << 16 };
	char folder[] = "/tmp/neap-costs-XXXXXX", path[64];
	struct neap_file_options keep = {.size = sizeof keep, .in_memory = 1, .keep = 1};
	struct neap_tier *tier;
	struct model m;
	int64_t ticket;
	unsigned char *data = aligned_alloc(4096, BYTES);
	model_init(&m, 400, 5);
	struct neap_step_ops ops = model_ops(&m, 0);
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/neap.slow", folder);
	assert_int_equal(neap_tier_open_file(&tier, folder, &keep), 0);
	assert_int_equal(neap_tier_format(tier, BYTES, 8, NULL), 0);
	memset(data, 5, BYTES);
	assert_int_equal(neap_tier_put(tier, 3, 3, data, BYTES, &ticket), 0);
	assert_int_equal(neap_tier_wait(tier, ticket), 0);
	assert_int_equal(neap__tier_adopt(tier, 7), 0);
	neap_tier_close(tier);
	uint64_t before = sum_of(path);

	assert_int_equal(neap_tier_open_file(&tier, folder, &keep), 0);
	struct neap_sweep_options o = {
		.size = sizeof o, .steps = 400, .memory = 1 << 22, .tiers = &tier, .ntiers = 1};
	assert_int_equal(neap_sweep_calibrate(&o, &ops, &m, NULL, 0.01), 0);
	assert_true(o.advance > 0 && sum_of(path) == before);
	neap_tier_close(tier);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(rmdir(folder), 0);
	free(data);
	model_fini(&m);
}

/* Seconds that are no numbers, or below 0, are refused by name. */
static void no_costs(void **state)
{
	static const double bad[] = {-1, NAN, INFINITY};
	struct model m;
	(void)state;
	model_init(&m, 50, 5);
	struct neap_step_ops ops = model_ops(&m, 0);
	for (size_t i = 0; i < 3; i++)
		for (int field = 0; field < 7; field++) {
			struct neap_sweep_options o = {.size = sizeof o, .steps = 50};
			double *const at[] = {&o.advance, &o.record, &o.backward, &o.call,
				&o.replay, &o.slot_write, &o.slot_read};
			struct neap_sweep *sweep;
			*at[field] = bad[i];
			assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), NEAP_EUSAGE);
			assert_non_null(strstr(neap_detail(), "seconds"));
		}
	model_fini(&m);
}

/* Without costs the first run beside a tier measures, the second does not. */
static void measures_itself(void **state)
{
	(void)state;
	for (int kind = 0; kind < 4; kind++) {
		struct neap_tier *tier;
		struct neap_sweep *sweep;
		struct gradient got;
		struct model m;
		model_init(&m, kind < 2 ? 3000 : 30, 5);
		struct gradient want = reference(&m);
		struct neap_step_ops ops = model_ops(&m, 0);
		ops.ended = kind % 2 ? ended : NULL;
		assert_int_equal(neap_tier_open_memory(&tier, 1 << 22), 0);
		struct neap_sweep_options o = {.size = sizeof o,
			.steps = m.steps,
			.memory = 6000,
			.tiers = &tier,
			.ntiers = 1};
		assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), 0);
		for (int run = 0; run < 2; run++) {
			struct neap_sweep_stats stats = {.size = sizeof stats};
			if (run_model(sweep, &m, &got, &stats) < 0 || m.broken[0])
				fail_msg("%d: %s %s", kind, neap_detail(), m.broken);
			assert_memory_equal(&got, &want, sizeof got);
			assert_int_equal(stats.measured_steps > 0, run == 0);
			assert_true(stats.measured_steps <= m.steps);
			assert_int_equal(stats.backward_steps, m.steps);
			assert_true(stats.peak_measured <= 6000);
		}
		assert_true(neap_sweep_problem(sweep)->chain.advance < 1e-2);
		neap_sweep_free(sweep);
		neap_tier_close(tier);
		model_fini(&m);
	}
}

/* A plan whose calls have a cost makes few of them, and counts them as the run makes them. */
static void calls_are_counted(void **state)
{
	static const char *const names[] = {"revolve", "multistage", "mixed", "standard", "auto"};
	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		struct neap_sweep_stats stats;
		struct neap_sweep *sweep;
		struct gradient got;
		struct model m;
		model_init(&m, 400, 5);
		struct gradient want = reference(&m);
		struct neap_step_ops ops = model_ops(&m, 0);
		struct neap_sweep_options o = {.size = sizeof o,
			FIXED_COSTS,
			.steps = m.steps,
			.strategy = names[i],
			.memory = 16 << 10,
			.call = 0.5};
		assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), 0);
		const struct neap_plan *plan = neap_sweep_plan(sweep);
		assert_int_equal(run_model(sweep, &m, &got, &stats), 0);
		assert_string_equal(m.broken, "");
		assert_memory_equal(&got, &want, sizeof got);
		int64_t calls = stats.advance_calls + stats.record_calls + stats.backward_calls;
		double steps = (double)plan->advance_steps + 3 * 400.0;
		double counted = (plan->makespan - steps) / o.call;
		/* 4 groups; their pieces end where t is a multiple of 64. */
		assert_true(calls <= 3 * 4 + 2 * (400 / 64));
		assert_true(fabs(counted - (double)calls) <= 3);
		neap_sweep_free(sweep);
		model_fini(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_are_counted),
		cmocka_unit_test(calibrated),
		cmocka_unit_test(refusals),
		cmocka_unit_test(bad_tiers),
		cmocka_unit_test(kept_records),
		cmocka_unit_test(no_costs),
		cmocka_unit_test(measures_itself),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
