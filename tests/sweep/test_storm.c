/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sweeps drawn at random: length, costs, strategy, budget down to the least, up to
 * three tiers of memory and file with capacities, engines, rates, delays, faults and
 * hangs, tapes of one size or many; some break off in a callback and run again, some plan
 * anew in between. The adjoint is right each time, to the bit, and nothing hangs.
 *   test_storm [SWEEPS]     NEAP_SEED
 */
#include "chainmodel.h"

#include "store/fault_tier.h"
#include "store/mover.h"
#include "sweep/sweep.h"
#include "sys/clock.h"
#include "store/stall_injection.h"

#include <signal.h>

#define EFFORT 10
#define STUCK 300 /* seconds a sweep may take, sanitizers and a busy machine included */

static uint64_t rounds = 250;

/* What one round is about, all drawn from its seed. */
struct round {
	uint64_t seed, draws;
	struct model model;
	struct gradient want;
	struct neap__faults faults[NEAP_TIERS_MAX];
	struct neap_tier *tiers[NEAP_TIERS_MAX];
	int ntiers;
	struct neap_step_ops ops;
	struct neap_sweep_options options;
	char about[200];
};

static struct {
	int64_t sweeps, refused, recoveries, overflows, broken_off, by_file, least, late, patient,
		unknown;
} totals;

static struct neap__stall_injection stalls; /* of the files of a round */

static char now[400]; /* for the alarm */

static void stuck(int signal)
{
	(void)signal;
	static const char text[] = "Bail out! a sweep hangs: ";
	(void)!write(1, text, sizeof text - 1);
	(void)!write(1, now, strlen(now));
	(void)!write(1, "\n", 1);
	_exit(1);
}

static uint64_t draw(struct round *r, uint64_t n)
{
	return neap__random_below(r->seed, NEAP__STREAM_TEST, 78, r->draws++, n);
}

/* Between 1 and 2^doublings, each doubling as likely as another. */
static uint64_t draw_size(struct round *r, unsigned doublings)
{
	uint64_t top = UINT64_C(1) << draw(r, doublings + 1);
	return top / 2 + 1 + draw(r, top - top / 2);
}

static uint32_t bursts(const struct model *m, int64_t t)
{
	return neap__random_below(m->seed, NEAP__STREAM_TEST, 3, (uint64_t)t / 13, 4) ? 4 : 80;
}

static void draw_faults(struct round *r, struct neap__faults *f)
{
	int64_t *const at[] = {&f->fail_put, &f->fail_get, &f->lose_put, &f->corrupt_put,
		&f->truncate_put, &f->gone_after};
	if (draw(r, 3) == 0)
		f->delay_us = (unsigned)draw(r, 300);
	if (draw(r, 2))
		return;
	for (size_t i = 0; i < sizeof at / sizeof at[0]; i++)
		if (draw(r, 4) == 0)
			*at[i] = (int64_t)draw_size(r, 8);
	f->row = (int64_t)draw(r, 4);
	f->at_once = (int)draw(r, 2);
	f->code = draw(r, 2) ? -ENOSPC : 0;
	f->no_format = draw(r, 20) == 0;
	if (draw(r, 6) == 0)
		f->full_at = draw_size(r, 16);
}

/* Calls that never end, of the tiers or deep in the engines of files. */
static void draw_hangs(struct round *r)
{
	memset(&stalls, 0, sizeof stalls);
	r->options.patience = draw(r, 2) ? 1e-3 * (double)draw_size(r, 3) : 0;
	if (r->options.patience == 0)
		return;
	totals.patient++;
	for (int i = 0; i < NEAP_TIERS_MAX && draw(r, 3); i++) {
		struct neap__faults *f = &r->faults[i];
		int64_t *const at[] = {&f->hang_put, &f->hang_get, &f->hang_after};
		*at[draw(r, 3)] = (int64_t)draw_size(r, 5);
	}
	if (draw(r, 2))
		*(draw(r, 2) ? &stalls.write : &stalls.read) = (int64_t)draw_size(r, 5);
	stalls.row = draw(r, 4) ? (int64_t)draw_size(r, 6) : INT64_MAX / 2;
}

/* What hangs comes back into what was left behind for it, which goes then. */
static void let_go(void)
{
	atomic_store(&stalls.released, 1);
	alarm(STUCK);
	while (neap__movers_left())
		neap__sleep(1e-4);
	alarm(0);
}

/* Which engine moves the bytes of a file is asked for by its name. */
static void draw_engine(struct round *r)
{
	int engines = 0;
	while (neap__io_engine_name(engines))
		engines++;
	if (draw(r, 4) == 0)
		unsetenv("NEAP_IO");
	else
		setenv("NEAP_IO", neap__io_engine_name((int)draw(r, (uint64_t)engines)), 1);
}

static struct neap_tier *draw_inner(struct round *r)
{
	struct neap_tier *tier = NULL;
	struct neap_file_options o = {.size = sizeof o, .page_cache = draw(r, 4) == 0};
	int rc;
	if (draw(r, 2)) {
		rc = neap_tier_open_memory(&tier, draw(r, 3) ? NEAP_INFINITE : draw_size(r, 18));
	} else {
		o.capacity = draw(r, 3) ? UINT64_C(64) << 20 : 4096 * draw_size(r, 6);
		draw_engine(r);
		rc = neap_tier_open_file(&tier, "/var/tmp", &o);
		totals.by_file++;
	}
	if (rc < 0)
		fail_msg("%s: %s", r->about, neap_detail());
	double rate = (double)draw_size(r, 34);
	neap_tier_set_rates(tier, rate, rate * (1 + (double)draw(r, 3)), draw(r, 2) ? 1e-5 : 0);
	return tier;
}

static void draw_tiers(struct round *r)
{
	r->ntiers = (int)draw(r, 4);
	for (int i = 0; i < r->ntiers; i++) {
		struct neap_tier *inner = draw_inner(r);
		draw_faults(r, &r->faults[i]);
		assert_int_equal(neap__fault_open(&r->tiers[i], inner, &r->faults[i]), 0);
	}
}

static const char *draw_strategy(struct round *r)
{
	int count = 0;
	while (neap_strategy_name(count))
		count++;
	return draw(r, 4) ? neap_strategy_name((int)draw(r, (uint64_t)count)) : "auto";
}

static void draw_options(struct round *r)
{
	double patience = r->options.patience;
	r->options = (struct neap_sweep_options){.size = sizeof r->options,
		.steps = r->model.steps,
		.memory = 600 + draw_size(r, 17),
		.strategy = draw_strategy(r),
		.params = {.effort = EFFORT},
		.tiers = r->tiers,
		.ntiers = r->ntiers,
		.patience = patience,
		.advance = 1e-6 * (double)draw_size(r, 8),
		.record = 1e-6 * (double)draw_size(r, 8),
		.backward = 1e-6 * (double)draw_size(r, 8)};
	if (r->options.record < r->options.advance)
		r->options.record = r->options.advance;
	snprintf(r->about, sizeof r->about, "NEAP_SEED=%llu T=%lld %s memory=%llu tiers=%d",
		(unsigned long long)r->seed, (long long)r->options.steps, r->options.strategy,
		(unsigned long long)r->options.memory, r->ntiers);
	snprintf(now, sizeof now, "%s", r->about);
}

static int ended(void *user, const void *state, int64_t t)
{
	const struct model *m = user;
	(void)state;
	return t == m->steps ? NEAP_ENDED : t == m->steps - 1 ? (int)(m->seed % 2 * 2) : NEAP_GO_ON;
}

/* One sweep in six is told the length of its chain by the model. */
static void draw_unknown(struct round *r)
{
	if (draw(r, 6))
		return;
	r->ops.ended = ended;
	r->options.strategy = "online";
	snprintf(r->about + strlen(r->about), sizeof r->about - strlen(r->about), " unknown");
	snprintf(now, sizeof now, "%s", r->about);
	totals.unknown++;
}

/* The budget that a refusal names. */
static uint64_t named_budget(void)
{
	const char *at = strstr(neap_detail(), "at least ");
	return at ? strtoull(at + strlen("at least "), NULL, 10) : 0;
}

/* Plans; one in three with the least budget that the strategy names. 0: it cannot at all. */
static int draw_sweep(struct round *r, struct neap_sweep **sweep)
{
	int least = draw(r, 3) == 0;
	if (least)
		r->options.memory = 1;
	int rc = neap_sweep_create(sweep, &r->ops, &r->model, &r->options);
	for (int i = 0; rc == NEAP_EINFEASIBLE && named_budget() && i < 4; i++) {
		r->options.memory = named_budget();
		rc = neap_sweep_create(sweep, &r->ops, &r->model, &r->options);
	}
	totals.least += least && rc == 0;
	if (rc == 0)
		return 1;
	if (rc != NEAP_EINFEASIBLE)
		fail_msg("%s: %s", r->about, neap_detail());
	totals.refused++;
	return 0;
}

static void check_run(struct round *r, struct neap_sweep *sweep)
{
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct gradient got;
	struct model *m = &r->model;
	alarm(STUCK);
	int rc = run_model(sweep, m, &got, &stats);
	alarm(0);
	if (rc < 0 || m->broken[0] || memcmp(&got, &r->want, sizeof got) != 0)
		fail_msg("%s: %d %s; %s", r->about, rc, rc < 0 ? neap_detail() : "gradient",
			m->broken);
	if (stats.peak_measured > stats.arena_bytes || stats.arena_bytes > r->options.memory)
		fail_msg("%s: over budget", r->about);
	totals.sweeps++;
	totals.recoveries += stats.recoveries;
	totals.overflows += stats.overflows;
	totals.late += stats.late;
	if (stats.late && r->options.patience == 0)
		fail_msg("%s: late without patience", r->about);
}

/* A callback fails somewhere: its answer comes back, nothing flies, and the sweep can run again. */
static void break_off(struct round *r, struct neap_sweep *sweep)
{
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct gradient got;
	r->model.fail_at = (int64_t)draw_size(r, 9);
	alarm(STUCK);
	int rc = run_model(sweep, &r->model, &got, &stats);
	alarm(0);
	if (rc != 0 && rc != -EDOM)
		fail_msg("%s: a callback's failure became %d %s", r->about, rc, neap_detail());
	totals.broken_off += rc != 0;
	r->model.fail_at = 0;
}

static void change_plan(struct round *r, struct neap_sweep *sweep)
{
	struct neap_sweep_options changed = r->options;
	if (!r->ops.ended)
		changed.strategy = draw_strategy(r);
	changed.backward *= 1 + (double)draw(r, 8);
	int rc = neap_sweep_replan(sweep, &r->ops, &changed);
	if (rc < 0 && rc != NEAP_EINFEASIBLE)
		fail_msg("%s: plan for %s anew: %s", r->about, changed.strategy, neap_detail());
}

static void one_round(uint64_t seed)
{
	struct round r = {.seed = seed};
	struct neap_sweep *sweep;
	int64_t steps = (int64_t)draw_size(&r, 10) - (int64_t)draw(&r, 2);

	model_init(&r.model, steps, seed);
	if (draw(&r, 2)) {
		r.model.extra_most = 80;
		r.model.extra = bursts;
	}
	r.want = reference(&r.model);
	r.ops = model_ops(&r.model, r.model.extra_most ? 160 + 64 * draw(&r, 4) : 0);
	if (draw(&r, 5) == 0)
		use_token(&r.ops);
	draw_hangs(&r);
	neap__io_engine_stalls = &stalls;
	draw_tiers(&r);
	neap__io_engine_stalls = NULL;
	draw_options(&r);
	draw_unknown(&r);
	if (draw_sweep(&r, &sweep)) {
		neap__sweep_poison(sweep, 1);
		if (draw(&r, 4) == 0)
			break_off(&r, sweep);
		check_run(&r, sweep);
		if (draw(&r, 4) == 0)
			change_plan(&r, sweep);
		if (draw(&r, 3) == 0)
			check_run(&r, sweep);
		neap_sweep_free(sweep);
	}
	for (int i = 0; i < r.ntiers; i++)
		neap_tier_close(r.tiers[i]);
	let_go();
	model_fini(&r.model);
}

static void any_sweep_is_exact(void **state)
{
	uint64_t seed = test_seed(1);
	(void)state;
	signal(SIGALRM, stuck);
	for (uint64_t i = 0; i < rounds || totals.sweeps < (int64_t)rounds; i++)
		one_round(seed + i);
	print_message("# %lld sweeps, %lld at a least budget, %lld broken off before, %lld plans "
		      "refused, %lld file tiers, %lld recoveries, %lld overflows, %lld late in "
		      "%lld sweeps with patience, %lld of unknown length\n",
		(long long)totals.sweeps, (long long)totals.least, (long long)totals.broken_off,
		(long long)totals.refused, (long long)totals.by_file, (long long)totals.recoveries,
		(long long)totals.overflows, (long long)totals.late, (long long)totals.patient,
		(long long)totals.unknown);
	assert_true(
		rounds < 100 || (totals.recoveries > 0 && totals.overflows > 0 && totals.late > 0));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(any_sweep_is_exact)};
	if (argc > 1)
		rounds = strtoull(argv[1], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
