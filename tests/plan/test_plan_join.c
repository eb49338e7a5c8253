/* SPDX-License-Identifier: Apache-2.0 */
/* Two chains into one loss: the table, the recurrence by its definition. */
#include "plan_test.h"
#include "time_limit.h"

static struct neap_plan planned(int64_t a, int64_t b, uint64_t slots)
{
	struct neap_problem p = classic_problem(a, slots);
	struct neap_plan plan = {.size = sizeof plan};
	p.chain.join = b;
	if (neap_plan_make(&plan, &p, "join", NULL) < 0)
		fail_msg("join: %s", neap_detail());
	return plan;
}

/* The schedule: legal, and what the plan says. */
static void check(int64_t a, int64_t b, uint64_t slots)
{
	struct neap_problem p = classic_problem(a, slots);
	struct neap_plan plan = {.size = sizeof plan};
	p.chain.join = b;
	p.chain.slot_write = 0.25;
	p.chain.slot_read = 0.125;
	assert_int_equal(neap_plan_make(&plan, &p, "join", NULL), 0);
	assert_true(plan.feasible);
	struct neap_verdict v = verified(&p, &plan);
	assert_int_equal(v.advance_steps, plan.advance_steps);
	assert_int_equal(v.record_steps, a + b);
	assert_int_equal(v.backward_steps, a + b);
	assert_int_equal(v.peak_bytes, plan.peak_bytes);
	assert_int_equal(v.arena_bytes, plan.arena_bytes);
	assert_int_equal(v.slots, plan.slots);
	assert_true(v.peak_bytes <= slots);
	struct neap_simulation m = simulated(&p, &plan);
	assert_true(near(m.makespan, plan.makespan));
}

static void row(long long a, long long b, long long slots, double steps)
{
	struct neap_plan plan = planned(a, b, (uint64_t)slots);
	assert_int_equal(plan.feasible, steps < INFINITY);
	if (!plan.feasible) {
		assert_int_equal(plan.least_bytes, 4);
		return;
	}
	if ((double)plan.advance_steps != steps)
		fail_msg("a=%lld b=%lld M=%lld: %lld, not %g", a, b, slots,
			(long long)plan.advance_steps, steps);
	assert_int_equal(plan.record_steps, a + b);
	assert_true(plan.peak_bytes <= (uint64_t)slots);
	assert_true(plan.bound <= plan.makespan);
}

static void embedded(void **state)
{
	struct neap_problem p = classic_problem(4, 5);
	struct neap_plan plan = {.size = sizeof plan};
	struct neap_schedule *s;
	(void)state;
	row(1, 1, 3, INFINITY);
	row(1, 1, 4, 2);
	row(1, 2, 5, 3);
	row(1, 4, 4, 8);
	row(1, 4, 5, 7);
	row(1000000, 1000000, 2000002, 2000000);
	p.chain.join = 1;
	assert_int_equal(neap_plan_make(&plan, &p, "revolve", NULL), 0);
	assert_false(plan.feasible);
	assert_int_equal(neap_plan_make(&plan, &p, "auto", NULL), 0);
	assert_true(plan.feasible && plan.advance_steps == 7);
	assert_string_equal(plan.chosen, "join");
	assert_int_equal(neap_schedule_open(&s, &p, &plan), 0);
	neap_schedule_close(s);
	p.chain.join = 0;
	assert_int_equal(neap_plan_make(&plan, &p, "join", NULL), 0);
	assert_false(plan.feasible);
	p.chain.join = -1;
	assert_int_equal(neap_problem_check(&p), NEAP_EUSAGE);
}

#define MOST 14
#define NEVER (1 << 28)

static int least(int a, int b)
{
	return a < b ? a : b;
}

static int revolve[MOST + 1][2 * MOST + 8], g[2 * MOST + 8][MOST + 1][MOST + 1];

/* min over u of G(a,b,u), with M slots. */
static int search(int a, int b, int slots)
{
	int best = NEVER;
	memset(g, 0x10, sizeof g);
	g[0][0][0] = 0;
	for (int u = 1; u <= slots - 2; u++)
		for (int p = 0; p <= a; p++)
			for (int q = 0; q <= b; q++) {
				int *cell = &g[u][p][q];
				*cell = NEVER;
				for (int y = 1; y <= p; y++)
					*cell = least(
						*cell, revolve[y][slots - u] + g[u - 1][p - y][q]);
				for (int y = 1; y <= q; y++)
					*cell = least(
						*cell, revolve[y][slots - u] + g[u - 1][p][q - y]);
				if (p == a && q == b)
					best = least(best, *cell);
			}
	return best;
}

static void by_definition(void **state)
{
	(void)state;
	for (int c = 1; c < 2 * MOST + 8; c++)
		for (int l = 2; l <= MOST; l++) {
			revolve[l][c] = NEVER;
			for (int y = 1; y < l; y++)
				if (c > 1 || l - y <= 1)
					revolve[l][c] = least(revolve[l][c],
						y + revolve[l - y][c - 1] + revolve[y][c]);
		}
	for (int a = 1; a <= MOST; a++)
		for (int b = 1; b <= MOST; b++)
			for (int slots = 2; slots <= a + b + 3; slots++) {
				int steps = search(a, b, slots);
				row(a, b, slots,
					steps >= NEVER ? (double)INFINITY
						       : (double)(a + b + steps));
			}
}

static void table(void **state)
{
	char path[4200], line[256];
	int rows = 0;
	(void)state;
	snprintf(path, sizeof path, "%s/join.csv", test_oracles());
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		long long a, b, slots;
		double steps;
		if (sscanf(line, "%lld,%lld,%lld,%lf", &a, &b, &slots, &steps) != 4)
			continue;
		row(a, b, slots, steps);
		rows++;
	}
	fclose(f);
	assert_true(rows > 100);
}

static void schedules(void **state)
{
	(void)state;
	for (int64_t a = 1; a <= 12; a++)
		for (int64_t b = 1; b <= 12; b++)
			for (uint64_t slots = 4; slots <= (uint64_t)(a + b + 3); slots++)
				check(a, b, slots);
}

/*
 * Every way there is: which states are held, where the adjoints are. Steps go on
 * from any held state, which may be kept; a step is reversed where its state is held.
 */
#define TINY 7
static uint16_t cost[1 << (TINY + 2)][TINY + 1][TINY + 1][2]; /* + 1; 0: not reached */

struct place {
	int held, p, q, turned;
};

static struct place queue[2][1 << 18];
static int queued[2];

static void reach(struct place x, int value, int slots, int now)
{
	uint16_t *c = &cost[x.held][x.p][x.q][x.turned];
	if (__builtin_popcount((unsigned)x.held) > slots || (*c && *c <= value + 1))
		return;
	*c = (uint16_t)(value + 1);
	assert_true(queued[now] < 1 << 18);
	queue[now][queued[now]++] = x;
}

/* Free moves stay in the queue, an advance goes to the other one. */
static void expand(struct place x, int a, int b, int value, int slots, int now)
{
	int first_end = 1 << a, second_end = 1 << (a + 1 + b);
	for (int t = 0; t <= a + 1 + b; t++) {
		int bit = 1 << t, adjoint = t <= a ? x.p : a + 1 + x.q;
		if (!(x.held & bit))
			continue;
		struct place y = x;
		y.held = x.held & ~bit;
		reach(y, value, slots, now);
		if (t != a && t != a + 1 + b) {
			y.held = x.held | bit << 1;
			reach(y, value + 1, slots, !now);
			y.held &= ~bit;
			reach(y, value + 1, slots, !now);
		}
		if (x.turned && t + 1 == adjoint) {
			y = x;
			y.held &= ~bit;
			*(t <= a ? &y.p : &y.q) -= 1;
			reach(y, value, slots, now);
		}
	}
	if (!x.turned && x.held & first_end && x.held & second_end) {
		struct place y = x;
		y.turned = 1;
		reach(y, value, slots, now);
	}
}

static int exhaustive(int a, int b, int slots)
{
	memset(cost, 0, sizeof cost);
	queued[0] = queued[1] = 0;
	reach((struct place){1 | 1 << (a + 1), a, b, 0}, 0, slots, 0);
	for (int value = 0, now = 0; queued[now]; value++, now = !now) {
		for (int i = 0; i < queued[now]; i++) {
			struct place x = queue[now][i];
			if (cost[x.held][x.p][x.q][x.turned] != value + 1)
				continue;
			if (x.turned && x.p == 0 && x.q == 0)
				return value;
			expand(x, a, b, value, slots, now);
		}
		queued[now] = 0;
	}
	return -1;
}

static void against_all_schedules(void **state)
{
	(void)state;
	for (int a = 1; a < TINY; a++)
		for (int b = 1; b <= a && a + b <= TINY; b++)
			for (int slots = 4; slots <= a + b + 3; slots++) {
				int steps = exhaustive(a, b, slots);
				if (planned(a, b, (uint64_t)slots).advance_steps != steps)
					fail_msg("a=%d b=%d M=%d: %d", a, b, slots, steps);
			}
}

static void long_ones(void **state)
{
	static const int64_t rows[][3] = {{1000, 1000, 4}, {1000, 1000, 10}, {1000, 1000, 19},
		{1000, 1000, 100}, {1900, 100, 30}, {30000, 20000, 40}, {100000, 1, 12}};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		double before = test_seconds();
		struct neap_plan plan = planned(rows[i][0], rows[i][1], (uint64_t)rows[i][2]);
		double took = test_seconds() - before;
		fprintf(stderr, "# %lld and %lld steps, %lld slots: %lld advances, %.1f ms\n",
			(long long)rows[i][0], (long long)rows[i][1], (long long)rows[i][2],
			(long long)plan.advance_steps, 1e3 * took);
		test_limit("a long join", took, 1);
		check(rows[i][0], rows[i][1], (uint64_t)rows[i][2]);
	}
}

/* Two chains whose sizes are drawn, in bytes. */
static struct neap_problem drawn(struct random *r)
{
	struct neap_problem p = NEAP_PROBLEM_INIT;
	struct neap_chain *c = &p.chain;
	c->steps = 1 + below(r, 40);
	c->join = 1 + below(r, 40);
	c->state = 1 + (uint64_t)below(r, 100);
	c->tape = (uint64_t)below(r, 200);
	c->tape_max = uniform(r) < 0.3 ? c->tape + (uint64_t)below(r, 50) : 0;
	c->adjoint = (uint64_t)below(r, 100);
	c->live = uniform(r) < 0.5 ? 0 : 1 + (uint64_t)below(r, 150);
	c->advance = 1;
	c->record = 1.5;
	c->backward = 2;
	c->slot_write = 0.25;
	c->slot_read = 0.125;
	c->call = uniform(r) < 0.5 ? 0.0625 : 0;
	return p;
}

/* The plan in bytes: legal, and what the schedule takes, in memory, calls and seconds. */
static int64_t check_bytes(const struct neap_problem *p, const struct neap_params *fixed)
{
	struct neap_plan plan = {.size = sizeof plan};
	if (neap_plan_make(&plan, p, "join", fixed) < 0)
		fail_msg("join: %s", neap_detail());
	if (!plan.feasible)
		return -1;
	struct neap_verdict v = verified(p, &plan);
	assert_int_equal(v.advance_steps, plan.advance_steps);
	assert_int_equal(v.record_steps, p->chain.steps + p->chain.join);
	assert_int_equal(v.backward_steps, v.record_steps);
	assert_int_equal(v.peak_bytes, plan.peak_bytes);
	assert_int_equal(v.arena_bytes, plan.arena_bytes);
	assert_int_equal(v.slots, plan.slots);
	assert_true(v.arena_bytes <= p->memory);
	assert_true(near(simulated(p, &plan).makespan, plan.makespan));
	assert_true(plan.bound <= plan.makespan * (1 + 1e-12));
	assert_int_equal(neap_plan_tapes_held(&plan, p->chain.steps),
		plan.params.tail > 1 ? plan.params.tail : 1);
	return plan.advance_steps;
}

static void in_bytes(void **state)
{
	struct random r = {test_seed(83), 0};
	double worst = 1;
	(void)state;
	for (int i = 0; i < (TEST_SANITIZED ? 3 : 25); i++) {
		struct neap_problem p = drawn(&r);
		uint64_t least = neap_problem_least(&p);
		int64_t all = p.chain.steps + p.chain.join, before = INT64_MAX / 2;
		p.memory = least - 1;
		struct neap_plan plan = {.size = sizeof plan};
		assert_int_equal(neap_plan_make(&plan, &p, "auto", NULL), 0);
		assert_false(plan.feasible);
		assert_int_equal(plan.least_bytes, least);
		for (p.memory = least;; p.memory += 1 + (uint64_t)below(&r, (int64_t)least)) {
			int64_t best = INT64_MAX, steps = check_bytes(&p, NULL);
			assert_true(steps >= 0);
			for (int64_t tail = 1; tail <= all; tail += 1 + all / 40) {
				int64_t other =
					check_bytes(&p, &(struct neap_params){.tail = tail});
				best = other >= 0 && other < best ? other : best;
			}
			/* The tail is chosen by an estimate. */
			double ratio = (double)(steps + all) /
				       (double)((best < steps ? best : steps) + all);
			worst = ratio > worst ? ratio : worst;
			assert_true(steps <= before + before / 16);
			before = steps;
			if (steps == 0)
				break;
		}
	}
	print_message("# forward steps at most %.4f times those with the best tail\n", worst);
	assert_true(worst < 1.025);
}

/* In bytes as few steps as in so many slots, where a tape is as large as a state. */
static void bytes_of_slots(void **state)
{
	(void)state;
	for (int64_t a = 1; a <= 30; a += 3)
		for (int64_t b = 1; b <= 30; b += 4)
			for (uint64_t slots = 4; slots <= (uint64_t)(a + b + 2); slots++) {
				struct neap_problem p = NEAP_PROBLEM_INIT;
				p.chain.steps = a;
				p.chain.join = b;
				p.chain.state = p.chain.tape = p.chain.adjoint = 64;
				p.chain.advance = p.chain.record = p.chain.backward = 1;
				p.memory = 64 * (slots + 3); /* a tape, two adjoints */
				assert_true(check_bytes(&p, NULL) <=
					    planned(a, b, slots).advance_steps);
			}
}

/* All short chains in all budgets: parts of one and two steps, and tapes that are larger than
 * states. */
static void short_ones_in_bytes(void **state)
{
	int plans = 0;
	(void)state;
	for (int n = 0; n < 5 * 5 * 3 * 2; n++) {
		struct neap_problem p = NEAP_PROBLEM_INIT;
		p.chain.steps = 1 + n % 5;
		p.chain.join = 1 + n / 5 % 5;
		p.chain.state = 2;
		p.chain.tape = 1 + 3 * (uint64_t)(n / 25 % 3);
		p.chain.live = 1 + (uint64_t)(n / 75);
		p.chain.advance = p.chain.record = p.chain.backward = 1;
		p.chain.slot_write = 0.25;
		uint64_t least = neap_problem_least(&p);
		for (p.memory = least; p.memory < least + 40; p.memory += 1 + p.memory % 3)
			plans += check_bytes(&p, NULL) >= 0;
	}
	assert_true(plans > 2000);
}

static void long_ones_in_bytes(void **state)
{
	static const int64_t rows[][3] = {{1000000, 1000000, 1 << 20}, {1000000, 3, 4 << 20},
		{1000000, 900000, 64 << 20}, {100000000, 1000000, 64 << 10}, {3000, 2000, 16 << 20},
		{500, 500, 48 << 10}, {600, 400, 128 << 10}, {700, 300, 600 << 10}};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct neap_problem p = NEAP_PROBLEM_INIT;
		struct neap_plan plan = {.size = sizeof plan};
		p.chain.steps = rows[i][0];
		p.chain.join = rows[i][1];
		p.chain.state = p.chain.adjoint = 1024;
		p.chain.tape = 4096;
		p.chain.advance = p.chain.record = p.chain.backward = 1;
		p.memory = (uint64_t)rows[i][2];
		double before = test_seconds();
		assert_int_equal(neap_plan_make(&plan, &p, "auto", NULL), 0);
		double took = test_seconds() - before;
		fprintf(stderr,
			"# %lld and %lld steps, %lld bytes: %lld advances, tail %lld, %.1f ms %s\n",
			(long long)rows[i][0], (long long)rows[i][1], (long long)rows[i][2],
			(long long)plan.advance_steps, (long long)plan.params.tail, 1e3 * took,
			plan.why);
		assert_true(plan.feasible && plan.arena_bytes <= p.memory);
		test_limit("a long join in bytes", took, 1);
	}
}

/* An action changed or left out is found. */
struct bent {
	struct neap_schedule *s;
	int64_t n, at;
	int how;
};

static int bend(void *user, struct neap_action *a)
{
	struct bent *x = user;
	int rc = neap_schedule_next(x->s, a);
	if (rc > 0 && x->n++ == x->at) {
		if (x->how == 0)
			return neap_schedule_next(x->s, a);
		if (x->how == 1)
			a->t0++, a->t1++;
		if (x->how == 2)
			a->t0 += 5, a->t1 += 5;
		if (x->how == 3)
			a->slot = 6;
		if (x->how == 4)
			a->kind = NEAP_PUT;
	}
	return rc;
}

static void illegal(void **state)
{
	struct neap_problem p = classic_problem(4, 6);
	struct neap_plan plan = {.size = sizeof plan};
	int64_t found = 0, harmless = 0;
	(void)state;
	p.chain.join = 5;
	assert_int_equal(neap_plan_make(&plan, &p, "join", NULL), 0);
	for (int how = 0; how <= 4; how++)
		for (int64_t at = 0;; at++) {
			struct bent x = {.at = at, .how = how};
			struct neap_schedule *s;
			struct neap_verdict v = {.size = sizeof v};
			assert_int_equal(neap_schedule_open(&x.s, &p, &plan), 0);
			assert_int_equal(neap_schedule_wrap(&s, bend, NULL, &x), 0);
			int rc = neap_verify(&v, &p, s);
			neap_schedule_close(s);
			neap_schedule_close(x.s);
			if (x.n <= at)
				break;
			assert_true(rc == 0 || rc == NEAP_EILLEGAL);
			if (rc == 0)
				harmless++; /* a DROP too few, a slot that is not looked at */
			else
				found++;
		}
	assert_true(found > 150 && harmless < 60);
	/* One slot less than the schedule takes. */
	struct neap_schedule *s;
	struct neap_verdict v = {.size = sizeof v};
	assert_int_equal(neap_schedule_open(&s, &p, &plan), 0);
	p.memory--;
	assert_int_equal(neap_verify(&v, &p, s), NEAP_EILLEGAL);
	neap_schedule_close(s);
}

static int count_text(void *user, const char *text, size_t length)
{
	(void)text;
	*(size_t *)user += length;
	return 0;
}

static void picture(void **state)
{
	struct neap_problem p = classic_problem(9, 6);
	struct neap_plan plan = {.size = sizeof plan};
	struct neap_schedule *s;
	size_t length = 0;
	(void)state;
	p.chain.join = 7;
	assert_int_equal(neap_plan_make(&plan, &p, "join", NULL), 0);
	assert_int_equal(neap_schedule_open(&s, &p, &plan), 0);
	assert_int_equal(neap_draw(&p, s, "join", 0, count_text, &length), 0);
	neap_schedule_close(s);
	assert_true(length > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(embedded),
		cmocka_unit_test(by_definition),
		cmocka_unit_test(table),
		cmocka_unit_test(schedules),
		cmocka_unit_test(against_all_schedules),
		cmocka_unit_test(long_ones),
		cmocka_unit_test(in_bytes),
		cmocka_unit_test(bytes_of_slots),
		cmocka_unit_test(short_ones_in_bytes),
		cmocka_unit_test(long_ones_in_bytes),
		cmocka_unit_test(illegal),
		cmocka_unit_test(picture),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
