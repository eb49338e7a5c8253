/* SPDX-License-Identifier: Apache-2.0 */
/* Chains whose steps differ: the oracle tables, exhaustive search, properties. */
#include <neap/chain.h>
#include "oracle_test.h"

static void embedded(void **state)
{
	/* fw, bw, a, ab, tmp of two chains; M, cost */
	static struct chain c;
	(void)state;
	wire(&c, 8);
	const int fw[] = {4, 5, 5, 5, 2, 3, 1, 2}, bw[] = {5, 8, 2, 6, 7, 2, 2, 7, 1},
		  a[] = {3, 3, 4, 6, 1, 2, 5, 3, 6}, ab[] = {10, 13, 7, 6, 4, 11, 7, 10};
	for (int i = 0; i < 9; i++) {
		c.backward[i] = bw[i];
		c.state[i] = (uint64_t)a[i];
		if (i < 8)
			c.advance[i] = fw[i], c.tape[i] = (uint64_t)ab[i];
	}
	static const int rows[][2] = {{26, 115}, {32, 98}, {39, 87}, {46, 79}};
	for (size_t i = 0; i < 4; i++) {
		struct neap_plan plan = checked(&c, (uint64_t)rows[i][0]);
		assert_true(plan.feasible && plan.makespan <= rows[i][1]);
	}
	struct neap_plan plan = checked(&c, 1000);
	assert_true(plan.makespan == 67 && plan.bound == 67);
	assert_true(checked(&c, NEAP_INFINITE).makespan == 67);
	assert_int_equal(neap_plan_make(&plan, &c.p, "revolve", NULL), 0);
	assert_false(plan.feasible);
	assert_string_equal(plan.why, "needs a uniform chain");
	assert_int_equal(neap_plan_make(&plan, &c.p, "auto", NULL), 0);
	assert_true(plan.feasible && plan.makespan == 67);
	c.tape[3] = 0; /* smaller than the output it holds */
	assert_int_equal(neap_problem_check(&c.p), NEAP_EUSAGE);
	assert_non_null(strstr(neap_detail(), "tape[3]"));
	c.tape[3] = 6;
	c.advance[2] = -1;
	assert_int_equal(neap_problem_check(&c.p), NEAP_EUSAGE);
	assert_non_null(strstr(neap_detail(), "advance[2]"));
}

static void table(const json_t *chains, const char *name, int *rows, double *over)
{
	char path[4200], line[256], id[32];
	snprintf(path, sizeof path, "%s/%s", test_oracles(), name);
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		static struct chain c;
		long long steps, memory;
		double persistent, plus, exact;
		if (sscanf(line, "%31[^,],%lld,%lld,%lf,%lf,%lf", id, &steps, &memory, &persistent,
			    &plus, &exact) != 6)
			continue;
		const json_t *k = json_object_get(chains, id);
		assert_non_null(k);
		oracle_chain(&c, k, steps);
		struct neap_plan plan = checked(&c, (uint64_t)memory);
		if (!plan.feasible)
			fail_msg("%s at %lld: %s", id, memory, plan.why);
		if (plan.makespan > plus || plan.makespan < exact)
			fail_msg("%s at %lld: %g, exact %g, reference %g", id, memory,
				plan.makespan, exact, plus);
		*over += plan.makespan / exact - 1;
		++*rows;
	}
	fclose(f);
}

static void tables(void **state)
{
	int rows = 0, more = 0;
	double over = 0, unused = 0;
	(void)state;
	json_t *chains = load("chains.json");
	table(chains, "chain_exact.csv", &rows, &over);
	table(chains, "chain_medium.csv", &more, &unused);
	json_decref(chains);
	fprintf(stderr, "# %d rows, %.4f%% above the exact optimum on average; %d larger\n", rows,
		100 * over / rows, more);
	assert_true(rows > 500 && more > 100 && over / rows < 0.005);
}

/*
 * Exhaustive: states and tapes that are kept as bits, the adjoint's place (steps + 1:
 * before the turn). Costs are whole: one bucket each.
 */
#define STEPS 4
#define CODES ((STEPS + 2) << (2 * STEPS + 1))
static int cost_of[CODES];
static int bucket[400][CODES];
static int filled[400];

static void reach(int code, int cost)
{
	if (cost >= 400 || cost_of[code] <= cost)
		return;
	cost_of[code] = cost;
	bucket[cost][filled[cost]++] = code;
}

struct view {
	const struct chain *c;
	int64_t n;
	int adjoint, states, tapes, holds;
	uint64_t bytes;
};

static uint64_t gradient(const struct chain *c, int64_t i)
{
	return c->p.chain.adjoint ? c->p.chain.adjoint : c->state[i];
}

static int present(const struct view *v, int64_t i)
{
	return v->states >> i & 1 || (i > 0 && v->holds && v->tapes >> (i - 1) & 1);
}

static uint64_t bytes_of(const struct view *v)
{
	uint64_t bytes = v->adjoint <= v->n ? gradient(v->c, v->adjoint) : 0;
	for (int64_t i = 0; i <= v->n; i++) {
		if (v->states >> i & 1 && !(i > 0 && v->holds && v->tapes >> (i - 1) & 1))
			bytes += v->c->state[i];
		if (i < v->n && v->tapes >> i & 1)
			bytes += v->c->tape[i];
	}
	return bytes;
}

static int code_of(int adjoint, int states, int tapes)
{
	return (adjoint << (STEPS + 1) | states) << STEPS | tapes;
}

static void forward(const struct view *v, int64_t i, int cost)
{
	const struct neap_stages *s = &v->c->stages;
	const double *record = s->record ? s->record : s->advance;
	const uint64_t *tmp = s->record_tmp ? s->record_tmp : s->advance_tmp;
	uint64_t memory = v->c->p.memory, out = v->c->state[i + 1];
	if (!present(v, i))
		return;
	if (v->bytes + out + s->advance_tmp[i] <= memory)
		reach(code_of(v->adjoint, v->states | 2 << i, v->tapes), cost + (int)s->advance[i]);
	if (!(v->tapes >> i & 1) &&
		v->bytes + (v->holds ? 0 : out) + v->c->tape[i] + tmp[i] <= memory)
		reach(code_of(v->adjoint, v->states | (v->holds ? 0 : 2 << i), v->tapes | 1 << i),
			cost + (int)record[i]);
}

static void visit(const struct chain *c, int code, int cost)
{
	int64_t n = c->p.chain.steps;
	struct view v = {c, n, code >> (2 * STEPS + 1), code >> STEPS & ((2 << STEPS) - 1),
		code & ((1 << STEPS) - 1), c->stages.flags & 1, 0};
	v.bytes = bytes_of(&v);
	int needs = (c->stages.flags & 2) != 0, i = v.adjoint - 1;
	for (int k = 0; k <= n; k++) {
		if (v.states >> k & 1)
			reach(code_of(v.adjoint, v.states & ~(1 << k), v.tapes), cost);
		if (k < n)
			forward(&v, k, cost);
	}
	if (v.adjoint == n + 1 && present(&v, n) &&
		v.bytes + gradient(c, n) + c->backward_tmp[n] <= c->p.memory)
		reach(code_of((int)n, v.states, v.tapes), cost + (int)c->backward[n]);
	if (v.adjoint >= 1 && v.adjoint <= n && v.tapes >> i & 1 && (!needs || present(&v, i)) &&
		v.bytes + gradient(c, i) + c->backward_tmp[i] <= c->p.memory)
		reach(code_of(i, v.states, v.tapes & ~(1 << i)), cost + (int)c->backward[i]);
}

/* The least cost, or -1. */
static int exhaustive(const struct chain *c)
{
	for (int i = 0; i < CODES; i++)
		cost_of[i] = 1 << 20;
	memset(filled, 0, sizeof filled);
	if (c->p.memory < c->state[0])
		return -1;
	reach(code_of((int)c->p.chain.steps + 1, 1, 0), 0);
	for (int cost = 0; cost < 400; cost++)
		for (int k = 0; k < filled[cost]; k++) {
			int code = bucket[cost][k];
			if (code >> (2 * STEPS + 1) == 0)
				return cost;
			if (cost_of[code] == cost)
				visit(c, code, cost);
		}
	return -1;
}

static void tiny(void **state)
{
	(void)state;
	struct random r = {test_seed(21), 0};
	double over = 0;
	int count = 0, missed = 0;
	for (int k = 0; k < 500; k++) {
		int64_t steps = 1 + below(&r, STEPS);
		struct chain c = random_chain(&r, steps, 5);
		vary(&r, &c, steps);
		uint64_t least = neap_problem_least(&c.p), all = 0;
		for (int64_t i = 0; i < steps; i++)
			all += c.tape[i] + c.state[i];
		for (uint64_t memory = least > 3 ? least - 3 : 0; memory <= all + 8;
			memory += 1 + (uint64_t)below(&r, 3)) {
			struct neap_plan plan = checked(&c, memory);
			int best = exhaustive(&c);
			assert_int_equal(plan.feasible, memory >= least);
			if (best < 0) {
				assert_false(plan.feasible);
				continue;
			}
			count++;
			missed += !plan.feasible;
			if (!plan.feasible)
				continue;
			if (plan.makespan < best)
				fail_msg("%g below the optimum, %d", plan.makespan, best);
			if (best > 0)
				over += plan.makespan / best - 1;
		}
	}
	fprintf(stderr, "# %d cases, %d called infeasible wrongly, %.3f%% above on average\n",
		count, missed, 100 * over / count);
	assert_true(count > 1000 && missed < count / 25 && over / count < 0.02);
}

/* Any sizes: feasible from least_bytes on, nothing recomputed with room for all. */
static void properties(void **state)
{
	(void)state;
	struct random r = {test_seed(22), 0};
	for (int k = 0; k < 150; k++) {
		int64_t steps = 1 + below(&r, 40);
		static struct chain c;
		c = random_chain(&r, steps, k % 2 ? 1000000007 : 20);
		vary(&r, &c, steps);
		struct neap_plan plan = checked(&c, 0);
		if (plan.feasible)
			continue; /* all sizes are 0 */
		uint64_t least = plan.least_bytes, all = 0;
		assert_int_equal(least, neap_problem_least(&c.p));
		assert_false(checked(&c, least - 1).feasible);
		for (int64_t i = 0; i <= steps; i++)
			all += 2 * c.state[i] + c.tape[i < steps ? i : 0] + c.backward_tmp[i] +
			       2 * c.p.chain.adjoint +
			       (i < steps ? c.advance_tmp[i] + c.record_tmp[i] : 0);
		double before = INFINITY;
		for (int i = 0; i <= 4; i++) {
			plan = checked(&c, least + (all - least) / 4 * (uint64_t)i);
			assert_true(plan.feasible);
			assert_true(plan.makespan <= before * 1.05); /* levels are rounded */
			before = plan.makespan;
		}
		assert_true(near(checked(&c, all).makespan, plan.bound));
	}
}

/* Few stages, sizes of nothing and of 2^50, times of nothing, all flags. */
static void edges(void **state)
{
	(void)state;
	static struct chain c;
	const uint64_t sizes[] = {0, 1, (uint64_t)1 << 50};
	struct neap_plan none = {.size = sizeof none};
	wire(&c, 0);
	assert_int_equal(neap_plan_make(&none, &c.p, "chain", NULL), 0);
	assert_true(none.feasible && none.makespan == 0);
	assert_int_equal(verified(&c.p, &none).actions, 1);
	for (int kind = 0; kind < 3 * 3 * 4 * 2 * 2; kind++) {
		uint64_t size = sizes[kind % 3], tape = sizes[kind / 3 % 3];
		double seconds = kind / 36 % 2;
		for (int64_t steps = 1; steps <= 4; steps++) {
			memset(&c, 0, sizeof c);
			wire(&c, steps);
			c.stages.flags = (uint32_t)(kind / 9 % 4);
			c.p.chain.adjoint = kind / 72 % 2 ? 7 : 0;
			for (int64_t i = 0; i <= steps; i++) {
				c.state[i] = size;
				c.tape[i] = c.stages.flags & 1 && tape < size ? size : tape;
				c.advance[i] = c.backward[i] = seconds;
			}
			uint64_t least = neap_problem_least(&c.p);
			struct neap_plan plan = checked(&c, least);
			assert_true(plan.feasible);
			assert_true(plan.makespan >= (double)steps * 2 * seconds);
			if (least > 0) {
				plan = checked(&c, least - 1);
				assert_false(plan.feasible);
				assert_int_equal(plan.least_bytes, least);
			}
			plan = checked(&c, UINT64_MAX);
			assert_true(plan.feasible);
			assert_true(
				near(plan.makespan, steps ? (double)(2 * steps + 1) * seconds : 0));
		}
	}
}

/* A size or a time out of bounds is refused by its name, at any stage of any array. */
static void out_of_bounds(void **state)
{
	(void)state;
	enum { FEW = 3 };
	static struct chain c;
	const struct {
		const char *name;
		double *times;
		uint64_t *bytes;
		int64_t count;
	} arrays[] = {
		{"advance", c.advance, NULL, FEW},
		{"record", c.record, NULL, FEW},
		{"backward", c.backward, NULL, FEW + 1},
		{"state", NULL, c.state, FEW + 1},
		{"tape", NULL, c.tape, FEW},
		{"advance_tmp", NULL, c.advance_tmp, FEW},
		{"record_tmp", NULL, c.record_tmp, FEW},
		{"backward_tmp", NULL, c.backward_tmp, FEW + 1},
	};
	const double wrong[] = {-1, 2e15, NAN};
	for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
		for (int64_t k = 0; k < arrays[i].count; k++)
			for (int n = 0; n < (arrays[i].times ? 3 : 1); n++) {
				struct neap_plan plan = {.size = sizeof plan};
				char name[40];
				memset(&c, 0, sizeof c);
				wire(&c, FEW);
				c.stages.record = c.record;
				c.stages.record_tmp = c.record_tmp;
				c.stages.flags = 0;
				c.p.memory = UINT64_MAX;
				assert_int_equal(neap_plan_make(&plan, &c.p, "chain", NULL), 0);
				if (arrays[i].times)
					arrays[i].times[k] = wrong[n];
				else
					arrays[i].bytes[k] = ((uint64_t)1 << 60) + 1;
				snprintf(name, sizeof name, "%s[%lld] is ", arrays[i].name,
					(long long)k);
				if (neap_plan_make(&plan, &c.p, "chain", NULL) != NEAP_EUSAGE ||
					!strstr(neap_detail(), name))
					fail_msg("%s: %s", name, neap_detail());
			}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(embedded),
		cmocka_unit_test(tables),
		cmocka_unit_test(edges),
		cmocka_unit_test(out_of_bounds),
		cmocka_unit_test(tiny),
		cmocka_unit_test(properties),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
