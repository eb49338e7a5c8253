/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sweeps over chains of stages with slow tiers: the gradient is that of a sweep that stores
 * everything, to the bit, over strategies, budgets, tiers of memory and file, bounded ones, moving
 * buffers, and every fault at every request; what is lost is made again, or the plan is given up.
 *
 *     test_stage_tiers [SWEEPS]     of the storm; NEAP_SEED
 */
#include "random_stages.h"

#include "store/fault_tier.h"
#include "sweep/stages/stage_sweep.h"

static uint64_t storms = 400;

static struct {
	int64_t sweeps, moving, sent, lost, given_up, too_few, bounded;
} tally;

struct scene {
	struct stagemodel model;
	struct stagegradient want;
	struct neap__faults faults;
	struct neap_tier *tier;
	struct neap_stage_ops ops;
	struct neap_sweep_options options;
};

static void open_tier(struct scene *x, int file, uint64_t capacity)
{
	struct neap_tier *inner;
	const struct neap_file_options o = {.size = sizeof o, .capacity = capacity};
	int rc = file ? neap_tier_open_file(&inner, "/var/tmp", &o)
		      : neap_tier_open_memory(&inner, capacity ? capacity : NEAP_INFINITE);
	assert_int_equal(rc, 0);
	assert_int_equal(neap__fault_open(&x->tier, inner, &x->faults), 0);
}

static void make_scene(struct scene *x, struct random *r, int64_t n, int file, uint64_t capacity)
{
	memset(x, 0, sizeof *x);
	random_model(&x->model, r, n, 40);
	stagemodel_reference(&x->model, &x->want);
	open_tier(x, file, capacity);
	/* A state takes about as long as a stage, so that plans send and recompute. */
	double rate = 8.0 * 20 / (double)(1 + below(r, 8));
	neap_tier_set_rates(x->tier, rate, rate, chance(r, 30) ? 0.3 : 0);
	x->ops = stagemodel_ops(&x->model);
	x->options = (struct neap_sweep_options){.size = sizeof x->options,
		.steps = n,
		.strategy = chance(r, 50) ? "pofo" : "auto",
		.params = {.effort = 60},
		.tiers = &x->tier,
		.ntiers = 1};
}

static void end_scene(struct scene *x)
{
	neap_tier_close(x->tier);
}

/* Makes a sweep; 0 where the budget is too small. */
static struct neap_stage_sweep *sweep_of(struct scene *x, uint64_t memory, int moving)
{
	struct neap_stage_sweep *sweep;
	x->options.memory = memory;
	int rc = (moving ? neap__stage_sweep_create_moving : neap_stage_sweep_create)(
		&sweep, &x->ops, &x->model, &x->model.stages, &x->options);
	if (rc == NEAP_EINFEASIBLE)
		return NULL;
	if (rc < 0)
		fail_msg("%s", neap_detail());
	neap__stage_sweep_poison(sweep, 1);
	return sweep;
}

static void check_bits(struct scene *x, const struct stagegradient *got, int rc)
{
	if (rc < 0)
		fail_msg("%lld stages, %llu bytes, %s: %s", (long long)x->model.n,
			(unsigned long long)x->options.memory, x->options.strategy, neap_detail());
	assert_string_equal(x->model.broken, "");
	assert_memory_equal(got, &x->want, sizeof *got);
}

/* Runs twice. Without faults all counts are the plan's. */
static void run_clean(struct scene *x, struct neap_stage_sweep *sweep)
{
	const struct neap_plan *plan = neap_stage_sweep_plan(sweep);
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct stagegradient got;
	sweep->options.patience = 0; /* a busy machine is no fault */
	for (int i = 0; i < 2; i++) {
		check_bits(x, &got, stagemodel_run(sweep, &x->model, &got, &stats));
		assert_int_equal(stats.recoveries + stats.late, 0);
		assert_int_equal(stats.peak_measured, plan->peak_bytes);
		assert_int_equal(stats.advance_steps, plan->advance_steps);
		assert_int_equal(stats.record_steps, plan->record_steps);
		assert_int_equal(stats.written[0], plan->tiers[0].written);
		assert_int_equal(stats.read[0], plan->tiers[0].read);
		assert_true(stats.arena_bytes <= x->options.memory);
		tally.sent += stats.written[0] > 0;
		tally.moving += stats.moved > 0;
		tally.sweeps++;
	}
	sweep->options.patience = x->options.patience;
}

static uint64_t all_bytes(const struct stagemodel *m)
{
	uint64_t bytes = 4096;
	for (int64_t i = 0; i < m->n; i++)
		bytes += m->tape[i] + m->state[i] + 128;
	return bytes + 2 * m->adjoint_bytes;
}

/* Budgets from the least to that which keeps all. */
static void budgets(void **state)
{
	struct random r = {test_seed(51), 0};
	(void)state;
	for (int i = 0; i < (TEST_SANITIZED ? 12 : 60); i++) {
		static struct scene x;
		make_scene(&x, &r, 2 + below(&r, 14), i % 4 == 3, 0);
		uint64_t all = all_bytes(&x.model);
		for (uint64_t memory = all / 12; memory < all; memory += all / 11) {
			uint64_t more = i % 4 == 3 ? 8192 : 0;
			struct neap_stage_sweep *sweep = sweep_of(&x, memory + more, i % 3 == 2);
			if (!sweep)
				continue;
			run_clean(&x, sweep);
			neap_stage_sweep_free(sweep);
		}
		end_scene(&x);
	}
	print_message("# %lld sweeps, %lld sent, %lld moved buffers\n", (long long)tally.sweeps,
		(long long)tally.sent, (long long)tally.moving);
	assert_true(tally.sent > tally.sweeps / 8);
}

/* One to three stages, where the last tape, which holds x_n, is all that could leave. */
static void short_chains(void **state)
{
	struct random r = {test_seed(55), 0};
	(void)state;
	for (int i = 0; i < (TEST_SANITIZED ? 10 : 60); i++) {
		static struct scene x;
		make_scene(&x, &r, 1 + below(&r, 3), 0, 0);
		uint64_t all = all_bytes(&x.model);
		for (uint64_t memory = 64; memory < all - 4096; memory += 128) {
			struct neap_stage_sweep *sweep = sweep_of(&x, memory, 0);
			if (!sweep)
				continue;
			run_clean(&x, sweep);
			neap_stage_sweep_free(sweep);
		}
		end_scene(&x);
	}
}

/* A run with faults: the same bits, or a line that says that memory is too small. */
static int run_faulty(struct scene *x, struct neap_stage_sweep *sweep)
{
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct stagegradient got;
	int rc = stagemodel_run(sweep, &x->model, &got, &stats);
	tally.sweeps++;
	tally.lost += stats.recoveries;
	assert_true(stats.late == 0 || sweep->options.patience > 0);
	if (rc == NEAP_EINFEASIBLE) {
		assert_non_null(strstr(neap_detail(), "slow memory lost"));
		tally.too_few++;
		return 0;
	}
	check_bits(x, &got, rc);
	tally.given_up += stats.backward_steps > 0 && stats.recomputed > 0;
	return stats.recoveries > 0;
}

enum { KINDS = 8, HANG = 6 }; /* kinds of faults; from HANG on an answer never comes */

static struct neap__faults fault(int kind, int64_t n)
{
	struct neap__faults f = {0};
	int64_t *const rows[] = {&f.fail_put, &f.fail_get, &f.lose_put, &f.corrupt_put,
		&f.truncate_put, &f.gone_after, &f.hang_put, &f.hang_get};
	*rows[kind] = n;
	return f;
}

/* Every fault at every request of a sweep. */
static void every_fault(void **state)
{
	struct random r = {test_seed(52), 0};
	int64_t before = tally.too_few;
	(void)state;
	for (int i = 0; i < (TEST_SANITIZED ? 3 : 8); i++) {
		static struct scene x;
		make_scene(&x, &r, 4 + below(&r, 12), i % 4 == 3, 0);
		x.options.patience = 0.005;
		uint64_t all = all_bytes(&x.model);
		for (uint64_t memory = all / 6; memory < all; memory += all / 5) {
			uint64_t more = i % 4 == 3 ? 8192 : 0;
			struct neap_stage_sweep *sweep = sweep_of(&x, memory + more, i % 3 == 2);
			if (!sweep)
				continue;
			x.faults = fault(0, 0);
			run_clean(&x, sweep);
			struct neap__fault_counts counts = {0};
			if (neap_stage_sweep_plan(sweep)->tiers[0].written > 0)
				counts = neap__fault_counts(x.tier);
			for (int kind = 0; kind < KINDS; kind++)
				for (int64_t n = 1; n <= counts.puts; n++) {
					x.faults = fault(kind, n);
					sweep->options.patience =
						kind < HANG ? 0 : x.options.patience;
					int seen = run_faulty(&x, sweep);
					if (kind == 1 && n <= counts.gets)
						assert_true(seen || tally.too_few > before);
				}
			x.faults = fault(0, 0);
			run_clean(&x, sweep);
			neap_stage_sweep_free(sweep);
		}
		end_scene(&x);
	}
	print_message(
		"# %lld sweeps, %lld records lost, %lld with work done again, %lld too tight\n",
		(long long)tally.sweeps, (long long)tally.lost, (long long)tally.given_up,
		(long long)tally.too_few);
	assert_true(tally.given_up > 0);
}

/* Tiers that hold a few records only: plans keep within them. */
static void capacities(void **state)
{
	struct random r = {test_seed(53), 0};
	int64_t sent = tally.sent;
	(void)state;
	for (int i = 0; i < (TEST_SANITIZED ? 20 : 200); i++) {
		static struct scene x;
		int file = i % 4 == 3;
		uint64_t capacity = file ? 4096 * (uint64_t)(1 + below(&r, 16))
					 : 128 + (uint64_t)below(&r, i % 2 ? 8192 : 2048);
		make_scene(&x, &r, 3 + below(&r, 12), file, capacity);
		uint64_t all = all_bytes(&x.model), more = file ? 8192 : 0;
		for (uint64_t memory = all / 5; memory < all; memory += all / 4) {
			struct neap_stage_sweep *sweep = sweep_of(&x, memory + more, 0);
			if (!sweep)
				continue;
			run_clean(&x, sweep);
			neap_stage_sweep_free(sweep);
		}
		end_scene(&x);
	}
	assert_true(tally.sent > sent + (TEST_SANITIZED ? 10 : 50));
}

/*
 * Some of these tiers have room for the bytes of a state, but not for its record, as the planner
 * finds only when it places the records: the budget that an error names is enough nevertheless.
 */
static void named_budget(const struct stagemodel *model, uint64_t capacity)
{
	struct scene x = {.model = *model};
	stagemodel_wire(&x.model);
	open_tier(&x, 0, capacity);
	x.ops = stagemodel_ops(&x.model);
	x.options = (struct neap_sweep_options){
		.size = sizeof x.options, .steps = x.model.n, .tiers = &x.tier, .ntiers = 1};
	assert_null(sweep_of(&x, 1, 0));
	const char *least = strstr(neap_detail(), "Use at least ");
	assert_non_null(least);
	uint64_t named = strtoull(least + strlen("Use at least "), NULL, 10);
	struct neap_stage_sweep *sweep = sweep_of(&x, named, 0);
	if (!sweep)
		fail_msg("capacity %llu: %s", (unsigned long long)capacity, neap_detail());
	neap_stage_sweep_free(sweep);
	end_scene(&x);
}

static void named_budgets(void **state)
{
	static const struct stagemodel two = {.n = 2,
		.width = {8, 16, 32},
		.junk = {32, 0},
		.advance = {1, 1},
		.record = {1, 1},
		.backward = {1, 1, 1},
		.stages.flags = NEAP_STAGES_TAPE_HOLDS_OUTPUT | NEAP_STAGES_BACKWARD_NEEDS_INPUT};
	static const struct stagemodel large_turn = {.n = 1,
		.width = {16, 1},
		.advance = {1},
		.record = {1},
		.backward = {1, 1},
		.backward_tmp = {0, 272},
		.stages.flags = NEAP_STAGES_BACKWARD_NEEDS_INPUT};
	(void)state;
	for (uint64_t capacity = 8; capacity <= 256; capacity += 8) {
		named_budget(&two, capacity);
		named_budget(&large_turn, capacity);
	}
}

static int text_of(void *user, const char *text, size_t length)
{
	char *at = (char *)user + strlen(user);
	memcpy(at, text, length);
	at[length] = '\0';
	return 0;
}

/* A plan with transfers that was saved, read again and run. */
static void saved_plans(void **state)
{
	struct random r = {test_seed(56), 0};
	static char text[1 << 20];
	int ran = 0;
	(void)state;
	for (int i = 0; i < 40; i++) {
		static struct scene x;
		struct neap_saved *saved = NULL;
		make_scene(&x, &r, 3 + below(&r, 12), 0, 0);
		struct neap_stage_sweep *sweep = sweep_of(&x, all_bytes(&x.model) / 3, 0);
		if (sweep && neap_stage_sweep_plan(sweep)->tiers[0].written > 0) {
			text[0] = '\0';
			assert_int_equal(neap_plan_write(neap_stage_sweep_plan(sweep),
						 neap_stage_sweep_problem(sweep), 0, text_of, text),
				0);
			neap_stage_sweep_free(sweep);
			assert_int_equal(neap_plan_read(&saved, text, strlen(text), 0), 0);
			x.options.saved = saved;
			sweep = sweep_of(&x, all_bytes(&x.model) / 3, 0);
			assert_non_null(sweep);
			run_clean(&x, sweep);
			ran++;
			x.options.ntiers = 0;
			struct neap_stage_sweep *other;
			assert_int_equal(neap_stage_sweep_create(&other, &x.ops, &x.model,
						 &x.model.stages, &x.options),
				NEAP_EUSAGE);
			assert_non_null(strstr(neap_detail(), "1 tiers, not 0"));
		}
		neap_stage_sweep_free(sweep);
		neap_saved_free(saved);
		end_scene(&x);
	}
	assert_true(ran > 3);
}

/* Everything at once: faults in rows, delays, full disks, callbacks that fail. */
static void storm(void **state)
{
	struct random r = {test_seed(54), 0};
	int64_t fit = 0, sweeps = tally.sweeps, lost = tally.lost;
	(void)state;
	for (uint64_t i = 0; i < storms; i++) {
		static struct scene x;
		make_scene(&x, &r, 1 + below(&r, 20), chance(&r, 25), chance(&r, 25) ? 65536 : 0);
		uint64_t all = all_bytes(&x.model),
			 memory = all / 8 + (uint64_t)below(&r, (int64_t)all);
		struct neap_stage_sweep *sweep =
			sweep_of(&x, memory + (chance(&r, 50) ? 8192 : 0), chance(&r, 30));
		fit += sweep != NULL;
		for (int k = 0; sweep && k < 3; k++) {
			x.faults = fault((int)below(&r, 6), chance(&r, 70) ? 1 + below(&r, 20) : 0);
			x.faults.row = below(&r, 6);
			x.faults.at_once = chance(&r, 30);
			x.faults.full_at = chance(&r, 20) ? (uint64_t)below(&r, 9000) : 0;
			x.faults.no_format = chance(&r, 5);
			x.model.fail_at = chance(&r, 10) ? 1 + below(&r, 40) : 0;
			x.model.fail_with = -77;
			struct stagegradient got;
			if (!x.model.fail_at) {
				(void)run_faulty(&x, sweep);
				continue;
			}
			int rc = stagemodel_run(sweep, &x.model, &got, NULL);
			x.model.fail_at = 0;
			if (rc != -77 && rc != NEAP_EINFEASIBLE)
				check_bits(&x, &got, rc);
		}
		neap_stage_sweep_free(sweep);
		end_scene(&x);
	}
	print_message("# %llu problems, %lld fit: %lld sweeps, %lld records lost\n",
		(unsigned long long)storms, (long long)fit, (long long)(tally.sweeps - sweeps),
		(long long)(tally.lost - lost));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(budgets),
		cmocka_unit_test(short_chains),
		cmocka_unit_test(every_fault),
		cmocka_unit_test(capacities),
		cmocka_unit_test(named_budgets),
		cmocka_unit_test(saved_plans),
		cmocka_unit_test(storm),
	};
	if (argc > 1)
		storms = strtoull(argv[1], NULL, 0);
	else if (TEST_SANITIZED)
		storms /= 4;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
