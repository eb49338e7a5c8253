/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chains whose length is not known in advance, with a slow tier: every sweep is legal, wherever
 * the chain ends and whatever the tier is; and its seconds are near those of `auto`, which is
 * told the length.
 *
 *     test_online_tier           what `make check` runs
 *     test_online_tier N         N random problems instead of 400
 */
#include "plan_test.h"
#include "push.h"

static int rounds = 100;

static void print_problem(const struct neap_problem *p)
{
	const struct neap_chain *c = &p->chain;
	fprintf(stderr,
		"# T=%lld S=%llu A=%llu max=%llu adjoint=%llu live=%llu M=%llu f=%g r=%g b=%g "
		"flags=%u log=%llu\n",
		(long long)c->steps, (unsigned long long)c->state, (unsigned long long)c->tape,
		(unsigned long long)c->tape_max, (unsigned long long)c->adjoint,
		(unsigned long long)c->live, (unsigned long long)p->memory, c->advance, c->record,
		c->backward, c->flags, (unsigned long long)c->log);
	for (int i = 0; i < p->ntiers; i++) {
		const struct neap_tier_spec *t = &p->tiers[i];
		fprintf(stderr,
			"# tier: capacity %llu, write %g + %g, read %g + %g, staging %llu, "
			"flags %u\n",
			(unsigned long long)t->capacity, t->write_rate, t->write_fixed,
			t->read_rate, t->read_fixed, (unsigned long long)t->staging, t->flags);
	}
}

/* Seconds of the sweep whose length is told as in `how`; 0: refused. */
static double pushed_as(
	const struct neap_problem *problem, const struct push *how, int only_simulate)
{
	struct neap_problem p = *problem;
	struct push x;
	struct neap_verdict v = {.size = sizeof v};
	struct neap_simulation m = {.size = sizeof m};
	for (int simulate = only_simulate; simulate < 2; simulate++) {
		struct neap_schedule *s;
		x = *how;
		if (neap_online_create(&x.online, &p) < 0)
			return 0;
		assert_int_equal(neap_schedule_wrap(&s, push_next, NULL, &x), 0);
		int rc = simulate ? neap_simulate(&m, &p, s) : neap_verify(&v, &p, s);
		if (rc < 0) {
			print_problem(&p);
			fail_msg("%s: %s", simulate ? "simulate" : "verify", neap_detail());
		}
		neap_schedule_close(s);
		neap_online_free(x.online);
	}
	if (v.arena_bytes > p.memory) {
		print_problem(&p);
		fail_msg("%llu bytes", (unsigned long long)v.arena_bytes);
	}
	for (int i = 0; i < p.ntiers; i++)
		assert_true(v.tiers[i].peak_bytes <= p.tiers[i].capacity);
	return m.makespan;
}

/* The length is told at step `stop` of the sweep. */
static double pushed(const struct neap_problem *p, int64_t stop, int only_simulate)
{
	return pushed_as(p, &(struct push){.stop = stop, .steps = p->chain.steps}, only_simulate);
}

/* How long before its end the length of a chain is known. */
static int64_t maybe_early(struct random *r, int64_t steps)
{
	double kind = uniform(r);
	return kind < 0.6 ? 0 : kind < 0.8 ? 1 : below(r, steps);
}

static void any_problem(void **state)
{
	struct random r = {test_seed(31), 0};
	int run = 0, with_tier = 0;
	(void)state;
	for (int i = 0; i < rounds; i++) {
		struct neap_problem p = random_problem(&r, 3000);
		if (p.chain.flags & NEAP_CHAIN_CLASSIC)
			continue;
		p.chain.steps += 2;
		double seconds = pushed(&p, p.chain.steps - maybe_early(&r, p.chain.steps), 0);
		struct neap_plan plan = {.size = sizeof plan};
		if (neap_plan_make(&plan, &p, "online", NULL) < 0) {
			print_problem(&p);
			fail_msg("online: %s", neap_detail());
		}
		if (!plan.feasible)
			continue;
		struct neap_verdict v = verified(&p, &plan);
		assert_int_equal(v.peak_bytes, plan.peak_bytes);
		assert_int_equal(v.advance_steps, plan.advance_steps);
		assert_true(near(simulated(&p, &plan).makespan, plan.makespan));
		run += seconds > 0;
		with_tier += plan.tier > 0;
	}
	fprintf(stderr, "# %d problems run, %d of them with a tier\n", run, with_tier);
	assert_true(run > rounds / 3 && with_tier > rounds / 10);
}

/* Steps of one length, a tier that writes a state in tau steps. */
static struct neap_problem with_disk(int64_t steps, double tau)
{
	struct neap_problem p = NEAP_PROBLEM_INIT;
	p.chain.steps = steps;
	p.chain.state = p.chain.tape = p.chain.adjoint = 1000;
	p.chain.advance = p.chain.record = p.chain.backward = 1;
	p.memory = 50 * p.chain.state;
	p.ntiers = 1;
	p.tiers[0] = (struct neap_tier_spec){.name = "disk",
		.capacity = NEAP_INFINITE,
		.write_rate = (double)p.chain.state / tau,
		.read_rate = (double)p.chain.state / tau};
	return p;
}

/* Fifty lengths, three disks: against `auto`, told the length beforehand. */
static void near_auto(void **state)
{
	static const double disks[] = {3, 30, 300};
	struct random r = {test_seed(32), 0};
	(void)state;
	for (int d = 0; d < 3; d++) {
		double sum = 0, worst = 0;
		int64_t at = 0;
		for (int i = 0; i < 50; i++) {
			struct neap_problem p =
				with_disk((int64_t)decades(&r, 20, 30000), disks[d]);
			struct neap_plan plan = {.size = sizeof plan};
			assert_int_equal(neap_plan_make(&plan, &p, "auto", NULL), 0);
			double ratio = pushed(&p, p.chain.steps, 1) / plan.makespan;
			sum += ratio / 50;
			if (ratio > worst)
				worst = ratio, at = p.chain.steps;
		}
		fprintf(stderr,
			"# a state written in %g steps: %.2f%% over `auto` on average, "
			"%.1f%% at worst, at %lld steps\n",
			disks[d], 100 * (sum - 1), 100 * (worst - 1), (long long)at);
		assert_true(sum < 1.035 && worst < 1.15);
	}
}

/* A tier that holds few states: places are used again, every second state goes. */
static void few_places(void **state)
{
	(void)state;
	for (int64_t states = 2; states <= 40; states += 1 + states / 4)
		for (int64_t steps = 2; steps < 6000; steps += 1 + steps / 3) {
			struct neap_problem p = with_disk(steps, 5);
			p.tiers[0].capacity = (uint64_t)states * p.chain.state;
			assert_true(pushed(&p, steps, 0) > 0);
		}
}

/* A full tier: tapes that were to be sent are still in memory, between tapes that were dropped. */
static void sent_too_late(void **state)
{
	(void)state;
	for (int64_t steps = 200; steps < 300; steps++) {
		struct neap_problem p = with_disk(steps, 5);
		p.chain.state = p.chain.adjoint = 128;
		p.chain.tape = 192;
		p.memory = 12864;
		p.tiers[0] = (struct neap_tier_spec){.name = "disk",
			.capacity = 3261,
			.staging = 4096,
			.write_rate = 9.375,
			.read_rate = 9.375,
			.write_fixed = 0.3,
			.read_fixed = 0.3};
		assert_true(pushed(&p, steps, 0) > 0);
	}
}

/* A tier that holds a few records, and is slow: many tapes are to be sent when it is full. */
static struct neap_problem with_small_disk(struct random *r)
{
	struct neap_problem p = NEAP_PROBLEM_INIT;
	p.chain.steps = 1 + below(r, 400);
	p.chain.state = p.chain.adjoint = (uint64_t)64 << below(r, 3);
	p.chain.tape = 1 + (uint64_t)below(r, 600);
	p.chain.advance = 1;
	p.chain.record = 1 + (double)below(r, 2);
	p.chain.backward = 1 + (double)below(r, 3);
	p.memory = 3 * p.chain.state + (uint64_t)(4 + below(r, 100)) * p.chain.tape;
	p.ntiers = 1;
	double rate = (double)p.chain.state * (1 + (double)below(r, 400)) / 1000;
	p.tiers[0] = (struct neap_tier_spec){.name = "disk",
		.capacity = p.chain.state * (uint64_t)below(r, 60) +
			    p.chain.tape * (uint64_t)below(r, 20),
		.write_rate = rate,
		.read_rate = rate};
	return p;
}

static void small_disks(void **state)
{
	struct random r = {test_seed(33), 0};
	(void)state;
	for (int i = 0; i < 10 * rounds; i++) {
		struct neap_problem p = with_small_disk(&r);
		(void)pushed(&p, p.chain.steps - maybe_early(&r, p.chain.steps), 0);
	}
}

/* Runs forward until the length is told. The length; 0: no other actions followed. */
static int64_t length_told(const struct neap_problem *p, struct push x)
{
	struct neap_action a;
	assert_int_equal(neap_online_create(&x.online, p), 0);
	while (!x.told && x.live < 50 * p->chain.steps)
		assert_int_equal(push_next(&x, &a), 1);
	neap_online_free(x.online);
	return x.told ? x.steps : 0;
}

/* The length is told after SAVE, DROP, PUT or WAIT, with an action planned that goes forward. */
static void told_between(void **state)
{
	struct random r = {test_seed(34), 0};
	int run = 0;
	(void)state;
	for (int i = 0; i < 2 * rounds; i++) {
		struct neap_problem p = with_small_disk(&r);
		struct push how = {.stop = below(&r, p.chain.steps),
			.steps = p.chain.steps,
			.others = 1 + (int)below(&r, 3)};
		p.chain.steps = length_told(&p, how);
		run += p.chain.steps > 0 && pushed_as(&p, &how, 0) > 0;
	}
	assert_true(run > rounds);
}

/* Checkpoints that are given are a limit beside a tier, too; a single one takes no tier. */
static void few_checkpoints(void **state)
{
	(void)state;
	struct neap_problem p = with_disk(3000, 5);
	struct neap_plan free_choice = {.size = sizeof free_choice};
	assert_int_equal(neap_plan_make(&free_choice, &p, "online", NULL), 0);
	assert_true(free_choice.tier == 1);
	for (int64_t n = 1; n <= free_choice.params.checkpoints + 1; n++) {
		struct neap_params given = {.checkpoints = n};
		struct neap_plan plan = {.size = sizeof plan};
		assert_int_equal(neap_plan_make(&plan, &p, "online", &given), 0);
		int64_t taken =
			n < free_choice.params.checkpoints ? n : free_choice.params.checkpoints;
		assert_int_equal(plan.params.checkpoints, taken);
		assert_int_equal(plan.tier, n > 1);
		assert_true(verified(&p, &plan).slots <= n + 1);
		assert_true(fabs(simulated(&p, &plan).makespan / plan.makespan - 1) < 1e-9);
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_problem),
		cmocka_unit_test(near_auto),
		cmocka_unit_test(few_places),
		cmocka_unit_test(sent_too_late),
		cmocka_unit_test(small_disks),
		cmocka_unit_test(told_between),
		cmocka_unit_test(few_checkpoints),
	};
	if (argc > 1)
		rounds = atoi(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
