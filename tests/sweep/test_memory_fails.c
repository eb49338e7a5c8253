/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arenas in other memory (neap_memory_ops) whose functions fail: the run that meets the failure
 * returns it, the next run is as if there had been none, and all memory is given back.
 */
#include "chainmodel.h"
#include "random_stages.h"

#include "base/checked.h"
#include "store/fault_tier.h"

/* Memory that counts the calls of its functions; the call number `fail_at` fails. */
struct failing {
	int64_t calls, fail_at;
	int64_t maps, mapped, full; /* calls of map; arenas that are there; 1: map finds no room */
};

static int answer(struct failing *f)
{
	return ++f->calls == f->fail_at ? -EIO : 0;
}

static void *map(void *user, uint64_t bytes)
{
	struct failing *f = user;
	f->maps++;
	if (f->full)
		return NULL;
	f->mapped++;
	void *at = aligned_alloc(4096, bytes);
	return at ? memset(at, 0x37, bytes) : NULL;
}

static void unmap(void *user, void *at, uint64_t bytes)
{
	struct failing *f = user;
	(void)bytes;
	f->mapped--;
	free(at);
}

static int move(void *user, void *to, const void *from, uint64_t bytes)
{
	memmove(to, from, bytes);
	return answer(user);
}

static int fill(void *user, void *at, int byte, uint64_t bytes)
{
	memset(at, byte, bytes);
	return answer(user);
}

static int copy(void *user, void *to, const void *from, uint64_t bytes)
{
	memcpy(to, from, bytes);
	return answer(user);
}

static struct neap_memory_ops memory_of(struct failing *f)
{
	return (struct neap_memory_ops){.size = sizeof(struct neap_memory_ops),
		.user = f,
		.map = map,
		.unmap = unmap,
		.move = move,
		.fill = fill,
		.read = copy,
		.write = copy};
}

/* A run whose call k fails, for k up to the number of calls; then a run without a failure. */
#define FAIL_EACH(f, run, check_good)                                                              \
	for (int64_t k = 1, more = 1; more; k += 1 + k / 8) {                                      \
		(f)->calls = 0;                                                                    \
		(f)->fail_at = k;                                                                  \
		int rc = run;                                                                      \
		more = (f)->calls >= k;                                                            \
		if (more) {                                                                        \
			assert_int_equal(rc, -EIO);                                                \
			assert_non_null(strstr(neap_detail(), "neap_memory_ops"));                 \
		} else {                                                                           \
			assert_int_equal(rc, 0);                                                   \
		}                                                                                  \
		(f)->fail_at = 0;                                                                  \
		assert_int_equal(run, 0);                                                          \
		check_good;                                                                        \
	}

static void steps_fail(void **state)
{
	const char *strategies[] = {"revolve", "async", "double"};
	struct gradient got;
	struct model m;
	(void)state;
	model_init(&m, 100, 5);
	struct gradient want = reference(&m);
	for (int i = 0; i < 6; i++) {
		struct failing f = {0};
		const struct neap_memory_ops memory = memory_of(&f);
		struct neap_step_ops ops = model_ops(&m, 0);
		struct neap_tier *tier;
		struct neap_sweep *sweep;
		ops.memory = &memory;
		assert_int_equal(neap_tier_open_memory(&tier, 1 << 20), 0);
		const struct neap_sweep_options o = {.size = sizeof o,
			.steps = m.steps,
			.memory = 4096,
			.strategy = strategies[i / 2],
			.tiers = &tier,
			.ntiers = i >= 2,
			.check = i % 2,
			FIXED_COSTS};
		assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), 0);
		FAIL_EACH(&f, run_model(sweep, &m, &got, NULL),
			assert_memory_equal(&got, &want, sizeof got));
		neap_sweep_free(sweep);
		neap_tier_close(tier);
		assert_int_equal(f.mapped, 0);
		assert_true(f.maps > 0);
	}
	model_fini(&m);
}

/* The steps that are timed before the first run meet the failure. */
static void first_steps_fail(void **state)
{
	struct gradient got;
	struct model m;
	(void)state;
	model_init(&m, 100, 5);
	struct gradient want = reference(&m);
	for (int64_t k = 0; k <= 2; k++) { /* x_0 is copied twice */
		struct failing f = {.fail_at = k, .full = k == 0};
		const struct neap_memory_ops memory = memory_of(&f);
		struct neap_step_ops ops = model_ops(&m, 0);
		struct neap_tier *tier;
		struct neap_sweep *sweep;
		ops.memory = &memory;
		assert_int_equal(neap_tier_open_memory(&tier, 1 << 20), 0);
		const struct neap_sweep_options o = {.size = sizeof o,
			.steps = m.steps,
			.memory = 4096,
			.tiers = &tier,
			.ntiers = 1};
		assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), 0);
		assert_int_equal(run_model(sweep, &m, &got, NULL), k == 0 ? -ENOMEM : -EIO);
		assert_non_null(strstr(neap_detail(), "neap_memory_ops"));
		f.fail_at = f.full = 0;
		assert_int_equal(run_model(sweep, &m, &got, NULL), 0);
		assert_memory_equal(&got.dx, &want.dx, sizeof got.dx);
		assert_string_equal(m.broken, "");
		neap_sweep_free(sweep);
		neap_tier_close(tier);
		assert_int_equal(f.mapped, 0);
	}
	model_fini(&m);
}

static void stages_fail(void **state)
{
	struct random r = {.seed = 41};
	struct stagegradient got, want;
	static struct stagemodel m;
	(void)state;
	for (int i = 0; i < 6; i++) {
		struct failing f = {0};
		const struct neap_memory_ops memory = memory_of(&f);
		struct neap_stage_sweep *sweep;
		struct neap_tier *tier;
		random_model(&m, &r, 12, 40);
		stagemodel_reference(&m, &want);
		struct neap_stage_ops ops = stagemodel_ops(&m);
		ops.memory = &memory;
		assert_int_equal(neap_tier_open_memory(&tier, 1 << 20), 0);
		struct neap_sweep_options o = {.size = sizeof o,
			.steps = m.n,
			.strategy = i % 2 ? "pofo" : "chain",
			.tiers = &tier,
			.ntiers = i % 2,
			.check = i / 2 % 2};
		assert_int_equal(neap_stage_sweep_create(&sweep, &ops, &m, &m.stages, &o), 0);
		FAIL_EACH(&f, stagemodel_run(sweep, &m, &got, NULL),
			assert_memory_equal(&got, &want, sizeof got));
		neap_stage_sweep_free(sweep);
		neap_tier_close(tier);
		assert_int_equal(f.mapped, 0);
	}
}

/* Sweeps that cannot be made, or get other memory by a new plan, free what they took. */
static void replans_and_refusals(void **state)
{
	struct failing one = {0}, other = {0};
	const struct neap_memory_ops first = memory_of(&one), second = memory_of(&other);
	struct neap_memory_ops shorter = first;
	struct neap_sweep *sweep;
	struct gradient got;
	struct model m;
	(void)state;
	model_init(&m, 100, 5);
	struct gradient want = reference(&m);
	struct neap_step_ops ops = model_ops(&m, 0);
	struct neap_sweep_options o = {
		.size = sizeof o, .steps = m.steps, .memory = 4096, FIXED_COSTS};
	ops.memory = &first;
	assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), 0);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(run_model(sweep, &m, &got, NULL), 0);
		assert_memory_equal(&got, &want, sizeof got);
		assert_int_equal(one.mapped, i != 1 && i != 2);
		assert_int_equal(other.mapped, i == 1);
		ops.memory = i == 0 ? &second : i == 1 ? NULL : &first;
		o.memory = 16;
		assert_int_equal(neap_sweep_replan(sweep, &ops, &o), NEAP_EINFEASIBLE);
		o.memory = 4096;
		assert_int_equal(neap_sweep_replan(sweep, &ops, &o), 0);
	}
	neap_sweep_free(sweep);
	assert_int_equal(one.mapped + other.mapped, 0);
	shorter.size = (uint32_t)offsetof(struct neap_memory_ops, write);
	ops.memory = &shorter; /* as of a header without `write` */
	assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), NEAP_EUSAGE);
	model_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(steps_fail),
		cmocka_unit_test(first_steps_fail),
		cmocka_unit_test(stages_fail),
		cmocka_unit_test(replans_and_refusals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
