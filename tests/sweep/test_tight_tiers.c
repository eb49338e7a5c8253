/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sweeps of all executors over tiers of every kind that have room for a few records exactly, or a
 * little less or more, with budgets from the least up: equal steps, chains of unknown length, and
 * stages in one to four branches. The gradient is that of storing everything, to the bit; without a
 * fault no record is lost; `auto` takes every budget that it takes without tiers.
 *
 *     test_tight_tiers [PROBLEMS]    of each executor; NEAP_SEED: of the first one
 */
#include "chainmodel.h"

#include "joinmodel.h"
#include "random_tiers.h"
#include "sweep/stages/join_sweep.h"
#include "sweep/sweep.h"

#define TIERS 3
#define EXECUTORS 3
#define STEPS_MOST 300

static uint64_t problems = 30;

static struct {
	int64_t sweeps, refused, sent, lost, too_few;
} tally;

/* What is drawn for one sweep, whatever executes it. */
struct scene {
	uint64_t seed;
	struct random r;
	struct neap__faults faults[TIERS];
	struct neap_tier *tiers[TIERS];
	int ntiers, faulty, files; /* tiers; those that can have faults, and those of files */
	struct neap_sweep_options options;
	char kinds[TIERS * 40];
};

static void fail_scene(const struct scene *x, int line, const char *what)
{
	fail_msg("NEAP_SEED=%llu, line %d: %s; %s, %lld steps, %llu bytes, tiers:%s",
		(unsigned long long)x->seed, line, what, x->options.strategy,
		(long long)x->options.steps, (unsigned long long)x->options.memory, x->kinds);
}

#define CHECK(x, condition)                                                                        \
	do {                                                                                       \
		if (!(condition))                                                                  \
			fail_scene(x, __LINE__, #condition);                                       \
	} while (0)

static void draw_tiers(struct scene *x, const uint64_t *sizes, int nsizes, int64_t most)
{
	struct random *r = &x->r;
	x->ntiers = chance(r, 60) ? 1 : 1 + (int)below(r, TIERS);
	for (int i = 0; i < x->ntiers; i++) {
		int kind = (int)below(r, TIER_KINDS);
		uint64_t capacity = tight_capacity(r, kind, sizes, nsizes, most);
		double rate = (double)sizes[0] / (0.02 * (double)(1 << below(r, 10)));
		x->tiers[i] = tier_of_kind(kind, capacity, &x->faults[i]);
		(void)check_promise(x->tiers[i], sizes[below(r, nsizes)], capacity);
		neap_tier_set_rates(x->tiers[i], rate, rate, chance(r, 30) ? 0.3 : 0);
		x->faulty += tier_has_faults(kind);
		x->files += tier_in_file(kind);
		size_t at = strlen(x->kinds);
		snprintf(x->kinds + at, sizeof x->kinds - at, " %d:%llu", kind,
			(unsigned long long)capacity);
	}
	x->options = (struct neap_sweep_options){.size = sizeof x->options,
		.memory = 1,
		.tiers = x->tiers,
		.ntiers = chance(r, 30) ? x->ntiers : 0,
		.strategy = "auto",
		.params = {.effort = 10},
		.advance = 1,
		.record = 1 + (double)below(r, 2),
		.backward = (double)(1 + below(r, 3)),
		.no_replan = chance(r, 80) ? 1 : -1};
}

static void close_tiers(struct scene *x)
{
	for (int i = 0; i < x->ntiers; i++)
		neap_tier_close(x->tiers[i]);
}

static void draw_faults(struct scene *x)
{
	for (int i = 0; i < x->ntiers; i++) {
		struct neap__faults *f = &x->faults[i];
		int64_t *const rows[] = {&f->fail_put, &f->fail_get, &f->lose_put, &f->corrupt_put,
			&f->truncate_put, &f->gone_after};
		for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
			*rows[k] = chance(&x->r, 30) ? 1 + below(&x->r, 2 << below(&x->r, 5)) : 0;
		f->row = below(&x->r, 4);
		f->at_once = chance(&x->r, 50);
		f->no_format = chance(&x->r, 10);
		f->full_at = chance(&x->r, 20) ? (uint64_t)below(&x->r, 9000) : 0;
	}
}

static void end_faults(struct scene *x)
{
	memset(x->faults, 0, sizeof x->faults);
}

/* The budget that the line names which refused a budget of 1 byte. */
static uint64_t least_named(const struct scene *x, int rc)
{
	const char *least = strstr(neap_detail(), "t least ");
	least = least ? least : strstr(neap_detail(), "and a tape need "); /* of online */
	if (rc != NEAP_EINFEASIBLE || !least)
		fail_scene(x, __LINE__, neap_detail());
	return strtoull(least + strcspn(least, "0123456789"), NULL, 10);
}

/* From the least budget up. */
static void draw_budget(struct scene *x, uint64_t least)
{
	struct random *r = &x->r;
	const int64_t more[] = {
		0, below(r, 64), below(r, (int64_t)least), below(r, 8 * (int64_t)least)};
	int64_t staging = x->files && chance(r, 70) ? 4096 * (1 + below(r, 4)) : 0;
	x->options.memory = least + (uint64_t)(more[below(r, 4)] + staging);
	x->options.ntiers = x->ntiers;
}

/* 1 where there is a sweep. Strategies other than auto and online may need what is not there. */
static int created(const struct scene *x, int rc)
{
	int may_refuse = strcmp(x->options.strategy, "auto") != 0 && x->options.steps > 0;
	if (rc < 0 && (!may_refuse || (rc != NEAP_EINFEASIBLE && rc != NEAP_EUSAGE)))
		fail_scene(x, __LINE__, neap_detail());
	tally.refused += rc < 0;
	return rc == 0;
}

/* What holds for every run that ended well. */
static void check_stats(const struct scene *x, const struct neap_plan *plan,
	const struct neap_sweep_stats *stats, int clean, int as_planned)
{
	tally.sweeps++;
	tally.lost += stats->recoveries;
	CHECK(x, stats->late == 0);
	CHECK(x, stats->arena_bytes <= x->options.memory);
	CHECK(x, stats->peak_measured <= stats->arena_bytes);
	for (int i = 0; i < x->ntiers; i++) {
		tally.sent += stats->written[i] > 0;
		CHECK(x, !as_planned || stats->written[i] == plan->tiers[i].written);
		CHECK(x, !as_planned || stats->read[i] == plan->tiers[i].read);
	}
	CHECK(x, !clean || stats->recoveries == 0);
	CHECK(x, !as_planned || stats->recomputed == 0);
	CHECK(x, !as_planned || stats->advance_steps == plan->advance_steps);
	CHECK(x, !as_planned || stats->record_steps == plan->record_steps);
}

/* Chains of equal steps. */

struct chain_scene {
	struct scene x;
	struct model m;
	struct gradient want;
	struct neap_step_ops ops;
	int varies;
};

static uint32_t same(const struct model *m, int64_t t)
{
	(void)t;
	return m->extra_most;
}

static uint32_t bursts(const struct model *m, int64_t t)
{
	return neap__random_below(m->seed, NEAP__STREAM_TEST, 3, (uint64_t)t / 13, 4) ? 4 : 80;
}

static int ended(void *user, const void *state, int64_t t)
{
	const struct model *m = user;
	(void)state;
	return t == m->steps			  ? NEAP_ENDED
	       : t == m->steps - 1 && m->seed % 2 ? NEAP_LAST_STEP
						  : NEAP_GO_ON;
}

static void draw_chain(struct chain_scene *c, uint64_t seed, int unknown)
{
	struct random *r = &c->x.r;
	*c = (struct chain_scene){.x = {.seed = seed, .r = {seed, 0}}};
	model_init(&c->m, below(r, STEPS_MOST) + !unknown, seed);
	c->varies = chance(r, 30);
	c->m.extra_most = c->varies ? 80 : (uint32_t)below(r, 40);
	c->m.extra = c->varies ? bursts : same;
	c->want = reference(&c->m);
	c->ops = model_ops(&c->m, c->varies ? 200 + (size_t)below(r, 300) : 0);
	c->ops.tape_max_bytes = c->varies ? c->ops.tape_max_bytes : 0;
	if (unknown)
		c->ops.ended = ended;
	if (chance(r, 20))
		use_token(&c->ops);
	uint64_t tape = c->ops.tape_bytes;
	const uint64_t sizes[] = {96, 128, 128, tape, tape * (uint64_t)(1 + below(r, 16))};
	draw_tiers(&c->x, sizes, 5, 1 << below(r, 8));
	c->x.options.steps = unknown ? 0 : c->m.steps;
	c->x.options.strategy = unknown ? "online" : "auto";
	/* The callbacks of a state that lies elsewhere copy it to a buffer, and from there to
	 * tiers. */
	c->x.options.ntiers = c->ops.live_bytes ? c->x.ntiers : c->x.options.ntiers;
}

static const char *draw_strategy(struct random *r)
{
	int count = 0;
	while (neap_strategy_name(count))
		count++;
	return neap_strategy_name((int)below(r, count));
}

static void run_chain(struct chain_scene *c, struct neap_sweep *sweep, int clean)
{
	struct scene *x = &c->x;
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct gradient got;
	int known = !c->ops.ended;
	if (c->ops.live_bytes)
		model_start(c->m.elsewhere);
	if (run_model(sweep, &c->m, &got, &stats) < 0)
		fail_scene(x, __LINE__, neap_detail());
	if (c->m.broken[0])
		fail_scene(x, __LINE__, c->m.broken);
	CHECK(x, memcmp(&got, &c->want, sizeof got) == 0);
	CHECK(x, stats.backward_steps == c->m.steps);
	check_stats(x, neap_sweep_plan(sweep), &stats, clean,
		clean && known && !c->varies && x->options.no_replan > 0);
	CHECK(x, !clean || c->varies || stats.overflows + stats.recomputed == 0);
}

static void one_chain(uint64_t seed, int unknown)
{
	static struct chain_scene c;
	struct scene *x = &c.x;
	struct neap_sweep *sweep;
	draw_chain(&c, seed, unknown);
	draw_budget(x, least_named(x, neap_sweep_create(&sweep, &c.ops, &c.m, &x->options)));
	if (!unknown && chance(&x->r, 40))
		x->options.strategy = draw_strategy(&x->r);
	if (created(x, neap_sweep_create(&sweep, &c.ops, &c.m, &x->options))) {
		neap__sweep_poison(sweep, 1);
		for (int i = 0; i < 2; i++)
			run_chain(&c, sweep, 1);
		for (int i = 0; i < 3 && x->faulty; i++) {
			draw_faults(x);
			run_chain(&c, sweep, 0);
			end_faults(x);
			run_chain(&c, sweep, 1);
		}
		neap_sweep_free(sweep);
	}
	close_tiers(x);
	model_fini(&c.m);
}

static void one_known(uint64_t seed)
{
	one_chain(seed, 0);
}

static void one_unknown(uint64_t seed)
{
	one_chain(seed, 1);
}

/* Stages in one branch or several. */

struct join_scene {
	struct scene x;
	struct joined j;
	struct joined_gradient want;
};

/* Sizes of records: those of states and tapes of the model. */
static void draw_join(struct join_scene *c, uint64_t seed)
{
	struct random *r = &c->x.r;
	uint64_t sizes[8];
	*c = (struct join_scene){.x = {.seed = seed, .r = {seed, 0}}};
	int count = chance(r, 40) ? 1 : 2 + (int)below(r, BRANCHES - 1);
	random_branches(
		&c->j, r, count, 1 + below(r, 10 / count)); /* few: planning takes longest */
	joined_reference(&c->j, &c->want);
	for (int i = 0; i < 8; i++) {
		const struct stagemodel *m = &c->j.model[below(r, c->j.count)];
		int64_t at = below(r, m->n + 1);
		uint64_t bytes = i % 2 && at < m->n ? m->tape[at] : m->state[at];
		sizes[i] = bytes ? bytes : 8;
	}
	draw_tiers(&c->x, sizes, 8, 40);
	for (int k = 0; k < c->j.count; k++)
		c->x.options.steps += c->j.model[k].n;
}

static int run_join(struct join_scene *c, struct neap_join_sweep *sweep, int clean)
{
	struct scene *x = &c->x;
	struct neap_sweep_stats stats = {.size = sizeof stats};
	struct joined_gradient got;
	joined_restart(&c->j);
	int rc = joined_run(sweep, &c->j, &got, &stats);
	if (rc == NEAP_EINFEASIBLE && !clean && strstr(neap_detail(), "slow memory lost")) {
		tally.too_few++;
		return 0;
	}
	if (rc < 0)
		fail_scene(x, __LINE__, neap_detail());
	if (c->j.broken[0])
		fail_scene(x, __LINE__, c->j.broken);
	CHECK(x, memcmp(&got, &c->want, sizeof got) == 0);
	check_stats(x, neap_join_sweep_plan(sweep), &stats, clean, clean);
	return 1;
}

static void one_join(uint64_t seed)
{
	static struct join_scene c;
	struct scene *x = &c.x;
	struct neap_join_sweep *sweep;
	draw_join(&c, seed);
	struct neap_join_ops ops = joined_ops(&c.j);
	int rc = neap_join_sweep_create(&sweep, &ops, &c.j, c.j.branches, c.j.count, &x->options);
	if (rc == 0 && x->options.steps == 0) { /* states of 0 bytes fit in any budget */
		neap_join_sweep_free(sweep);
		close_tiers(x);
		return;
	}
	draw_budget(x, least_named(x, rc));
	if (chance(&x->r, 60))
		x->options.strategy = chance(&x->r, 80) ? "pofo" : "chain";
	if (created(x, neap_join_sweep_create(
			       &sweep, &ops, &c.j, c.j.branches, c.j.count, &x->options))) {
		neap__join_poison(sweep, 1);
		for (int i = 0; i < 2; i++)
			(void)run_join(&c, sweep, 1);
		for (int i = 0; i < 3 && x->faulty; i++) {
			draw_faults(x);
			(void)run_join(&c, sweep, 0);
			end_faults(x);
			(void)run_join(&c, sweep, 1);
		}
		neap_join_sweep_free(sweep);
	}
	close_tiers(x);
}

static void all_problems(void (*one)(uint64_t seed))
{
	uint64_t first = test_seed(1), seed = first;
	memset(&tally, 0, sizeof tally);
	while (seed - first < problems)
		one(seed++);
	print_message("# %llu problems, %lld refused; %lld runs, %lld sent, %lld lost, %lld too "
		      "tight\n",
		(unsigned long long)(seed - first), (long long)tally.refused,
		(long long)tally.sweeps, (long long)tally.sent, (long long)tally.lost,
		(long long)tally.too_few);
	assert_true(tally.sent > 0);
	assert_true(tally.lost > 0 || seed - first < 100);
}

static void chains(void **state)
{
	(void)state;
	all_problems(one_known);
}

static void unknown_lengths(void **state)
{
	(void)state;
	all_problems(one_unknown);
}

static void joins(void **state)
{
	(void)state;
	all_problems(one_join);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[EXECUTORS] = {
		cmocka_unit_test(chains),
		cmocka_unit_test(unknown_lengths),
		cmocka_unit_test(joins),
	};
	if (argc > 1)
		problems = strtoull(argv[1], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
