/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Strategies for several synchronous tiers: tables of known optima, the plain
 * recurrence, an exhaustive search of the action language on tiny chains; and every
 * schedule verified and simulated. NEAP_SEED repeats a run.
 */
#include "plan_test.h"
#include <time.h>

#define LEVELS 5

struct level {
	uint64_t slots;
	double write, read;
};

/* Level 0: slots of tier 0; recording costs nothing, as in the tables. */
static struct neap_problem levelled(
	int64_t steps, double uf, double ub, const struct level *level, int levels)
{
	struct neap_problem p = classic_problem(steps, level[0].slots);
	p.chain.advance = uf;
	p.chain.record = 0;
	p.chain.backward = ub;
	p.chain.slot_write = level[0].write;
	p.chain.slot_read = level[0].read;
	for (int i = 1; i < levels; i++) {
		add_tier(&p, level[i].slots, 0, NEAP_TIER_SYNC);
		p.tiers[i - 1].write_fixed = level[i].write;
		p.tiers[i - 1].read_fixed = level[i].read;
	}
	return p;
}

static struct neap_plan planned(
	const struct neap_problem *p, const char *strategy, const struct neap_params *params)
{
	struct neap_plan plan;
	if (neap_plan_make(&plan, p, strategy, params) < 0)
		fail_msg("%s: %s", strategy, neap_detail());
	return plan;
}

/* The plan, its schedule legal and as costly as it says. */
static struct neap_plan checked(
	const struct neap_problem *p, const char *strategy, const struct neap_params *params)
{
	struct neap_plan plan = planned(p, strategy, params);
	if (!plan.feasible)
		return plan;
	struct neap_verdict v = verified(p, &plan);
	struct neap_simulation m = simulated(p, &plan);
	if (!near(m.makespan, plan.makespan))
		fail_msg("%s: simulated %.17g, planned %.17g", strategy, m.makespan, plan.makespan);
	assert_int_equal(v.peak_bytes, plan.peak_bytes);
	assert_int_equal(v.advance_steps, plan.advance_steps);
	assert_true(v.arena_bytes <= p->memory);
	for (int i = 0; i < p->ntiers; i++) {
		assert_int_equal(v.tiers[i].peak_bytes, plan.tiers[i].peak_bytes);
		assert_int_equal(v.tiers[i].written, plan.tiers[i].written);
		assert_int_equal(v.tiers[i].read, plan.tiers[i].read);
	}
	assert_true(plan.model_bound <= plan.makespan * (1 + 1e-12));
	return plan;
}

static FILE *oracle(const char *name)
{
	char path[4200];
	if (!test_data()) {
		print_message("# SKIP no oracle tables\n");
		skip();
	}
	snprintf(path, sizeof path, "%s/oracles/%s", test_data(), name);
	FILE *f = fopen(path, "r");
	if (!f)
		fail_msg("%s: cannot be read", path);
	return f;
}

/* "(a, b, ...)" at *text; the number of values. */
static int tuple(char **text, double *value)
{
	int n = 0;
	char *at = strchr(*text, '(') + 1;
	while (*at != ')') {
		char *end;
		double x = strtod(at, &end);
		if (end == at) {
			at++;
			continue;
		}
		value[n++] = x;
		at = end;
	}
	*text = at + 1;
	return n;
}

static void expect(const struct neap_problem *p, const char *strategy,
	const struct neap_params *params, double cost, const char *where)
{
	struct neap_plan plan = checked(p, strategy, params);
	if (!plan.feasible)
		fail_msg("%s: %s: %s", where, strategy, plan.why);
	if (!near(plan.makespan, cost))
		fail_msg("%s: %s: %.12g, not %.12g", where, strategy, plan.makespan, cost);
}

static void table_hrevolve(void **state)
{
	char line[512];
	int rows = 0;
	(void)state;
	FILE *f = oracle("hrevolve.csv");
	while (fgets(line, sizeof line, f)) {
		long long l, n;
		double c[LEVELS], w[LEVELS], r[LEVELS], uf, ub, cost;
		struct level level[LEVELS];
		char *at = line;
		if (sscanf(line, "%lld,%lld", &l, &n) != 2)
			continue;
		int levels = tuple(&at, c);
		tuple(&at, w);
		tuple(&at, r);
		assert_int_equal(sscanf(at, "\",%lf,%lf,%lf", &uf, &ub, &cost), 3);
		for (int i = 0; i < levels; i++)
			level[i] = (struct level){(uint64_t)c[i], w[i], r[i]};
		struct neap_problem p = levelled(n, uf, ub, level, levels);
		expect(&p, "h-revolve", NULL, cost, line);
		rows++;
	}
	fclose(f);
	fprintf(stderr, "# hrevolve.csv: %d rows\n", rows);
	assert_true(rows > 500);
}

static void table_disk(void **state)
{
	char line[512];
	int rows = 0;
	(void)state;
	FILE *f = oracle("disk_revolve.csv");
	while (fgets(line, sizeof line, f)) {
		double l, n, cm, uf, ub, wd, rd, opt0, opt1, many;
		if (sscanf(line, "%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf", &l, &n, &cm, &uf, &ub,
			    &wd, &rd, &opt0, &opt1, &many) != 10)
			continue;
		struct level level[2] = {{(uint64_t)cm, 0, 0}, {NEAP_INFINITE, wd, rd}};
		struct neap_problem p = levelled((int64_t)n, uf, ub, level, 2);
		expect(&p, "disk-revolve", NULL, many, line);
		expect(&p, "h-revolve", NULL, many, line);
		expect(&p, "revolve", NULL, opt0, line);
		p.ntiers = 0;
		expect(&p, "h-revolve", NULL, opt0, line);
		rows++;
	}
	fclose(f);
	fprintf(stderr, "# disk_revolve.csv: %d rows\n", rows);
	assert_true(rows > 700);
}

static void table_two_level(void **state)
{
	char line[512];
	int rows = 0;
	(void)state;
	FILE *f = oracle("two_level_exact.csv");
	while (fgets(line, sizeof line, f)) {
		double n, l, cm, cd, uf, ub, wm, rm, wd, rd, cost;
		if (sscanf(line, "%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf", &n, &l, &cm, &cd,
			    &uf, &ub, &wm, &rm, &wd, &rd, &cost) != 11)
			continue;
		struct level level[2] = {{(uint64_t)cm, wm, rm}, {(uint64_t)cd, wd, rd}};
		struct neap_problem p = levelled((int64_t)n, uf, ub, level, 2);
		expect(&p, "h-revolve", NULL, cost, line);
		rows++;
	}
	fclose(f);
	fprintf(stderr, "# two_level_exact.csv: %d rows\n", rows);
	assert_true(rows > 600);
}

/* A few rows of the tables, always at hand. */
static void embedded(void **state)
{
	static const struct {
		int64_t steps;
		double uf, ub;
		int levels;
		struct level level[4];
		double cost;
	} rows[] = {
		{2, 1, 1, 2, {{2, 0, 0}, {2, 2, 2}}, 3},
		{3, 1, 1, 2, {{2, 0, 0}, {2, 2, 2}}, 5},
		{6, 1, 1, 2, {{2, 0, 0}, {2, 2, 2}}, 14},
		{11, 1, 1, 2, {{2, 0, 0}, {2, 2, 2}}, 34},
		{11, 1, 1, 2, {{2, 0, 0}, {50, 1, 1}}, 31},
		{11, 1, 2, 3, {{5, 0, 0}, {5, 2, 2}, {50, 5, 5}}, 37},
		{2, 1, 1, 2, {{3, 1, 1}, {3, 5, 5}}, 5},
		{101, 2, 1, 2, {{3, 0, 0}, {3, 2, 2}}, 719},
		{101, 1, 1, 3, {{5, 0, 0}, {5, 2, 2}, {10, 20, 20}}, 361},
		{101, 1, 1, 3, {{2, 0, 0}, {2, 2, 2}, {4, 10, 10}}, 491},
		{21, 1, 1, 1, {{5, 1, 1}}, 91},
		{6, 1, 2, 3, {{2, 1, 1}, {3, 3, 3}, {4, 9, 9}}, 28},
		{50, 1, 1, 4, {{2, 0, 0}, {2, 1, 1}, {2, 4, 4}, {2, 16, 16}}, 198},
		{6, 2, 1, 2, {{5, 0, 0}, {20, 20, 10}}, 16},
		{201, 2, 1, 2, {{5, 0, 0}, {10, 2, 2}}, 1251},
		{50, 1, 2, 3, {{2, 1, 1}, {3, 3, 3}, {4, 9, 9}}, 327},
		{100, 1, 1, 3, {{3, 0, 0}, {3, 1, 1}, {5, 5, 5}}, 391},
		{300, 2, 1, 2, {{3, 0, 0}, {NEAP_INFINITE, 7, 3}}, 2070},
		{301, 1, 1, 2, {{1, 0, 0}, {NEAP_INFINITE, 50, 50}}, 4131},
		{100, 1, 1, 2, {{20, 0, 0}, {NEAP_INFINITE, 1, 1}}, 278},
		{100, 1, 1, 2, {{1, 0, 0}, {NEAP_INFINITE, 5, 2}}, 490},
		{11, 1, 1, 2, {{1, 0, 0}, {NEAP_INFINITE, 0, 0}}, 21},
		{100, 1, 1, 2, {{2, 0, 0}, {NEAP_INFINITE, 50, 50}}, 790},
		{101, 1, 1, 2, {{10, 0, 0}, {NEAP_INFINITE, 50, 50}}, 326},
		{20, 1, 1, 2, {{2, 0, 0}, {NEAP_INFINITE, 1, 1}}, 61},
		{200, 1, 1, 2, {{2, 0, 0}, {NEAP_INFINITE, 50, 50}}, 1710},
		{6, 1, 1, 2, {{2, 0, 0}, {3, 3, 1}}, 14},
		{4, 1, 1, 2, {{1, 0, 0}, {0, 1, 3}}, 10},
		{3, 1, 1, 2, {{1, 0.5, 0.25}, {3, 2, 1}}, 7},
		{2, 1, 1, 2, {{3, 0.5, 0.25}, {1, 2, 1}}, 3.75},
		{5, 1, 1, 2, {{3, 0.25, 0.25}, {99, 1, 1}}, 11.75},
		{7, 1, 1, 2, {{1, 0.5, 0.25}, {3, 2, 1}}, 24},
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char where[32];
		snprintf(where, sizeof where, "row %zu", i);
		struct neap_problem p = levelled(
			rows[i].steps, rows[i].uf, rows[i].ub, rows[i].level, rows[i].levels);
		expect(&p, "h-revolve", NULL, rows[i].cost, where);
		if (rows[i].levels == 2)
			expect(&p, "disk-revolve", NULL, rows[i].cost, where);
	}
	struct level level[2] = {{5, 0, 0}, {NEAP_INFINITE, 100, 100}};
	static const int64_t periods[][3] = {
		{5, 100, 126}, {1, 100, 20}, {10, 1, 66}, {1, 0, 1}, {5, 10, 21}};
	for (size_t i = 0; i < sizeof periods / sizeof periods[0]; i++) {
		level[0].slots = (uint64_t)periods[i][0];
		level[1].write = level[1].read = (double)periods[i][1];
		struct neap_problem p = levelled(101, 1, 1, level, 2);
		if (i == 2)
			p.chain.advance = 0.05;
		struct neap_plan plan = checked(&p, "periodic", NULL);
		assert_int_equal(plan.params.period, periods[i][2]);
	}
}

/* The recurrence of nested.h as it stands there: o[k][m][l] and p[k][m][l]. */
#define LONG 40
#define DEEP 7

static double plain(const struct level *level, int levels, int l, double f)
{
	static double o[LEVELS][DEEP][LONG + 1], p[LEVELS][DEEP][LONG + 1];
	double below[LONG + 1];
	for (int i = 0; i <= l; i++)
		below[i] = i ? INFINITY : 0;
	for (int k = 0; k < levels; k++) {
		int slots = (int)level[k].slots;
		memcpy(o[k][0], below, sizeof below);
		for (int m = 1; m <= slots; m++)
			for (int i = 0; i <= l; i++) {
				double best = below[i];
				for (int x = 1; x <= i; x++)
					best = fmin(best, x * f + o[k][m - 1][i - x] +
								  level[k].read + p[k][m][x - 1]);
				p[k][m][i] = best;
				o[k][m][i] = i ? fmin(below[i], best + level[k].write) : 0;
			}
		memcpy(below, o[k][slots], sizeof below);
	}
	return below[l];
}

/* Levels whose costs rise. */
static int rising(struct random *r, struct level *level)
{
	int levels = 1 + (int)below(r, 4), kind = (int)below(r, 4);
	double w = 0, rd = 0;
	for (int k = 0; k < levels; k++) {
		if (k > 0 || uniform(r) < 0.5) {
			double most = kind == 0 ? 3 : kind == 1 ? 30 : 100;
			double a = uniform(r) * most, b = uniform(r) * most;
			w += kind == 3 ? a : floor(a);
			rd += kind == 3 ? b : floor(b);
		}
		level[k] = (struct level){(uint64_t)below(r, DEEP), w, rd};
	}
	return levels;
}

static void against_recurrence(void **state)
{
	(void)state;
	struct random r = {test_seed(11), 0};
	int feasible = 0;
	for (int i = 0; i < 3000; i++) {
		struct level level[LEVELS];
		int levels = rising(&r, level), l = 1 + (int)below(&r, LONG);
		double f = uniform(&r) < 0.5 ? 1 : decades(&r, 0.01, 100);
		double best = plain(level, levels, l, f);
		struct neap_problem p = levelled(l + 1, f, 1, level, levels);
		struct neap_plan plan = checked(&p, "h-revolve", NULL);
		assert_int_equal(plan.feasible, best < INFINITY);
		feasible += plan.feasible;
		if (plan.feasible && !near(plan.makespan, best + l + 1))
			fail_msg("%d, l=%d: %.17g, not %.17g", i, l, plan.makespan, best + l + 1);
		if (plan.feasible)
			assert_true(near(plan.model_bound, plan.makespan));
		static const char *const others[] = {"multistage", "periodic", "disk-revolve"};
		for (int n = 0; n < 3; n++) {
			struct neap_plan other = checked(&p, others[n], NULL);
			assert_true(!other.feasible || plan.feasible);
			if (other.feasible)
				assert_true(plan.makespan <= other.makespan * (1 + 1e-12));
		}
	}
	assert_true(feasible > 2000);
}

/*
 * Exhaustive: the least cost by Dijkstra's algorithm over all states of a sweep of
 * one tape: adjoint, live state (steps: none), what slots and tier hold, with moves
 * between slots and tier that bypass the live state.
 */
#define TINY 6

struct search {
	int steps, slots, places;
	double f, w0, r0, w1, r1;
	double cost[(TINY + 1) * (TINY + 1) << (2 * TINY)];
	unsigned char done[(TINY + 1) * (TINY + 1) << (2 * TINY)];
	struct {
		double cost;
		int state;
	} heap[1 << 20];
	int count;
};

static void heap_push(struct search *s, double cost, int state)
{
	if (cost >= s->cost[state])
		return;
	s->cost[state] = cost;
	int i = s->count++;
	assert_true(i < 1 << 20);
	for (; i > 0 && s->heap[(i - 1) / 2].cost > cost; i = (i - 1) / 2)
		s->heap[i] = s->heap[(i - 1) / 2];
	s->heap[i].cost = cost;
	s->heap[i].state = state;
}

static int heap_pop(struct search *s)
{
	int state = s->heap[0].state, last = --s->count, i = 0;
	for (;;) {
		int child = 2 * i + 1;
		if (child >= last)
			break;
		if (child + 1 < last && s->heap[child + 1].cost < s->heap[child].cost)
			child++;
		if (s->heap[child].cost >= s->heap[last].cost)
			break;
		s->heap[i] = s->heap[child];
		i = child;
	}
	s->heap[i] = s->heap[last];
	return state;
}

static int state_of(const struct search *s, int adjoint, int live, int slots, int places)
{
	return (adjoint * (s->steps + 1) + live) << (2 * TINY) | slots << TINY | places;
}

static void expand(struct search *s, int state)
{
	int places = state & ((1 << TINY) - 1), slots = state >> TINY & ((1 << TINY) - 1);
	int live = (state >> (2 * TINY)) % (s->steps + 1);
	int adjoint = (state >> (2 * TINY)) / (s->steps + 1), none = s->steps;
	double cost = s->cost[state];
	int slot_free = __builtin_popcount((unsigned)slots) < s->slots;
	int place_free = __builtin_popcount((unsigned)places) < s->places;
#define GO(price, ...) heap_push(s, cost + (price), state_of(s, __VA_ARGS__))
	if (live < none) {
		if (live + 1 < adjoint)
			GO(s->f, adjoint, live + 1, slots, places);
		if (live + 1 == adjoint)
			GO(0, adjoint - 1, none, slots, places);
		if (slot_free)
			GO(s->w0, adjoint, live, slots | 1 << live, places);
		if (place_free)
			GO(s->w1, adjoint, live, slots, places | 1 << live);
	}
	for (int t = 0; t < adjoint; t++) {
		int bit = 1 << t;
		if (slots & bit) {
			GO(s->r0, adjoint, t, slots, places);
			GO(0, adjoint, live, slots & ~bit, places);
			if (place_free)
				GO(s->w1, adjoint, live, slots, places | bit);
		}
		if (places & bit) {
			GO(s->r1, adjoint, t, slots, places);
			GO(0, adjoint, live, slots, places & ~bit);
			if (slot_free)
				GO(s->r1, adjoint, live, slots | bit, places);
		}
	}
#undef GO
}

static double exhaustive(struct search *s)
{
	for (size_t i = 0; i < sizeof s->cost / sizeof s->cost[0]; i++)
		s->cost[i] = INFINITY, s->done[i] = 0;
	s->count = 0;
	heap_push(s, 0, state_of(s, s->steps, 0, 0, 0));
	while (s->count > 0) {
		int state = heap_pop(s);
		if (s->done[state])
			continue;
		s->done[state] = 1;
		if ((state >> (2 * TINY)) / (s->steps + 1) == 0)
			return s->cost[state];
		expand(s, state);
	}
	return INFINITY;
}

static void against_search(void **state)
{
	static struct search s;
	(void)state;
	struct random r = {test_seed(12), 0};
	int equal = 0, above = 0, moves = 0, tight = 0;
	for (int i = 0; i < 120; i++) {
		struct level level[2];
		int whole = uniform(&r) < 0.7;
		s.steps = 2 + (int)below(&r, TINY - 1);
		s.f = 1;
		double *costs[] = {&s.w0, &s.r0, &s.w1, &s.r1};
		for (int k = 0; k < 4; k++) {
			double x = uniform(&r) * 5;
			*costs[k] = whole ? floor(x) : x;
		}
		if (i % 3 == 0)
			s.w0 = s.r0 = 0;
		s.slots = (int)below(&r, 3);
		s.places = (int)below(&r, 4);
		level[0] = (struct level){(uint64_t)s.slots, s.w0, s.r0};
		level[1] = (struct level){(uint64_t)s.places, s.w1, s.r1};
		struct neap_problem p = levelled(s.steps, s.f, 1, level, 2);
		struct neap_plan plan = checked(&p, "h-revolve", NULL);
		double best = exhaustive(&s);
		assert_int_equal(plan.feasible, best < INFINITY);
		if (!plan.feasible)
			continue;
		double cost = plan.makespan - s.steps;
		assert_true(plan.bound <= (best + s.steps) * (1 + 1e-12));
		assert_true(cost >= best - 1e-9);
		if (cost <= best + 1e-9) {
			tight += near(plan.bound, plan.makespan);
			equal++;
			continue;
		}
		/* Only where a copy past the live state pays: the model has none. */
		above++;
		moves += s.r0 < s.w0 || s.w1 < s.w0 || s.r1 < s.r0;
		fprintf(stderr, "# T=%d c=%d,%d w=%g,%g r=%g,%g: %g, exhaustive %g\n", s.steps,
			s.slots, s.places, s.w0, s.w1, s.r0, s.r1, cost, best);
	}
	fprintf(stderr, "# %d equal (bound too: %d), %d above the exhaustive optimum\n", equal,
		tight, above);
	assert_int_equal(moves, above);
	assert_true(equal > 60 && above < 10 && tight > 30);
}

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t); /* not what else runs here */
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* T = 10^5: the schedule at once, close to its bound; with more effort the proof. */
static void hundred_thousand(void **state)
{
	static const struct {
		struct level level[3];
		int levels;
	} rows[] = {
		{{{10, 0, 0}, {50, 2, 2}}, 2},
		{{{10, 0, 0}, {50, 20, 20}}, 2},
		{{{10, 0, 0}, {500, 2, 2}}, 2},
		{{{10, 0, 0}, {500, 20, 20}}, 2},
		{{{10, 0, 0}, {50, 2, 2}, {500, 20, 20}}, 3},
		{{{10, 0, 0}, {NEAP_INFINITE, 20, 20}}, 2},
		{{{1, 0, 0}, {NEAP_INFINITE, 20, 20}}, 2},
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		struct neap_problem p = levelled(100001, 1, 1, rows[i].level, rows[i].levels);
		double began = seconds();
		struct neap_plan plan = checked(&p, "h-revolve", NULL);
		double took = seconds() - began;
		fprintf(stderr,
			"# %d levels: %.9g, bound %.9g, planned, verified and simulated "
			"in %.0f ms\n",
			rows[i].levels, plan.makespan, plan.bound, 1e3 * took);
		assert_true(plan.bound <= plan.makespan && plan.gap < 1e-4);
		struct neap_params hard = {.effort = 400000};
		struct neap_plan proved = planned(&p, "h-revolve", &hard);
		assert_true(near(proved.model_bound, proved.makespan));
		assert_true(proved.makespan <= plan.makespan);
		assert_true(verified(&p, &proved).advance_steps == proved.advance_steps);
		fprintf(stderr, "# proved: %.9g\n", proved.makespan);
	}
}

static const char *const mine[] = {"multistage", "periodic", "disk-revolve", "h-revolve"};

/* Problems in bytes too, tiers of any kind: legal, as costly as said, refused with a budget. */
static void random_problems(void **state)
{
	(void)state;
	struct random r = {test_seed(13), 0};
	int feasible = 0;
	for (int i = 0; i < 1500; i++) {
		struct neap_problem p = random_problem(&r, i % 10 ? 200 : 5000);
		struct neap_params fixed = {0};
		if (p.chain.steps < 1)
			continue;
		if (uniform(&r) < 0.3)
			fixed.period = 1 + below(&r, p.chain.steps + 2);
		if (uniform(&r) < 0.3)
			fixed.checkpoints = 1 + below(&r, p.chain.steps + 2);
		struct neap_plan revolve = planned(&p, "revolve", NULL);
		for (int n = 0; n < 4; n++) {
			struct neap_plan plan = planned(&p, mine[n], &fixed), again;
			if (plan.feasible && plan.advance_steps < 1000000) {
				checked(&p, mine[n], &fixed);
				feasible++;
			}
			if (!plan.feasible && plan.least_bytes) {
				struct neap_problem richer = p;
				assert_true(plan.least_bytes > p.memory);
				richer.memory = plan.least_bytes;
				again = planned(&richer, mine[n], &fixed);
				assert_true(again.feasible);
			}
			if (!revolve.feasible || (n != 3 && (n != 0 || fixed.checkpoints)))
				continue;
			if (plan.makespan > revolve.makespan * (1 + 1e-12))
				fail_msg("%d: %s: %.17g, revolve %.17g", i, mine[n], plan.makespan,
					revolve.makespan);
		}
	}
	fprintf(stderr, "# %d schedules\n", feasible);
	assert_true(feasible > 2000);
}

/* However long the chain, a plan is quick. */
static void quick(void **state)
{
	(void)state;
	struct random r = {test_seed(14), 0};
	double slowest[4] = {0};
	for (int i = 0; i < 40; i++) {
		struct neap_problem p = random_problem(&r, 1e9);
		p.chain.steps = (int64_t)decades(&r, 1e6, 1e9);
		for (int n = 0; n < 4; n++) {
			double began = seconds();
			struct neap_plan plan = planned(&p, mine[n], NULL);
			double took = seconds() - began;
			if (took > slowest[n])
				slowest[n] = took;
			if (took > 1)
				fprintf(stderr, "# %s T=%lld M/S=%.3g: %.1f ms\n", mine[n],
					(long long)p.chain.steps,
					(double)p.memory / (double)p.chain.state, 1e3 * took);
			if (plan.feasible)
				assert_true(plan.arena_bytes <= p.memory);
		}
	}
	for (int n = 0; n < 4; n++)
		fprintf(stderr, "# %s: %.1f ms at most\n", mine[n], 1e3 * slowest[n]);
	assert_true(slowest[0] < 10 && slowest[1] < 10 && slowest[2] < 10 && slowest[3] < 10);
}

static void table_periodic(void **state)
{
	char line[512];
	int rows = 0;
	(void)state;
	FILE *f = oracle("periodic_disk_revolve.csv");
	while (fgets(line, sizeof line, f)) {
		double l, n, cm, uf, ub, wd, rd, period;
		if (sscanf(line, "%lf,%lf,%lf,%lf,%lf,%lf,%lf,%lf", &l, &n, &cm, &uf, &ub, &wd, &rd,
			    &period) != 8)
			continue;
		struct level level[2] = {{(uint64_t)cm, 0, 0}, {NEAP_INFINITE, wd, rd}};
		struct neap_problem p = levelled((int64_t)n, uf, ub, level, 2);
		struct neap_plan plan = checked(&p, "periodic", NULL);
		struct neap_plan best = planned(&p, "disk-revolve", NULL);
		if (!plan.feasible || plan.params.period != (int64_t)period)
			fail_msg("%s: %lld", line, (long long)plan.params.period);
		assert_true(plan.makespan >= best.makespan * (1 - 1e-12));
		rows++;
	}
	fclose(f);
	fprintf(stderr, "# periodic_disk_revolve.csv: %d rows\n", rows);
	assert_true(rows > 600);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(embedded),
		cmocka_unit_test(against_recurrence),
		cmocka_unit_test(against_search),
		cmocka_unit_test(hundred_thousand),
		cmocka_unit_test(random_problems),
		cmocka_unit_test(quick),
		cmocka_unit_test(table_periodic),
		cmocka_unit_test(table_hrevolve),
		cmocka_unit_test(table_disk),
		cmocka_unit_test(table_two_level),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
