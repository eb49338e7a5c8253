/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sweeps over branches that meet in one loss: the gradient is that of storing everything, to the
 * bit, for one to four branches of any lengths, strategies, budgets, tiers with faults, and
 * journals; and the strategy `join` takes as few steps as the table of optima says.
 *
 *     test_join_sweep [SWEEPS]     of the storm; NEAP_SEED
 */
#include "joinmodel.h"

#include "store/fault_tier.h"
#include "sweep/stages/join_sweep.h"

static uint64_t storms = 40;

static struct {
	int64_t sweeps, sent, lost, in_turns, too_few;
} tally;

static void check_joined(const struct joined *j, const struct joined_gradient *got,
	const struct joined_gradient *want, int rc, const struct neap_sweep_options *o)
{
	if (rc < 0 || j->broken[0] || memcmp(got, want, sizeof *got) != 0)
		fail_msg("%d branches, flags %x, %s, %llu bytes: %d %s %s", j->count,
			j->model[0].stages.flags, o->strategy, (unsigned long long)o->memory, rc,
			rc < 0 ? neap_detail() : "", j->broken);
}

/* The line that refuses a budget names one that does. */
static void named_budget_does(struct joined *j, const struct neap_sweep_options *o)
{
	struct neap_sweep_options more = *o;
	struct neap_join_ops ops = joined_ops(j);
	struct neap_join_sweep *sweep;
	char line[300];
	snprintf(line, sizeof line, "%s", neap_detail());
	const char *least = strstr(line, "at least ");
	assert_non_null(least);
	more.memory = strtoull(least + strlen("at least "), NULL, 10);
	if (neap_join_sweep_create(&sweep, &ops, j, j->branches, j->count, &more) < 0)
		fail_msg("'%s', but: %s", line, neap_detail());
	neap_join_sweep_free(sweep);
}

static void run_clean(struct joined *j, const struct neap_sweep_options *o)
{
	struct neap_join_ops ops = joined_ops(j);
	struct joined_gradient want, got;
	struct neap_join_sweep *sweep;
	struct neap_sweep_stats stats;
	joined_reference(j, &want);
	int rc = neap_join_sweep_create(&sweep, &ops, j, j->branches, j->count, o);
	if (rc == NEAP_EINFEASIBLE) {
		tally.too_few++;
		named_budget_does(j, o);
		return;
	}
	if (rc < 0)
		fail_msg("%s: %s", o->strategy, neap_detail());
	const struct neap_plan *plan = neap_join_sweep_plan(sweep);
	neap__join_poison(sweep, 1);
	for (int i = 0; i < 2; i++) {
		joined_restart(j);
		rc = joined_run(sweep, j, &got, &stats);
		check_joined(j, &got, &want, rc, o);
		assert_int_equal(stats.advance_steps, plan->advance_steps);
		assert_int_equal(stats.record_steps, plan->record_steps);
		assert_int_equal(stats.peak_measured, plan->peak_bytes);
		assert_true(stats.arena_bytes <= o->memory);
		tally.sweeps++;
		tally.sent += stats.written[0] > 0;
		tally.in_turns += strcmp(plan->strategy, "join") == 0;
	}
	neap_join_sweep_free(sweep);
}

static const char *const strategies[] = {"auto", "chain", "join", "pofo"};

static void budgets(void **state)
{
	struct random r = {test_seed(71), 0};
	static struct joined j;
	(void)state;
	for (int i = 0; i < (TEST_SANITIZED ? 6 : 40); i++) {
		struct neap_tier *tier;
		random_branches(&j, &r, 1 + (int)below(&r, BRANCHES), 12);
		if (j.count == 1 && chance(&r, 70))
			random_branches(&j, &r, 2, 12);
		uint64_t all = joined_bytes(&j);
		assert_int_equal(neap_tier_open_memory(&tier, NEAP_INFINITE), 0);
		neap_tier_set_rates(tier, 100, 100, 0);
		for (uint64_t memory = all / 8; memory <= all; memory += all / 7) {
			struct neap_sweep_options o = {.size = sizeof o,
				.memory = memory,
				.strategy = strategies[below(&r, j.count == 2 ? 4 : 2)],
				.params = {.effort = 10},
				.tiers = &tier};
			if (!strcmp(o.strategy, "join") && !(j.model[0].n && j.model[1].n))
				o.strategy = "auto";
			o.ntiers = strcmp(o.strategy, "pofo") == 0 ||
				   (strcmp(o.strategy, "auto") == 0 && chance(&r, 50));
			run_clean(&j, &o);
		}
		neap_tier_close(tier);
	}
	print_message("# %lld sweeps, %lld sent, %lld in turns, %lld budgets too small\n",
		(long long)tally.sweeps, (long long)tally.sent, (long long)tally.in_turns,
		(long long)tally.too_few);
	assert_true(tally.sweeps > 2 * tally.too_few && tally.sent > 0 && tally.in_turns > 0);
}

/* Of equal steps: as few as two chains in so many slots take. */
static void optima(void **state)
{
	static struct joined j;
	char path[4200], line[200];
	int rows = 0;
	(void)state;
	snprintf(path, sizeof path, "%s/join.csv", test_oracles());
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		long long a, b, slots, least;
		if (sscanf(line, "%lld,%lld,%lld,%lld", &a, &b, &slots, &least) != 4 ||
			a > STAGES_MOST - 1 || b > STAGES_MOST - 1)
			continue;
		memset(&j, 0, sizeof j);
		j.count = 2;
		for (int k = 0; k < 2; k++) {
			struct stagemodel *m = &j.model[k];
			m->n = k ? b : a;
			for (int64_t i = 0; i <= m->n; i++)
				m->width[i] = 8;
			for (int64_t i = 0; i < m->n; i++)
				m->w[i] = 0.3, m->advance[i] = m->record[i] = 1;
			stagemodel_wire(m);
			j.branches[k] = (struct neap_branch){m->n, &m->stages};
		}
		/* Slots, a tape, and gradients: two of each state that is live besides. */
		struct neap_sweep_options o = {.size = sizeof o,
			.memory = (uint64_t)(slots + 4) * 64,
			.strategy = "join",
			.params = {.checkpoints = slots}};
		struct neap_join_ops ops = joined_ops(&j);
		struct neap_join_sweep *sweep;
		struct neap_sweep_stats stats;
		struct joined_gradient got, want;
		joined_reference(&j, &want);
		int rc = neap_join_sweep_create(&sweep, &ops, &j, j.branches, 2, &o);
		if (rc < 0)
			fail_msg("%lld + %lld steps, %lld slots: %s", a, b, slots, neap_detail());
		joined_restart(&j);
		check_joined(&j, &got, &want, joined_run(sweep, &j, &got, &stats), &o);
		assert_int_equal(stats.advance_steps, least);
		assert_int_equal(stats.record_steps, a + b);
		neap_join_sweep_free(sweep);
		rows++;
	}
	fclose(f);
	print_message("# %d rows run\n", rows);
	assert_true(rows > 50);
}

static int stop_after;

static int stop(void *user)
{
	(void)user;
	return stop_after > 0 && --stop_after == 0;
}

/* Faults and interruptions with a journal, until the sweep ends. */
static void storm(void **state)
{
	struct random r = {test_seed(72), 0};
	static struct joined j;
	char folder[] = "/var/tmp/neap-join-XXXXXX";
	int64_t resumed = 0, lost = 0, fell = 0;
	(void)state;
	assert_non_null(mkdtemp(folder));
	for (uint64_t n = 0; n < storms; n++) {
		struct neap__faults faults = {0};
		struct neap_tier *inner, *tier;
		struct neap_join_sweep *sweep;
		struct neap_sweep_stats stats;
		struct joined_gradient want, got;
		random_branches(&j, &r, 2 + (int)below(&r, BRANCHES - 1), 10);
		joined_reference(&j, &want);
		uint64_t all = joined_bytes(&j);
		int journal = chance(&r, 50);
		assert_int_equal(neap_tier_open_memory(&inner, NEAP_INFINITE), 0);
		assert_int_equal(neap__fault_open(&tier, inner, &faults), 0);
		double rate = 20.0 * (double)(1 + below(&r, 8));
		neap_tier_set_rates(tier, rate, rate, 0);
		struct neap_sweep_options o = {.size = sizeof o,
			.memory = all / 6 + (uint64_t)below(&r, (int64_t)all),
			.strategy = chance(&r, 50) ? "pofo" : "auto",
			.params = {.effort = 10},
			.tiers = &tier,
			.ntiers = 1,
			.journal = journal ? folder : NULL,
			.journal_seconds = -1,
			.interrupted = stop};
		struct neap_join_ops ops = joined_ops(&j);
		int rc = neap_join_sweep_create(&sweep, &ops, &j, j.branches, j.count, &o);
		for (int part = 0; rc == 0; part++) {
			neap__join_poison(sweep, 1);
			faults.lose_put = chance(&r, 30) ? 1 + below(&r, 8) : 0;
			faults.fail_get = chance(&r, 30) ? 1 + below(&r, 8) : 0;
			faults.gone_after = chance(&r, 15) ? 1 + below(&r, 12) : 0;
			stop_after = journal && part < 3 ? 1 + (int)below(&r, 60) : 0;
			if (!journal || part == 0)
				joined_restart(&j);
			rc = joined_run(sweep, &j, &got, &stats);
			if (rc != NEAP_EINTERRUPTED)
				break;
			if (chance(&r, 50)) {
				neap_join_sweep_free(sweep);
				rc = neap_join_sweep_create(
					&sweep, &ops, &j, j.branches, j.count, &o);
				if (rc < 0)
					fail_msg("%s", neap_detail());
			}
			rc = 0;
		}
		if (rc != NEAP_EINFEASIBLE) {
			check_joined(&j, &got, &want, rc, &o);
			resumed += stats.spared > 0;
			lost += stats.recoveries > 0;
			fell += stats.recomputed > 0;
			neap_join_sweep_free(sweep);
		} else if (strstr(neap_detail(), "slow memory lost")) {
			neap_join_sweep_free(sweep);
			char path[64];
			snprintf(path, sizeof path, "%s/neap.journal", folder);
			unlink(path);
		}
		neap_tier_close(tier);
	}
	print_message("# %lld went on, %lld lost records, %lld did work again\n",
		(long long)resumed, (long long)lost, (long long)fell);
	assert_int_equal(rmdir(folder), 0);
	assert_true(resumed + lost + fell > 0);
}

static void refused(void **state)
{
	static struct joined j;
	struct random r = {5, 0};
	struct neap_join_sweep *sweep;
	struct neap_sweep_options o = {.size = sizeof o, .memory = 64};
	(void)state;
	random_branches(&j, &r, 2, 8);
	struct neap_join_ops ops = joined_ops(&j);
	assert_int_equal(neap_join_sweep_create(&sweep, &ops, &j, j.branches, 0, &o), NEAP_EUSAGE);
	assert_int_equal(neap_join_sweep_create(&sweep, &ops, &j, j.branches, 9, &o), NEAP_EUSAGE);
	assert_int_equal(
		neap_join_sweep_create(&sweep, &ops, &j, j.branches, 2, &o), NEAP_EINFEASIBLE);
	assert_non_null(strstr(neap_detail(), "bytes"));
	o.strategy = "join";
	assert_int_equal(neap_join_sweep_create(&sweep, &ops, &j, j.branches, 1, &o), NEAP_EUSAGE);
	assert_non_null(strstr(neap_detail(), "2 branches"));
	struct neap_tier *tier;
	assert_int_equal(neap_tier_open_memory(&tier, NEAP_INFINITE), 0);
	o.tiers = &tier;
	o.ntiers = 1;
	assert_int_equal(neap_join_sweep_create(&sweep, &ops, &j, j.branches, 2, &o), NEAP_EUSAGE);
	assert_non_null(strstr(neap_detail(), "no slow tiers"));
	o.ntiers = 0;
	neap_tier_close(tier);
	j.model[1].stages.flags ^= 1;
	assert_int_equal(neap_join_sweep_create(&sweep, &ops, &j, j.branches, 2, &o), NEAP_EUSAGE);
	assert_non_null(strstr(neap_detail(), "flags"));
	ops.turn = NULL;
	assert_int_equal(neap_join_sweep_create(&sweep, &ops, &j, j.branches, 2, &o), NEAP_EUSAGE);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(budgets),
		cmocka_unit_test(optima),
		cmocka_unit_test(storm),
		cmocka_unit_test(refused),
	};
	if (argc > 1)
		storms = strtoull(argv[1], NULL, 0);
	else if (TEST_SANITIZED)
		storms /= 6;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
