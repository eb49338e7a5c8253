/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chains whose length is not known in advance: against Revolve at every length, the
 * price beyond the optimal range, leaves against exact splits, the push interface.
 */
#include "plan_test.h"
#include "push.h"

static struct neap_plan planned(const struct neap_problem *p)
{
	struct neap_plan plan = {.size = sizeof plan};
	if (neap_plan_make(&plan, p, "online", NULL) < 0)
		fail_msg("online: %s", neap_detail());
	return plan;
}

static int64_t revolve(int64_t n, int64_t c)
{
	struct neap_problem p = classic_problem(n, (uint64_t)c);
	struct neap_plan plan = {.size = sizeof plan};
	assert_int_equal(neap_plan_make(&plan, &p, "revolve", NULL), 0);
	return plan.advance_steps;
}

static void check(const struct neap_problem *p, const struct neap_plan *plan)
{
	struct neap_verdict v = verified(p, plan);
	assert_int_equal(v.advance_steps, plan->advance_steps);
	assert_int_equal(v.record_steps, p->chain.steps);
	assert_int_equal(v.slots, plan->slots);
	assert_int_equal(v.peak_bytes, plan->peak_bytes);
	assert_true(v.peak_bytes <= p->memory);
	struct neap_simulation m = simulated(p, plan);
	assert_true(near(m.makespan, plan->makespan));
}

/* Up to (c+1)(c+2)/2 + 1 steps nothing is lost by not knowing. */
static void optimal_range(void **state)
{
	(void)state;
	for (int64_t c = 1; c <= 12; c++)
		for (int64_t n = 1; n <= (c + 1) * (c + 2) / 2 + 40; n++) {
			struct neap_problem p = classic_problem(n, (uint64_t)c);
			p.chain.slot_write = 0.25;
			p.chain.slot_read = 0.125;
			struct neap_plan plan = planned(&p);
			assert_true(plan.feasible);
			int64_t best = revolve(n, c);
			if (n <= (c + 1) * (c + 2) / 2 + 1 || c == 1)
				assert_int_equal(plan.advance_steps, best);
			assert_true(plan.advance_steps >= best);
			check(&p, &plan);
		}
}

/* The worst ratio to Revolve; with the argument "table" at more lengths, up to 10^6. */
static int whole_table;

static void price(void **state)
{
	static const struct {
		int64_t slots;
		double most;
	} rows[] = {{2, 1.14}, {3, 1.07}, {4, 1.06}, {5, 1.05}, {6, 1.035}, {8, 1.03}, {10, 1.03},
		{15, 1.03}, {20, 1.035}, {30, 1.025}, {40, 1.025}, {50, 1.025}};
	int64_t longest = whole_table ? 1000000 : 30000;
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		double worst = 1;
		int64_t at = 0, c = rows[i].slots;
		for (int64_t n = 2; n <= longest; n += n < 500 ? 1 : n / (whole_table ? 64 : 16)) {
			struct neap_problem p = classic_problem(n, (uint64_t)c);
			struct neap_plan plan = planned(&p);
			assert_true(plan.feasible);
			double ratio = (double)plan.advance_steps / (double)revolve(n, c);
			if (ratio > worst)
				worst = ratio, at = n;
			if (n < 3000)
				check(&p, &plan);
		}
		fprintf(stderr, "# %2lld slots: at most %.4f times Revolve's advances, at %lld\n",
			(long long)c, worst, (long long)at);
		assert_true(worst >= 1 && worst <= rows[i].most);
	}
}

/* Holds x_0 and a tape, which a chain without a known length cannot do without. */
static uint64_t least(const struct neap_problem *p)
{
	const struct neap_chain *c = &p->chain;
	uint64_t tape = c->tape_max > c->tape ? c->tape_max : c->tape;
	return (c->live ? c->live : c->state) + c->state + c->adjoint + tape;
}

/* In bytes: legal, within the budget, as predicted; near what `mixed` does knowing T. */
static void bytes(void **state)
{
	struct random r = {test_seed(21), 0};
	double sum = 0, worst = 0;
	int compared = 0;
	(void)state;
	for (int i = 0; i < 1500; i++) {
		struct neap_problem p = NEAP_PROBLEM_INIT;
		p.chain.steps = (int64_t)decades(&r, 2, 3000);
		p.chain.state = (uint64_t)decades(&r, 1, 1e5);
		p.chain.tape = (uint64_t)((double)p.chain.state * decades(&r, 0.02, 20));
		p.chain.adjoint = p.chain.state;
		p.chain.advance = p.chain.record = p.chain.backward = 1;
		p.chain.slot_read = maybe(&r, 0.5, 0.5);
		p.memory = least(&p);
		p.memory +=
			(uint64_t)(decades(&r, 0.01, 60) * (double)(p.chain.state + p.chain.tape));
		struct neap_plan plan = planned(&p), mixed = {.size = sizeof mixed};
		if (!plan.feasible && strstr(plan.why, "at most"))
			continue;
		if (!plan.feasible)
			fail_msg("T=%lld S=%llu A=%llu M=%llu: %s", (long long)p.chain.steps,
				(unsigned long long)p.chain.state, (unsigned long long)p.chain.tape,
				(unsigned long long)p.memory, plan.why);
		check(&p, &plan);
		assert_int_equal(neap_plan_make(&mixed, &p, "mixed", NULL), 0);
		/* Steps that mixed records in passing, knowing T, cannot be counted on here. */
		double known = (double)mixed.advance_steps;
		double loss =
			(double)plan.advance_steps / fmax(known, (double)p.chain.steps - 1) - 1;
		sum += loss;
		worst = fmax(worst, loss);
		compared++;
	}
	fprintf(stderr, "# %d plans in bytes: %.2f%% more advances on average, %.1f%% at worst\n",
		compared, 100 * sum / compared, 100 * worst);
	assert_true(compared > 1000 && sum / compared < 0.02);
}

static struct neap_verdict pushed(struct neap_problem p, int64_t stop, int64_t steps)
{
	struct push x = {.stop = stop, .steps = steps};
	struct neap_schedule *s;
	struct neap_verdict v = {.size = sizeof v};
	assert_int_equal(neap_online_create(&x.online, &p), 0);
	if (stop == 0) {
		x.told = 1;
		assert_int_equal(neap_online_finish(x.online, 0, steps), 0);
	}
	p.chain.steps = steps;
	assert_int_equal(neap_schedule_wrap(&s, push_next, NULL, &x), 0);
	if (neap_verify(&v, &p, s) < 0)
		fail_msg("stop %lld of %lld, %llu: %s", (long long)stop, (long long)steps,
			(unsigned long long)p.memory, neap_detail());
	neap_schedule_close(s);
	neap_online_free(x.online);
	return v;
}

static void push(void **state)
{
	(void)state;
	for (int64_t c = 1; c <= 12; c++)
		for (int64_t n = 0; n <= (c + 1) * (c + 2) / 2 + 30; n += n < 100 ? 1 : 7) {
			struct neap_problem p = classic_problem(n, (uint64_t)c);
			struct neap_verdict v = pushed(p, n, n);
			int64_t late = n ? revolve(n + 1, c) : 0;
			if (n <= (c + 1) * (c + 2) / 2 || c == 1)
				assert_int_equal(v.advance_steps, late);
			assert_true(v.advance_steps >= late && v.slots <= c);
			if (n == 0)
				continue;
			struct neap_plan plan = planned(&p);
			v = pushed(p, n - 1, n);
			assert_int_equal(v.advance_steps, plan.advance_steps);
			assert_int_equal(v.slots, plan.slots);
			v = pushed(p, n / 2, n);
			assert_int_equal(v.advance_steps, plan.advance_steps);
		}
	struct random r = {test_seed(22), 0};
	for (int i = 0; i < 300; i++) {
		struct neap_problem p = random_problem(&r, 1000);
		if (p.chain.flags & NEAP_CHAIN_CLASSIC)
			continue;
		p.ntiers = 0;
		p.chain.steps += 2;
		p.memory += least(&p);
		struct neap_verdict v = pushed(p, p.chain.steps, p.chain.steps);
		assert_true(v.arena_bytes <= p.memory);
	}
}

static void refusals(void **state)
{
	struct neap_problem p = classic_problem(0, 0);
	struct neap_online *o;
	struct neap_action a;
	(void)state;
	assert_int_equal(neap_online_create(&o, &p), NEAP_EINFEASIBLE);
	p.memory = 3;
	p.chain.join = 2;
	assert_int_equal(neap_online_create(&o, &p), NEAP_EUSAGE);
	p.chain.join = 0;
	assert_int_equal(neap_online_create(&o, &p), 0);
	assert_int_equal(neap_online_finish(o, 1, 1), NEAP_EUSAGE);
	for (int i = 0; i < 12; i++)
		assert_int_equal(neap_online_next(o, &a), 1);
	while (a.kind != NEAP_ADVANCE)
		assert_int_equal(neap_online_next(o, &a), 1);
	assert_int_equal(neap_online_finish(o, a.t0 - 1, a.t0), NEAP_EUSAGE);
	assert_int_equal(neap_online_finish(o, a.t1 + 1, a.t1 + 1), NEAP_EUSAGE);
	assert_int_equal(neap_online_finish(o, a.t1, a.t1 - 1), NEAP_EUSAGE);
	assert_int_equal(neap_online_finish(o, a.t1, a.t1), 0);
	assert_int_equal(neap_online_finish(o, a.t1, a.t1), NEAP_EUSAGE);
	neap_online_free(o);
	neap_online_free(NULL);
}

/* A long way: few states, long stretches, little time. */
static void far(void **state)
{
	struct neap_problem p = classic_problem(0, 20);
	struct neap_online *o;
	struct neap_action a;
	int64_t t = 0, saves = 0, actions = 0;
	(void)state;
	assert_int_equal(neap_online_create(&o, &p), 0);
	while (t < (int64_t)1 << 52) {
		assert_int_equal(neap_online_next(o, &a), 1);
		actions++;
		saves += a.kind == NEAP_SAVE;
		if (a.kind == NEAP_ADVANCE) {
			assert_true(a.t0 == t && a.t1 > t);
			t = a.t1;
		}
	}
	fprintf(stderr, "# 2^52 steps: %lld states kept, %lld actions\n", (long long)saves,
		(long long)actions);
	assert_true(saves < 3000000);
	neap_online_free(o);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(optimal_range),
		cmocka_unit_test(price),
		cmocka_unit_test(bytes),
		cmocka_unit_test(push),
		cmocka_unit_test(refusals),
		cmocka_unit_test(far),
	};
	whole_table = argc > 1 && strcmp(argv[1], "table") == 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
