/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sweeps with logs: plans of `replay` with states and logs here and on a tier, of sizes
 * that are fixed and that vary, planned well and too small; tiers that fail. The
 * gradient is always the same to the bit, and a log is never taken for another's.
 */
#include "chainmodel.h"

#include <math.h>
#include "store/fault_tier.h"
#include "sweep/sweep.h"

#define STEPS 700
#define RUNS 30 /* with faults */
#define MOST 24 /* of a step's log, in rows */

/* A step's log: 1 to MOST rows; what the state was before it. */
struct row {
	int64_t t;
	double x;
};

static int varied; /* logs vary */
static int stops;  /* a call ends after one step, whatever room is left */

static int64_t rows_of(int64_t t)
{
	return varied ? 1 + (int64_t)neap__random_below(
				    3, NEAP__STREAM_TEST, 5, (uint64_t)t / 7, MOST)
		      : 4;
}

static int log_steps(void *user, void *state, int64_t t0, int64_t t1, int first, void *log,
	size_t room, size_t *used, int64_t *t_done)
{
	struct model *m = user;
	size_t most = sizeof(struct row) * (varied ? MOST : 4);
	double *x = state;
	EXPECT(m, t0 < t1 && t1 - t0 <= NEAP__LOG_BLOCK && (uintptr_t)log % 64 == 0);
	int64_t t = t0;
	for (*used = 0; t < t1 && room - *used >= most && !(stops && t > t0); t++) {
		for (int64_t i = 0; i < rows_of(t); i++) {
			struct row row = {t, x[i % WIDTH]};
			memcpy((char *)log + *used, &row, sizeof row);
			*used += sizeof row;
		}
		pass(m, state, t, first);
		step(m, state, t);
	}
	*t_done = t;
	return tick(m);
}

static int replay_steps(void *user, void *state, int64_t t0, int64_t t1, const void *log,
	int64_t log_t0, void *tape, size_t room, size_t *used, int64_t *t_done)
{
	struct model *m = user;
	const struct row *row = log;
	double x[WIDTH];
	EXPECT(m, log_t0 <= t0 && t0 < t1 && log_t0 >= 0 && t1 <= m->steps);
	for (int64_t t = log_t0; t < t0; t++)
		row += rows_of(t);
	int rc = model_record(user, memcpy(x, state, sizeof x) ? state : NULL, t0, t1, 0, tape,
		room, used, t_done);
	for (int64_t t = t0; t < *t_done; t++) {
		for (int64_t i = 0; i < rows_of(t); i++, row++)
			EXPECT(m, row->t == t && memcmp(&row->x, &x[i % WIDTH], 8) == 0);
		step(m, x, t);
	}
	return rc;
}

static struct neap_step_ops ops_of(const struct model *m, size_t mean)
{
	struct neap_step_ops ops = model_ops(m, m->extra_most ? 600 : 0);
	if (!m->extra_most) /* a log is smaller than a tape */
		ops.tape_bytes = sizeof(struct tape);
	ops.advance_log = log_steps;
	ops.replay = replay_steps;
	ops.log_bytes = mean ? mean : 4 * sizeof(struct row);
	ops.log_max_bytes = varied ? MOST * sizeof(struct row) : 0;
	return ops;
}

static struct {
	int64_t runs, replayed, travelled, overflows, recoveries;
} seen;

static uint32_t waves(const struct model *m, int64_t t)
{
	return (uint32_t)neap__random_below(m->seed, NEAP__STREAM_TEST, 2, (uint64_t)t / 30, 80);
}

static void init(struct model *m, uint32_t extra)
{
	model_init(m, STEPS, 31);
	m->extra_most = extra;
	m->extra = waves;
	memset(&seen, 0, sizeof seen);
}

/* 0 where the plan is infeasible. */
static int sweep_once(struct model *m, const struct gradient *want, uint64_t memory,
	const char *strategy, struct neap_tier *tier, size_t log, int64_t interval,
	struct neap_sweep_stats *stats)
{
	struct neap_step_ops ops = ops_of(m, log);
	struct neap_sweep_options o = {.size = sizeof o,
		.steps = STEPS,
		.memory = memory,
		.strategy = strategy,
		.params.interval = interval,
		.tiers = &tier,
		.ntiers = tier != NULL,
		.advance = 1,
		.record = 3,
		.backward = 2,
		.replay = 0.5};
	struct neap_sweep *sweep;
	struct gradient got;
	int rc = neap_sweep_create(&sweep, &ops, m, &o);
	if (rc == NEAP_EINFEASIBLE)
		return 0;
	if (rc < 0)
		fail_msg("%s", neap_detail());
	neap__sweep_poison(sweep, 1);
	rc = run_model(sweep, m, &got, stats);
	if (rc < 0 || m->broken[0] || memcmp(&got, want, sizeof got) != 0)
		fail_msg("%s memory=%llu: %d %s; %s", strategy, (unsigned long long)memory, rc,
			rc < 0 ? neap_detail() : "gradient", m->broken);
	const struct neap_plan *plan = neap_sweep_plan(sweep);
	assert_true(stats->peak_measured <= stats->arena_bytes);
	assert_true(stats->arena_bytes <= memory);
	if (!m->extra_most && !varied && stats->recoveries == 0) {
		if (stats->peak_measured != plan->peak_bytes || stats->overflows)
			fail_msg("memory=%llu variant %d: peak %llu, planned %llu; %lld overflows",
				(unsigned long long)memory, plan->variant,
				(unsigned long long)stats->peak_measured,
				(unsigned long long)plan->peak_bytes, (long long)stats->overflows);
		assert_int_equal(stats->recomputed, 0);
		assert_int_equal(stats->written[0], plan->tiers[0].written);
		assert_int_equal(stats->read[0], plan->tiers[0].read);
		if (strcmp(plan->chosen, "replay") == 0)
			assert_int_equal(stats->replay_steps, STEPS - plan->params.tail);
	}
	assert_int_equal(stats->advance_steps + stats->record_steps,
		plan->advance_steps + plan->record_steps + stats->recomputed);
	seen.runs++;
	seen.replayed += stats->replay_steps;
	seen.travelled += plan->variant && plan->tiers[0].written > 0;
	seen.overflows += stats->overflows;
	seen.recoveries += stats->recoveries;
	neap_sweep_free(sweep);
	return 1;
}

static void check_plans(int file, uint32_t extra, int vary, size_t log)
{
	static const double rates[] = {0, 1e9, 600, 60};
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct model m;
	varied = vary;
	init(&m, extra);
	struct gradient want = reference(&m);
	for (uint64_t memory = 3000; memory < 100000; memory *= file ? 12 : 2)
		for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++)
			for (int k = 0; k < 3; k++) {
				struct neap_tier *tier = NULL;
				int rc = rates[i] == 0 ? 0
					 : file ? neap_tier_open_file(&tier, "/var/tmp", NULL)
						: neap_tier_open_memory(&tier, NEAP_INFINITE);
				assert_int_equal(rc, 0);
				if (tier)
					neap_tier_set_rates(tier, rates[i], 1.5 * rates[i], 0.1);
				sweep_once(&m, &want, memory + (file ? 4096 : 0),
					k ? "replay" : "auto", tier, log, k == 2 ? 7 : 0, &stats);
				neap_tier_close(tier);
			}
	print_message("# %lld runs, logs or states travelled in %lld; %.2f steps replayed a step; "
		      "%lld overflows\n",
		(long long)seen.runs, (long long)seen.travelled,
		(double)seen.replayed / STEPS / (double)seen.runs, (long long)seen.overflows);
	assert_true(seen.runs > (file ? 8 : 40) && seen.replayed > 5 * STEPS);
	assert_true(seen.travelled > (file ? 4 : 20));
	assert_int_equal(seen.recoveries, 0);
	model_fini(&m);
}

static void over_memory(void **state)
{
	(void)state;
	check_plans(0, 0, 0, 0);
	check_plans(0, 60, 0, 0);
}

static void logs_that_vary(void **state)
{
	(void)state;
	check_plans(0, 0, 1, 64);
	check_plans(0, 60, 1, 200);
	check_plans(0, 60, 1, 64); /* the mean is some 200 */
	assert_true(seen.overflows > 0);
}

static void over_file(void **state)
{
	struct neap_tier *tier;
	(void)state;
	if (neap_tier_open_file(&tier, "/var/tmp", NULL) < 0) {
		print_message("# no file tier in /var/tmp: %s\n", neap_detail());
		skip();
	}
	neap_tier_close(tier);
	check_plans(1, 0, 0, 0);
	check_plans(1, 60, 1, 200);
}

/* Requests that fail in a row, the tier gone from some point on, no tier at all. */
static void check_faults(uint32_t extra, int vary, double rate)
{
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct model m;
	varied = vary;
	init(&m, extra);
	struct gradient want = reference(&m);
	for (int64_t n = 0; n < RUNS; n++) {
		struct neap__faults f = {.row = 1 + n % 5, .at_once = (int)(n & 1)};
		int64_t *const rows[] = {&f.fail_put, &f.fail_get, &f.lose_put, &f.corrupt_put,
			&f.truncate_put, &f.gone_after};
		struct neap_tier *inner, *tier;
		*rows[n % 6] = 1 + n;
		f.no_format = n == RUNS - 1;
		assert_int_equal(neap_tier_open_memory(&inner, NEAP_INFINITE), 0);
		assert_int_equal(neap__fault_open(&tier, inner, &f), 0);
		neap_tier_set_rates(tier, rate, rate, 0);
		assert_true(sweep_once(
			&m, &want, 9000, "replay", tier, vary ? 200 : 0, n % 3 ? 0 : 9, &stats));
		neap_tier_close(tier);
	}
	print_message("# %lld runs, %lld recoveries, %.2f steps replayed a step\n",
		(long long)seen.runs, (long long)seen.recoveries,
		(double)seen.replayed / STEPS / (double)seen.runs);
	assert_true(seen.recoveries > 2 * RUNS && seen.replayed > RUNS / 3 * STEPS);
	model_fini(&m);
}

static void faults(void **state)
{
	(void)state;
	check_faults(0, 0, 1e9);
	check_faults(0, 0, 300);
	check_faults(60, 1, 1e9);
}

/* What ops must say, and what a model without a log gets. */
static void refusals(void **state)
{
	struct neap_sweep *sweep;
	struct model m;
	(void)state;
	varied = 0;
	init(&m, 0);
	struct neap_step_ops ops = ops_of(&m, 0);
	struct neap_sweep_options o = {.size = sizeof o,
		FIXED_COSTS,
		.steps = STEPS,
		.memory = 9000,
		.strategy = "replay"};
	ops.replay = NULL;
	assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), NEAP_EUSAGE);
	ops = ops_of(&m, 0);
	ops.log_bytes = 0;
	assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), NEAP_EUSAGE);
	ops = ops_of(&m, 0);
	ops.log_max_bytes = 8;
	assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), NEAP_EUSAGE);
	ops = model_ops(&m, 0);
	assert_int_equal(neap_sweep_create(&sweep, &ops, &m, &o), NEAP_EINFEASIBLE);
	assert_non_null(strstr(neap_detail(), "needs a log"));
	model_fini(&m);
}

/* A call that stops although there is room for the log of another step is an error of the model. */
static void stops_early(void **state)
{
	(void)state;
	for (varied = 0; varied < 2; varied++) {
		struct neap_sweep_options o = {.size = sizeof o,
			.steps = STEPS,
			.memory = 300000,
			.strategy = "replay",
			.advance = 1,
			.record = 3,
			.backward = 2,
			.replay = 0.5};
		struct neap_sweep_stats stats = {.size = sizeof stats};
		struct neap_sweep *sweep;
		struct gradient got;
		struct model m;
		init(&m, 0);
		struct neap_step_ops ops = ops_of(&m, 0);
		if (neap_sweep_create(&sweep, &ops, &m, &o) < 0)
			fail_msg("%s", neap_detail());
		for (stops = 1; stops >= 0; stops--) {
			int rc = run_model(sweep, &m, &got, &stats);
			if (rc != (stops ? NEAP_EMODEL : 0))
				fail_msg("%d: %s", rc, rc < 0 ? neap_detail() : "");
			if (stops)
				assert_non_null(strstr(
					neap_detail(), "advance_log stopped at step 1 with"));
		}
		stops = 0;
		neap_sweep_free(sweep);
		model_fini(&m);
	}
	varied = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(over_memory),
		cmocka_unit_test(logs_that_vary),
		cmocka_unit_test(over_file),
		cmocka_unit_test(faults),
		cmocka_unit_test(refusals),
		cmocka_unit_test(stops_early),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
