/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Nothing of ours is allocated while a sweep runs: malloc and its kin and mmap
 * are counted, on every thread, between the first callback and the last.
 */
#include "chainmodel.h"

#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include "sweep/sweep_state.h"

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);

/* relaxed: the sweep's own locks order what its threads do */
static atomic_int counting, counted;

static void count(void)
{
	if (atomic_load_explicit(&counting, memory_order_relaxed))
		atomic_fetch_add_explicit(&counted, 1, memory_order_relaxed);
}

NEAP_API void *malloc(size_t bytes)
{
	count();
	return __libc_malloc(bytes);
}

NEAP_API void *calloc(size_t n, size_t bytes)
{
	count();
	return __libc_calloc(n, bytes);
}

NEAP_API void *realloc(void *old, size_t bytes)
{
	count();
	return __libc_realloc(old, bytes);
}

NEAP_API void *mmap(void *at, size_t bytes, int protection, int flags, int fd, off_t offset)
{
	count();
	return (void *)syscall(SYS_mmap, at, bytes, protection, flags, fd, offset);
}

static int64_t backwards, last;

static int first_advance(void *user, void *state, int64_t t0, int64_t t1, int first)
{
	atomic_store(&counting, 1);
	return model_advance(user, state, t0, t1, first);
}

static int first_record(void *user, void *state, int64_t t0, int64_t t1, int first, void *tape,
	size_t room, size_t *used, int64_t *t_done)
{
	atomic_store(&counting, 1);
	return model_record(user, state, t0, t1, first, tape, room, used, t_done);
}

static int last_backward(void *user, void *adjoint, int64_t t1, int64_t t0, const void *tape)
{
	int rc = model_backward(user, adjoint, t1, t0, tape);
	backwards++;
	if (t0 == 0)
		atomic_store(&counting, 0);
	return rc;
}

static uint32_t wild(const struct model *m, int64_t t)
{
	return (uint32_t)neap__random_below(m->seed, NEAP__STREAM_TEST, 1, (uint64_t)t / 30, 2) *
	       32;
}

static const char *journal; /* a directory, or NULL */

static int save_none(void *user, int (*write)(void *, const void *, size_t), void *to)
{
	return write(to, ((struct model *)user)->dw, sizeof(double));
}

static int load_none(void *user, int (*read)(void *, void *, size_t), void *from)
{
	return read(from, ((struct model *)user)->dw, sizeof(double));
}

static void check(struct neap_tier **tiers, int ntiers, uint32_t extra)
{
	struct model m;
	model_init(&m, 2000, 4);
	m.extra_most = extra;
	m.extra = wild;
	struct gradient want = reference(&m);
	struct neap_step_ops ops = model_ops(&m, extra ? 150 : 0);
	ops.advance = first_advance;
	ops.record = first_record;
	ops.backward = last_backward;
	ops.grad_save = save_none;
	ops.grad_load = load_none;
	for (int i = 0; neap_strategy_name(i); i++)
		for (uint64_t memory = 6000; memory < 2000000; memory *= journal ? 32 : 4) {
			struct neap_sweep *sweep;
			struct gradient got;
			struct neap_sweep_options o = {.size = sizeof o,
				FIXED_COSTS,
				.no_replan = 1,
				.steps = m.steps,
				.memory = memory,
				.strategy = neap_strategy_name(i),
				.tiers = tiers,
				.ntiers = ntiers,
				.journal = journal,
				.journal_seconds = 0.01};
			if (neap_sweep_create(&sweep, &ops, &m, &o) < 0)
				continue;
			atomic_store(&counted, 0);
			assert_int_equal(run_model(sweep, &m, &got, NULL), 0);
			assert_memory_equal(&got, &want, sizeof got);
			if (atomic_load(&counted))
				fail_msg("%s, %llu bytes: %d allocations during the sweep",
					o.strategy, (unsigned long long)memory,
					atomic_load(&counted));
			last = atomic_load(&counting);
			neap_sweep_free(sweep);
			assert_int_equal(last, 0);
		}
	assert_true(backwards > 0);
	model_fini(&m);
}

static void without_tiers(void **state)
{
	(void)state;
	check(NULL, 0, 0);
	check(NULL, 0, 32);
}

static void over_tiers(void **state)
{
	struct neap_tier *tiers[2];
	int n = 1;
	(void)state;
	assert_int_equal(neap_tier_open_memory(&tiers[0], 1 << 20), 0);
	if (neap_tier_open_file(&tiers[1], "/var/tmp", NULL) == 0)
		n = 2;
	check(tiers, n, 0);
	check(tiers + n - 1, 1, 32);
	while (n > 0)
		neap_tier_close(tiers[--n]);
}

static void with_a_journal(void **state)
{
	char directory[] = "/var/tmp/neap-alloc-XXXXXX";
	struct neap_file_options o = {.size = sizeof o, .keep = 1};
	struct neap_tier *tier;
	(void)state;
	journal = mkdtemp(directory);
	assert_non_null(journal);
	check(NULL, 0, 0);
	if (neap_tier_open_file(&tier, directory, &o) == 0) {
		check(&tier, 1, 32);
		neap_tier_close(tier);
	}
	journal = NULL;
	assert_int_equal(rmdir(directory), 0);
}

static int ended(void *user, const void *state, int64_t t)
{
	const struct model *m = user;
	(void)state;
	return t == m->steps ? NEAP_ENDED : NEAP_GO_ON;
}

static void unknown_length(void **state)
{
	struct model m;
	(void)state;
	model_init(&m, 20000, 4);
	struct gradient want = reference(&m), got;
	struct neap_step_ops ops = model_ops(&m, 0);
	ops.advance = first_advance;
	ops.record = first_record;
	ops.backward = last_backward;
	ops.ended = ended;
	for (uint64_t memory = 700; memory < 200000; memory *= 3) {
		struct neap_sweep *sweep;
		struct neap_sweep_options o = {
			.size = sizeof o, FIXED_COSTS, .no_replan = 1, .memory = memory};
		assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), 0);
		atomic_store(&counted, 0);
		assert_int_equal(run_model(sweep, &m, &got, NULL), 0);
		assert_memory_equal(&got, &want, sizeof got);
		assert_int_equal(atomic_load(&counted), 0);
		neap_sweep_free(sweep);
	}
	model_fini(&m);
}

static int no_action(void *user, struct neap_action *action)
{
	(void)user;
	(void)action;
	return 0;
}

/* The count itself works. */
static void counts(void **state)
{
	(void)state;
	atomic_store(&counted, 0);
	atomic_store(&counting, 1);
	void *volatile p = malloc(10);
	atomic_store(&counting, 0);
	free(p);
	assert_int_equal(atomic_load(&counted), 1);

	/* And it sees what the library does. */
	struct neap_schedule *schedule;
	atomic_store(&counting, 1);
	int rc = neap_schedule_wrap(&schedule, no_action, NULL, NULL);
	atomic_store(&counting, 0);
	neap_schedule_close(schedule);
	assert_int_equal(rc, 0);
	assert_int_equal(atomic_load(&counted), 2);
}

/* The kernel's word: resident memory grows by the arena and no more than 2 MiB. */
static void resident(void **state)
{
	struct model m;
	struct neap_sweep *sweep;
	struct gradient got;
	struct neap_sweep_stats stats = {.size = sizeof stats};
	(void)state;
	model_init(&m, 200000, 4);
	struct neap_step_ops ops = model_ops(&m, 0);
	struct neap_sweep_options o = {.size = sizeof o,
		FIXED_COSTS,
		.no_replan = 1,
		.steps = m.steps,
		.memory = 24 << 20,
		.strategy = "standard"};
	assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), 0);
	neap_sweep_watch(sweep, 1);
	assert_int_equal(run_model(sweep, &m, &got, &stats), 0);
	print_message("# arena %llu bytes, resident growth %llu\n",
		(unsigned long long)stats.arena_bytes, (unsigned long long)stats.resident_growth);
	assert_true(stats.resident_growth <= stats.arena_bytes + (2 << 20));
	assert_true(stats.resident_growth == 0 || stats.resident_growth >= stats.arena_bytes / 2);
	neap_sweep_free(sweep);
	model_fini(&m);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts),
		cmocka_unit_test(without_tiers),
		cmocka_unit_test(over_tiers),
		cmocka_unit_test(with_a_journal),
		cmocka_unit_test(unknown_length),
		cmocka_unit_test(resident),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
