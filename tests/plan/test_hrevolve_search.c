/* SPDX-License-Identifier: Apache-2.0 */
/*
 * h-revolve and its kin against the plain recurrence and an exhaustive search of the
 * action language on tiny chains. NEAP_SEED repeats a run.
 */
#include "levels_test.h"

/* The recurrence of level_solver.h as it stands there: o[k][m][l] and p[k][m][l]. */
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(against_recurrence),
		cmocka_unit_test(against_search),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
