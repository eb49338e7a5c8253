/* SPDX-License-Identifier: Apache-2.0 */
/* `mixed`: the table of slots that hold a state or a tape, exhaustive search in
   bytes, plans that are what their schedules do, long chains. */
#include "plan_test.h"
#include "time_limit.h"

static struct neap_plan planned(const struct neap_problem *p, const char *strategy)
{
	struct neap_plan plan = {.size = sizeof plan};
	if (neap_plan_make(&plan, p, strategy, NULL) < 0)
		fail_msg("%s: %s", strategy, neap_detail());
	return plan;
}

static struct neap_problem mixed_problem(int64_t steps, uint64_t slots)
{
	struct neap_problem p = classic_problem(steps, slots);
	p.chain.flags |= NEAP_CHAIN_MIXED;
	return p;
}

/* Plan, verdict and simulation agree. */
static void agree(const struct neap_problem *p, const struct neap_plan *plan)
{
	struct neap_verdict v = verified(p, plan);
	struct neap_simulation m = simulated(p, plan);
	assert_int_equal(v.advance_steps, plan->advance_steps);
	assert_int_equal(v.record_steps, p->chain.steps);
	assert_int_equal(v.peak_bytes, plan->peak_bytes);
	assert_int_equal(v.arena_bytes, plan->arena_bytes);
	assert_int_equal(v.slots, plan->slots);
	assert_true(plan->arena_bytes <= p->memory);
	assert_true(near(m.makespan, plan->makespan));
	assert_true(plan->bound <= plan->makespan * (1 + 1e-12));
}

static void row(long long n, long long s, long long total)
{
	struct neap_problem p = mixed_problem(n, (uint64_t)s);
	struct neap_plan plan = planned(&p, "mixed");
	assert_true(plan.feasible);
	if (plan.advance_steps + plan.record_steps != total)
		fail_msg("n=%lld s=%lld: %lld, not %lld", n, s,
			(long long)(plan.advance_steps + plan.record_steps), total);
	agree(&p, &plan);
	assert_true(plan.makespan <= planned(&p, "revolve").makespan);
}

static void embedded(void **state)
{
	static const int rows[][3] = {{1, 1, 1}, {2, 1, 2}, {3, 1, 5}, {3, 2, 3}, {4, 2, 6},
		{10, 3, 20}, {20, 4, 46}, {50, 4, 164}, {75, 3, 371}, {100, 5, 352}, {100, 10, 237},
		{100, 20, 184}, {100, 99, 100}, {150, 4, 727}, {200, 1, 20099}, {200, 8, 630}};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		if (i != 5) /* counted below */
			row(rows[i][0], rows[i][1], rows[i][2]);
	struct neap_problem p = mixed_problem(5, 0);
	struct neap_plan plan = planned(&p, "mixed");
	assert_false(plan.feasible);
	assert_int_equal(plan.least_bytes, 1);
	p = classic_problem(5, 3);
	assert_false(planned(&p, "mixed").feasible);
	p.chain.steps = 1;
	assert_true(planned(&p, "mixed").feasible);
}

/* E and F of slots that hold either, with tapes kept while other parts are redone. */
static int either_e[41][41], either_f[41][41];

static int least(int a, int b)
{
	return a < b ? a : b;
}

static void either_slots(void **state)
{
	const int never = 1000000;
	(void)state;
	for (int n = 0; n <= 40; n++)
		for (int s = 0; s <= 40; s++) {
			int e = never, f = never;
			if (n <= 1)
				e = s || n == 0 ? n : never, f = n;
			for (int y = 1; n > 1 && s && y <= n; y++) {
				if (y < n)
					e = least(e, y + either_f[n - y][s - 1] + either_e[y][s]);
				if (y >= 2 && s >= 2)
					e = least(
						e, y + either_f[n - y][s - 2] + either_e[y - 1][s]);
			}
			if (n > 1 && s) {
				e = least(e, 1 + either_f[n - 1][s - 1]);
				f = e;
			}
			either_e[n][s] = e;
			either_f[n][s] = f;
		}
	for (int n = 1; n <= 40; n++)
		for (int s = 1; s <= 40; s++)
			row(n, s, either_f[n][s]);
}

static void table(void **state)
{
	char path[4200], line[256];
	int rows = 0;
	(void)state;
	snprintf(path, sizeof path, "%s/mixed.csv", test_oracles());
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		long long n, s, total;
		if (sscanf(line, "%lld,%lld,%lld", &n, &s, &total) != 3)
			continue;
		row(n, s, total);
		rows++;
	}
	fclose(f);
	assert_true(rows > 50);
}

static struct neap_problem bytes_problem(struct random *r, double steps_most)
{
	struct neap_problem p = NEAP_PROBLEM_INIT;
	struct neap_chain *c = &p.chain;
	c->steps = (int64_t)decades(r, 1, steps_most);
	c->state = (uint64_t)decades(r, 1, 1000);
	c->tape = (uint64_t)((double)c->state * decades(r, 0.02, 20));
	c->tape_max = (uint64_t)maybe(r, 0.3, (double)c->tape * decades(r, 1, 3));
	c->adjoint = (uint64_t)maybe(r, 0.7, (double)c->state);
	c->advance = decades(r, 1e-3, 1);
	c->record = c->advance * decades(r, 1, 3);
	c->backward = maybe(r, 0.9, 1);
	c->slot_write = maybe(r, 0.4, decades(r, 1e-3, 1));
	c->slot_read = maybe(r, 0.4, decades(r, 1e-3, 1));
	double all = (double)(c->state + c->tape) * (double)(c->steps + 1);
	p.memory = neap_problem_least(&p) +
		   (uint64_t)maybe(r, 0.9, fmin(all, (double)c->state * decades(r, 1, 300)));
	return p;
}

/* C(l,j) of leaf_revolve.h by its definition. */
static int64_t search(const struct neap_problem *p, int64_t pool)
{
	static int64_t c[64][161];
	int64_t s = (int64_t)p->chain.state, a = (int64_t)p->chain.tape, never = 1 << 28;
	for (int64_t j = 63; j >= 0; j--)
		for (int64_t l = 0; l <= p->chain.steps; l++) {
			int fits = l <= p->chain.steps && j * s + l * a <= pool;
			c[j][l] = fits ? 0 : never;
			for (int64_t y = 1; !fits && j < 63 && y < l; y++) {
				int64_t cost = y + c[j + 1][l - y] + c[j][y];
				c[j][l] = cost < c[j][l] ? cost : c[j][l];
			}
		}
	return c[0][p->chain.steps];
}

static void in_bytes(void **state)
{
	(void)state;
	struct random r = {test_seed(11), 0};
	double worst = 0, sum = 0;
	int count = 0;
	for (int i = 0; i < 400; i++) {
		struct neap_problem p = bytes_problem(&r, 160);
		struct neap_plan plan = planned(&p, "mixed");
		assert_true(plan.feasible);
		agree(&p, &plan);
		uint64_t fixed = p.chain.adjoint + p.chain.state +
				 (p.chain.tape_max ? p.chain.tape_max - p.chain.tape : 0);
		int64_t best = search(&p, (int64_t)(p.memory - fixed));
		if (best >= 1 << 28)
			continue; /* more slots than the search has */
		if (plan.advance_steps < best)
			fail_msg("%lld below %lld", (long long)plan.advance_steps, (long long)best);
		if (best == 0) {
			assert_int_equal(plan.advance_steps, 0);
			continue;
		}
		double loss = (double)plan.advance_steps / (double)best - 1;
		worst = fmax(worst, loss);
		sum += loss;
		count++;
	}
	fprintf(stderr, "# %d plans above the optimum by %.3f%% on average, %.2f%% at most\n",
		count, 100 * sum / count, 100 * worst);
	assert_true(count > 100 && worst < 0.02 && sum / count < 0.001);
}

/* Longer than the exact table: near the bound, as the schedule says. */
static void long_chains(void **state)
{
	(void)state;
	struct random r = {test_seed(12), 0};
	double sum = 0, worst = 0, slowest = 0;
	int count = 0;
	for (int i = 0; i < 600; i++) {
		struct neap_problem p = bytes_problem(&r, i % 4 ? 30000 : 1e9);
		double began = test_seconds();
		struct neap_plan plan = planned(&p, "mixed");
		slowest = fmax(slowest, test_seconds() - began);
		if (!plan.feasible) {
			p.memory = plan.least_bytes;
			assert_true(planned(&p, "mixed").feasible);
			continue;
		}
		assert_true(plan.bound <= plan.makespan * (1 + 1e-12));
		if (plan.advance_steps < 1000000)
			agree(&p, &plan);
		struct neap_plan other = planned(&p, "revolve");
		if (other.feasible && p.chain.slot_write + p.chain.slot_read == 0)
			assert_true(plan.makespan <= other.makespan * (1 + 1e-9));
		if (plan.advance_steps < p.chain.steps ||
			p.chain.slot_write + p.chain.slot_read > 0 || p.chain.tape_max)
			continue;
		double extra = (double)plan.advance_steps * p.chain.advance;
		double bound =
			plan.bound - (double)p.chain.steps * (p.chain.record + p.chain.backward);
		sum += extra / bound - 1;
		worst = fmax(worst, extra / bound - 1);
		count++;
	}
	fprintf(stderr,
		"# %d plans: extra steps above the bound by %.2f%% on average, %.2f%% at most, "
		"planned in %.1f ms at most\n",
		count, 100 * sum / count, 100 * worst, 1e3 * slowest);
	assert_true(count > 40 && sum / count < 0.01 && worst < 0.1);
	test_limit("a plan of a chain too long for the table", slowest, 1);
}

static void extremes(void **state)
{
	(void)state;
	const int64_t steps[] = {1000000, 1000000000, 1000000000000};
	const uint64_t memory[] = {2, 3, 4, 11, 101, 10001, 1000001, 100000001, 10000000000};
	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++)
		for (size_t k = 0; k < sizeof memory / sizeof memory[0]; k++)
			for (int64_t tape = 1; tape <= 1000; tape *= 10) {
				struct neap_problem p = unit_problem(steps[i], memory[k]);
				p.chain.tape = (uint64_t)tape;
				if (neap_problem_check(&p) < 0)
					continue;
				double began = test_seconds();
				struct neap_plan plan = planned(&p, "mixed");
				double took = test_seconds() - began;
				struct neap_schedule *s;
				struct neap_action a;
				if (took > 0.5)
					fprintf(stderr, "# T=%lld M=%llu A=%lld: %.0f ms\n",
						(long long)steps[i], (unsigned long long)memory[k],
						(long long)tape, 1e3 * took);
				test_limit("a plan of an extreme", took, 1);
				if (!plan.feasible) {
					assert_true(plan.least_bytes > p.memory);
					continue;
				}
				assert_true(plan.makespan > 0 && plan.peak_bytes <= p.memory);
				assert_int_equal(neap_schedule_open(&s, &p, &plan), 0);
				for (int j = 0; j < 1000; j++)
					assert_true(neap_schedule_next(s, &a) >= 0);
				neap_schedule_close(s);
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(embedded),
		cmocka_unit_test(either_slots),
		cmocka_unit_test(table),
		cmocka_unit_test(in_bytes),
		cmocka_unit_test(long_chains),
		cmocka_unit_test(extremes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
