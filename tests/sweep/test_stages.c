/* SPDX-License-Identifier: Apache-2.0 */
/* Sweeps over chains of stages that differ: the gradient, the budget, the places. */
#include "guard_memory.h"
#include "random_stages.h"
#include "sweep/stages/stage_sweep.h"
#include "../nn/allocations.h"

static int create_by(int (*make)(struct neap_stage_sweep **, const struct neap_stage_ops *, void *,
			     const struct neap_stages *, const struct neap_sweep_options *),
	struct neap_stage_sweep **sweep, struct stagemodel *m, uint64_t memory)
{
	const struct neap_stage_ops ops = stagemodel_ops(m);
	const struct neap_sweep_options options = {
		.size = sizeof options, .steps = m->n, .memory = memory, .strategy = "chain"};
	return make(sweep, &ops, m, &m->stages, &options);
}

static int create(struct neap_stage_sweep **sweep, struct stagemodel *m, uint64_t memory)
{
	return create_by(neap_stage_sweep_create, sweep, m, memory);
}

struct tally {
	int runs, moving, tight;
	uint64_t moved, arena, peak;
};

/* One budget, run twice in poisoned memory: the same bits, never above the budget. */
static struct neap_sweep_stats check_budget(struct stagemodel *m, uint64_t memory,
	const struct stagegradient *expected, struct tally *tally)
{
	struct neap_stage_sweep *sweep;
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct stagegradient g;
	if (create(&sweep, m, memory) < 0)
		fail_msg("%llu bytes: %s", (unsigned long long)memory, neap_detail());
	neap__stage_sweep_poison(sweep, 1);
	for (int k = 0; k < 2; k++) {
		if (stagemodel_run(sweep, m, &g, &stats) < 0)
			fail_msg("%llu bytes: %s", (unsigned long long)memory, neap_detail());
		assert_string_equal(m->broken, "");
		assert_memory_equal(&g, expected, sizeof g);
	}
	const struct neap_plan *plan = neap_stage_sweep_plan(sweep);
	assert_int_equal(stats.peak_planned, plan->peak_bytes);
	assert_int_equal(stats.peak_measured, stats.peak_planned);
	assert_true(stats.peak_measured <= stats.arena_bytes);
	assert_true(!memory || stats.arena_bytes <= memory);
	assert_int_equal(stats.advance_steps, plan->advance_steps);
	assert_int_equal(stats.record_steps, plan->record_steps);
	assert_int_equal(stats.backward_steps, m->n);
	tally->runs++;
	tally->moving += stats.moved > 0;
	tally->moved += stats.moved;
	tally->tight += stats.arena_bytes == stats.peak_planned;
	tally->arena += stats.arena_bytes;
	tally->peak += stats.peak_planned;
	neap_stage_sweep_free(sweep);
	return stats;
}

static uint64_t least_of(struct stagemodel *m)
{
	struct neap_stage_sweep *sweep;
	assert_int_equal(create(&sweep, m, 0), 0);
	uint64_t least = neap_problem_least(neap_stage_sweep_problem(sweep));
	neap_stage_sweep_free(sweep);
	return least;
}

static void report(const char *name, const struct tally *t)
{
	fprintf(stderr,
		"# %s: %d runs, %.1f%% in an arena of exactly the peak (%.3f of it on average), "
		"%d with moves\n",
		name, t->runs, 100.0 * t->tight / t->runs, (double)t->arena / (double)t->peak,
		t->moving);
}

/* Every budget from the least to that which keeps all, in steps of 64 bytes. */
static void every_budget(void **state)
{
	struct random r = {test_seed(31), 0};
	struct tally tally = {0};
	(void)state;
	for (int k = 0; k < 80; k++) {
		static struct stagemodel m;
		struct stagegradient expected;
		random_model(&m, &r, 1 + below(&r, 9), 40);
		stagemodel_reference(&m, &expected);
		struct neap_sweep_stats all = check_budget(&m, 0, &expected, &tally);
		assert_int_equal(all.advance_steps, 0);
		assert_int_equal(all.moved, 0);
		uint64_t least = least_of(&m);
		for (uint64_t memory = least; memory <= all.peak_planned + 128; memory += 64)
			check_budget(&m, memory, &expected, &tally);
		struct neap_stage_sweep *sweep = NULL;
		if (least == 0)
			continue;
		char named[48];
		snprintf(named, sizeof named, "at least %llu bytes", (unsigned long long)least);
		assert_int_equal(create(&sweep, &m, least - 1), NEAP_EINFEASIBLE);
		assert_non_null(strstr(neap_detail(), named));
	}
	report("every budget", &tally);
}

/* Longer chains, wider sizes. */
static void long_chains(void **state)
{
	struct random r = {test_seed(32), 0};
	struct tally tally = {0};
	(void)state;
	for (int k = 0; k < 12; k++) {
		static struct stagemodel m;
		struct stagegradient expected;
		random_model(&m, &r, 20 + below(&r, 29), k % 2 ? 400 : 12);
		stagemodel_reference(&m, &expected);
		uint64_t least = least_of(&m), all = 0;
		all = check_budget(&m, 0, &expected, &tally).peak_planned;
		for (int part = 0; part <= 6; part++)
			check_budget(
				&m, least + (all - least) * (uint64_t)part / 6, &expected, &tally);
	}
	report("long chains", &tally);
}

static double loss_of(const struct stagemodel *m, int64_t i, double w)
{
	struct stagemodel copy = *m;
	struct stagegradient g;
	copy.w[i] = w;
	stagemodel_reference(&copy, &g);
	return g.loss;
}

/* The gradient is one: against differences. */
static void differences(void **state)
{
	struct random r = {test_seed(33), 0};
	(void)state;
	for (int k = 0; k < 10; k++) {
		static struct stagemodel m;
		struct neap_stage_sweep *sweep;
		struct stagegradient g;
		random_model(&m, &r, 2 + below(&r, 10), 20);
		assert_int_equal(create(&sweep, &m, least_of(&m)), 0);
		assert_int_equal(stagemodel_run(sweep, &m, &g, NULL), 0);
		for (int64_t i = 0; i < m.n; i++) {
			double h = 1e-5,
			       d = (loss_of(&m, i, m.w[i] + h) - loss_of(&m, i, m.w[i] - h)) /
				   (2 * h);
			if (fabs(d - g.dw[i]) > 1e-6 * (1 + fabs(d)))
				fail_msg("stage %lld: %.12g, difference %.12g", (long long)i,
					g.dw[i], d);
		}
		neap_stage_sweep_free(sweep);
	}
}

/* In an arena of exactly the peak: where places do not fit, buffers move. */
static void moves(void **state)
{
	struct random r = {test_seed(34), 0};
	int moving = 0, runs = 0;
	(void)state;
	for (int k = 0; k < 400; k++) {
		static struct stagemodel m;
		struct stagegradient expected, g;
		struct neap_stage_sweep *sweep;
		struct neap_sweep_stats stats = {.size = sizeof stats};
		random_model(&m, &r, 4 + below(&r, 20), 40);
		stagemodel_reference(&m, &expected);
		uint64_t memory = least_of(&m);
		memory += (uint64_t)below(&r, (int64_t)memory + 1);
		assert_int_equal(create_by(neap__stage_sweep_create_moving, &sweep, &m, memory), 0);
		neap__stage_sweep_poison(sweep, 1);
		if (stagemodel_run(sweep, &m, &g, &stats) < 0)
			fail_msg("%s", neap_detail());
		assert_string_equal(m.broken, "");
		assert_memory_equal(&g, &expected, sizeof g);
		assert_int_equal(stats.arena_bytes, stats.peak_planned);
		moving += stats.moved > 0;
		runs++;
		neap_stage_sweep_free(sweep);
	}
	fprintf(stderr, "# %d of %d runs moved buffers\n", moving, runs);
	assert_true(moving > runs / 10);
}

static struct stagemodel small(void)
{
	struct random r = {5, 0};
	static struct stagemodel m;
	do
		random_model(&m, &r, 8, 20);
	while (m.stages.flags != 3);
	return m;
}

/* A callback's answer ends the sweep; the next run is whole again. */
static void failing_calls(void **state)
{
	static struct stagemodel m;
	struct stagegradient expected, g;
	struct neap_stage_sweep *sweep;
	(void)state;
	m = small();
	stagemodel_wire(&m);
	stagemodel_reference(&m, &expected);
	assert_int_equal(create(&sweep, &m, least_of(&m)), 0);
	assert_int_equal(stagemodel_run(sweep, &m, &g, NULL), 0);
	int64_t calls = m.calls;
	for (int64_t k = 1; k <= calls; k++) {
		m.fail_at = k;
		m.fail_with = -EDOM;
		assert_int_equal(stagemodel_run(sweep, &m, &g, NULL), -EDOM);
		m.fail_with = 7;
		assert_int_equal(stagemodel_run(sweep, &m, &g, NULL), NEAP_EMODEL);
		assert_non_null(strstr(neap_detail(), "answered 7"));
	}
	m.fail_at = 0;
	assert_int_equal(stagemodel_run(sweep, &m, &g, NULL), 0);
	assert_memory_equal(&g, &expected, sizeof g);
	neap_stage_sweep_free(sweep);
}

/* Poison tells who writes where nothing is, within the arena or behind it. */
static void stray_writes(void **state)
{
	static struct stagemodel m;
	struct stagegradient g;
	struct neap_stage_sweep *sweep;
	(void)state;
	m = small();
	stagemodel_wire(&m);
	assert_int_equal(create(&sweep, &m, 0), 0);
	neap__stage_sweep_poison(sweep, 1);
	assert_int_equal(stagemodel_run(sweep, &m, &g, NULL), 0);
	assert_true(sweep->program.arena < sweep->mapped);
	const uint64_t strays[] = {sweep->program.arena, sweep->program.arena - 1};
	for (int k = 0; k < 2; k++) {
		m.stray = guarded_address(sweep->base + strays[k]);
		assert_int_equal(stagemodel_run(sweep, &m, &g, NULL), NEAP_EMODEL);
		assert_non_null(strstr(neap_detail(), "while it was free"));
	}
	neap_stage_sweep_free(sweep);
}

static int stop(void *user)
{
	return --*(int *)user < 0;
}

static void refusals(void **state)
{
	static struct stagemodel m;
	struct neap_stage_sweep *sweep = NULL;
	struct neap_sweep_options o = {.size = sizeof o, .steps = 8};
	int calls = 5;
	(void)state;
	m = small();
	stagemodel_wire(&m);
	struct neap_stage_ops ops = stagemodel_ops(&m);
	o.ntiers = 1;
	assert_int_equal(neap_stage_sweep_create(&sweep, &ops, &m, &m.stages, &o), NEAP_EUSAGE);
	assert_non_null(strstr(neap_detail(), "1 tiers"));
	o.ntiers = 0;
	assert_int_equal(neap_stage_sweep_create(&sweep, &ops, &m, NULL, &o), NEAP_EUSAGE);
	ops.turn = NULL;
	assert_int_equal(neap_stage_sweep_create(&sweep, &ops, &m, &m.stages, &o), NEAP_EUSAGE);
	ops = stagemodel_ops(&m);
	ops.size = 2;
	assert_int_equal(neap_stage_sweep_create(&sweep, &ops, &m, &m.stages, &o), NEAP_EUSAGE);
	ops = stagemodel_ops(&m);
	o.strategy = "revolve";
	assert_int_equal(
		neap_stage_sweep_create(&sweep, &ops, &m, &m.stages, &o), NEAP_EINFEASIBLE);
	o.strategy = "no such";
	assert_int_equal(neap_stage_sweep_create(&sweep, &ops, &m, &m.stages, &o), NEAP_EUSAGE);
	o.strategy = NULL;
	m.tape[2] = 0;
	assert_int_equal(neap_stage_sweep_create(&sweep, &ops, &m, &m.stages, &o), NEAP_EUSAGE);
	assert_non_null(strstr(neap_detail(), "tape[2]"));
	stagemodel_wire(&m);
	m.state[3] = UINT64_MAX - 5;
	assert_int_equal(neap_stage_sweep_create(&sweep, &ops, &m, &m.stages, &o), NEAP_EUSAGE);
	stagemodel_wire(&m);
	o.interrupted = stop;
	o.interrupted_user = &calls;
	assert_int_equal(neap_stage_sweep_create(&sweep, &ops, &m, &m.stages, &o), 0);
	assert_string_equal(neap_stage_sweep_plan(sweep)->chosen, "chain");
	assert_int_equal(neap_stage_sweep_run(sweep, NULL, NULL, NULL, NULL), NEAP_EINTERRUPTED);
	calls = 1 << 20;
	assert_int_equal(neap_stage_sweep_run(sweep, NULL, NULL, NULL, NULL), 0);
	neap_stage_sweep_free(sweep);
	neap_stage_sweep_free(NULL);
}

static int write_text(void *user, const char *text, size_t length)
{
	return fwrite(text, 1, length, user) == length ? 0 : -EIO;
}

/* The plan of one sweep, written and read, run by another; not by one of other sizes. */
static void saved_plans(void **state)
{
	static struct stagemodel m;
	struct stagegradient expected, g;
	struct neap_stage_sweep *sweep, *again;
	struct neap_sweep_stats planned = {.size = sizeof planned}, stats = {.size = sizeof stats};
	struct neap_saved *saved;
	char *text;
	size_t length;
	(void)state;
	m = small();
	stagemodel_wire(&m);
	stagemodel_reference(&m, &expected);
	assert_int_equal(create(&sweep, &m, least_of(&m) + 300), 0);
	assert_int_equal(stagemodel_run(sweep, &m, &g, &planned), 0);
	FILE *f = open_memstream(&text, &length);
	assert_non_null(f);
	assert_int_equal(neap_plan_write(neap_stage_sweep_plan(sweep),
				 neap_stage_sweep_problem(sweep), 0, write_text, f),
		0);
	fclose(f);
	assert_int_equal(neap_plan_read(&saved, text, length, 0), 0);
	struct neap_stage_ops ops = stagemodel_ops(&m);
	struct neap_sweep_options o = {.size = sizeof o, .steps = m.n, .saved = saved};
	if (neap_stage_sweep_create(&again, &ops, &m, &m.stages, &o) < 0)
		fail_msg("%s", neap_detail());
	assert_int_equal(stagemodel_run(again, &m, &g, &stats), 0);
	assert_memory_equal(&g, &expected, sizeof g);
	assert_int_equal(stats.peak_measured, planned.peak_measured);
	assert_int_equal(stats.advance_steps, planned.advance_steps);
	neap_stage_sweep_free(again);
	o.memory = planned.peak_planned - 1;
	assert_int_equal(
		neap_stage_sweep_create(&again, &ops, &m, &m.stages, &o), NEAP_EINFEASIBLE);
	o.memory = 0;
	m.tape[2] += 64;
	assert_int_equal(neap_stage_sweep_create(&again, &ops, &m, &m.stages, &o), NEAP_EUSAGE);
	assert_non_null(strstr(neap_detail(), "tape[2]"));
	neap_saved_free(saved);
	neap_stage_sweep_free(sweep);
	free(text);
}

static void no_stages(void **state)
{
	static struct stagemodel m;
	struct stagegradient expected, g;
	struct neap_stage_sweep *sweep;
	struct neap_sweep_stats stats = {.size = sizeof stats};
	(void)state;
	m = (struct stagemodel){.n = 0, .width = {5}, .stages.flags = 3};
	stagemodel_wire(&m);
	stagemodel_reference(&m, &expected);
	assert_int_equal(create(&sweep, &m, 64), NEAP_EINFEASIBLE);
	assert_non_null(strstr(neap_detail(), "at least 128 bytes"));
	if (!memory_is_guarded()) { /* memory of another kind has sizes of its own */
		m.state[0] = (uint64_t)1 << 50;
		assert_int_equal(create(&sweep, &m, 0), NEAP_EINFEASIBLE);
		assert_non_null(strstr(neap_detail(), "but this machine has "));
	}
	stagemodel_wire(&m);
	assert_int_equal(create(&sweep, &m, 128), 0);
	assert_int_equal(stagemodel_run(sweep, &m, &g, &stats), 0);
	assert_memory_equal(&g, &expected, sizeof g);
	assert_int_equal(stats.backward_steps, 0);
	neap_stage_sweep_free(sweep);
}

static long seen_at_first, seen_at_last;

static int counted_advance(void *user, int64_t i, const void *x, void *y, void *tmp, int first)
{
	seen_at_first = seen_at_first ? seen_at_first : allocations();
	return stagemodel_advance(user, i, x, y, tmp, first);
}

static int counted_backward(
	void *user, int64_t i, const void *x, const void *tape, void *dy, void *dx, void *tmp)
{
	stage_backward(user, i, x, dy, dx);
	(void)tape, (void)tmp;
	seen_at_last = allocations();
	return 0;
}

static void no_allocation(void **state)
{
	static struct stagemodel m;
	struct neap_stage_sweep *sweep;
	(void)state;
	if (!allocations_counted()) {
		print_message("# SKIP allocations are not counted here\n");
		skip();
	}
	m = small();
	stagemodel_wire(&m);
	struct neap_stage_ops ops = stagemodel_ops(&m);
	ops.advance = counted_advance;
	ops.backward = counted_backward;
	const struct neap_sweep_options options = {
		.size = sizeof options, .steps = m.n, .memory = least_of(&m)};
	assert_int_equal(neap_stage_sweep_create(&sweep, &ops, &m, &m.stages, &options), 0);
	assert_int_equal(neap_stage_sweep_run(sweep, NULL, NULL, NULL, NULL), 0);
	assert_true(seen_at_first > 0);
	assert_int_equal(seen_at_first, seen_at_last);
	neap_stage_sweep_free(sweep);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_budget),
		cmocka_unit_test(long_chains),
		cmocka_unit_test(differences),
		cmocka_unit_test(moves),
		cmocka_unit_test(failing_calls),
		cmocka_unit_test(stray_writes),
		cmocka_unit_test(refusals),
		cmocka_unit_test(saved_plans),
		cmocka_unit_test(no_stages),
		cmocka_unit_test(no_allocation),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
