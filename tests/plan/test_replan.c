/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans of blocks that are replaced on their way, where costs are not what was planned: the rows of
 * oracles/planner2/replan.csv, and random problems, whose schedules are legal and as fast as said.
 *
 *     test_replan          what `make check` runs
 *     test_replan N        N random problems instead of 200
 */
#include "plan_test.h"
#include "plan/blocks/block_replan.h"
#include "plan/blocks/block_plan.h"
#include "plan/blocks/kept_blocks.h"
#include "plan/recompute/leaf_revolve.h"

static int rounds = 200;

/* The step at which n blocks are done; 0: there are fewer that do not keep their state. */
static int64_t after_blocks(const struct neap_plan *plan, int64_t steps, int64_t n)
{
	const struct neap_blocks *b = &plan->blocks;
	int64_t unit = b->advance + b->record;
	int64_t end = steps - b->tail - neap__kept_steps(b, b->kept_states);
	int64_t blocks = neap__ceil_div(end, unit);
	return n < blocks ? end - (blocks - n) * unit : 0;
}

static void rows(void **state)
{
	(void)state;
	char path[4200], line[256], what[16];
	int n = 0, far = 0;
	snprintf(path, sizeof path, "%s/planner2/replan.csv", test_oracles());
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		long long steps, size, tape, memory, interval, tail;
		double backward, tau, factor, still, forward, known, bound;
		if (sscanf(line,
			    "%lld,%lld,%lld,%lld,%lf,%lf,%15[a-z],%lf,%lld,%lld,%lf,%lf,%lf,%lf",
			    &steps, &size, &tape, &memory, &backward, &tau, what, &factor,
			    &interval, &tail, &still, &forward, &known, &bound) != 14)
			continue;
		n++;
		struct neap_problem p = NEAP_PROBLEM_INIT;
		p.chain.steps = steps;
		p.chain.state = p.chain.live = (uint64_t)size * 1000;
		p.chain.tape = (uint64_t)tape * 1000;
		p.chain.advance = p.chain.record = 1;
		p.chain.backward = backward;
		p.memory = (uint64_t)memory * 1000;
		add_tier(&p, NEAP_INFINITE, 0, NEAP_TIER_DUPLEX);
		p.tiers[0].write_rate = p.tiers[0].read_rate = (double)p.chain.state / tau;
		struct neap_plan plan = {.size = sizeof plan};
		assert_int_equal(neap_plan_make(&plan, &p, "auto", NULL), 0);
		struct neap_problem q = p;
		if (!strcmp(what, "bandwidth"))
			q.tiers[0].write_rate *= factor, q.tiers[0].read_rate *= factor;
		else if (!strcmp(what, "tape"))
			q.chain.tape = (uint64_t)((double)q.chain.tape * factor);
		else
			q.chain.advance *= factor, q.chain.record *= factor;
		if (!strcmp(what, "compute"))
			q.chain.backward *= factor;
		double write = (double)p.chain.state / q.tiers[0].write_rate;
		int64_t blocks =
			(int64_t)ceil(write / ((double)plan.params.interval * q.chain.advance));
		int64_t step = after_blocks(&plan, steps, blocks);
		assert_true(step > 0);
		double before = plan.makespan;
		int rc = neap__block_replan(&plan, &q, step, plan.blocks.chunk, 1000, 0);
		if (rc < 0)
			fail_msg("%s %d %s", line, rc, neap_detail());
		int bad = plan.makespan > 1.02 * forward;
		far += bad;
		fprintf(stderr,
			"# %s %s %g: J %lld x %lld at %lld: %.0f -> %.0f (%.4f of %.0f; static "
			"%.0f known %.0f bound %.0f)\n",
			bad ? "FAR" : "ok", what, factor, (long long)plan.params.interval,
			(long long)plan.blocks.tail, (long long)step, before, plan.makespan,
			plan.makespan / forward, forward, still, known, bound);
	}
	fclose(f);
	assert_int_equal(n, 27);
	assert_int_equal(far, 0);
}

/* A schedule that is replaced on its way, at block `n` and every n-th from there on. */
struct replaced {
	struct neap_schedule *schedule;
	struct neap_plan plan;
	struct neap_problem problem; /* with the costs that are found */
	int64_t every, blocks, step;
};

static int replaced_next(void *user, struct neap_action *a)
{
	struct replaced *x = user;
	int64_t step;
	if (neap__block_plan_at_block(x->schedule, &step) && step > x->step) {
		x->step = step;
		if (++x->blocks % x->every == 0 && x->plan.replan_count < NEAP_REPLANS_MAX) {
			int rc = neap__block_replan(
				&x->plan, &x->problem, step, x->plan.blocks.chunk, 20, 0);
			if (rc > 0)
				rc = neap__block_plan_switch(x->schedule, &x->problem, &x->plan);
			assert_true(rc >= 0 || rc == NEAP_EINFEASIBLE);
		}
	}
	return neap_schedule_next(x->schedule, a);
}

/* Wherever it is replaced: legal, within the budget, and as a whole as fast as said. */
static void any_problem(void **state)
{
	(void)state;
	struct random r = {test_seed(51), 0};
	static const char *const names[] = {"auto", "async", "stream"};
	int replans = 0, sweeps = 0;
	for (int i = 0; i < rounds; i++) {
		struct neap_problem p = random_problem(&r, 2000), q;
		struct replaced x = {.plan = {.size = sizeof x.plan}};
		if (p.ntiers == 0)
			continue;
		assert_int_equal(neap_plan_make(&x.plan, &p, names[i % 3], NULL), 0);
		q = p;
		double factor = decades(&r, 0.2, 5);
		for (int k = 0; k < q.ntiers; k++)
			q.tiers[k].write_rate *= factor, q.tiers[k].read_rate *= factor;
		q.chain.advance *= decades(&r, 0.5, 2);
		if (!x.plan.feasible || x.plan.blocks.advance + x.plan.blocks.record == 0)
			continue;
		q.memory = x.plan.arena_bytes;
		x.problem = q;
		x.every = 1 + below(&r, 3);
		assert_int_equal(neap_schedule_open(&x.schedule, &p, &x.plan), 0);
		struct neap_schedule *s;
		struct neap_verdict v = {.size = sizeof v};
		assert_int_equal(neap_schedule_wrap(&s, replaced_next, NULL, &x), 0);
		if (neap_verify(&v, &p, s) < 0)
			fail_msg("round %d: %s", i, neap_detail());
		assert_true(v.arena_bytes <= q.memory);
		neap_schedule_close(s);
		neap_schedule_close(x.schedule);
		sweeps++;
		if (x.plan.replan_count == 0)
			continue;
		replans += (int)x.plan.replan_count;
		assert_true(verified(&q, &x.plan).arena_bytes <= q.memory);
		assert_true(fabs(simulated(&q, &x.plan).makespan / x.plan.makespan - 1) < 1e-9);
		plan_read_back(&x.plan, &q);
	}
	fprintf(stderr, "# %d sweeps, %d replans\n", sweeps, replans);
	assert_true(replans > rounds / 20);
}

/* States that are held, and the costs of parts beside some of them. */
struct held {
	struct neap__leaf_revolve costs;
	int64_t slots; /* beside which a tape fits */
	int64_t at[8];
	int count;
};

static int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* Forward steps of l steps from a live state that is not kept, beside n kept ones. */
static int64_t part(const struct held *x, int64_t l, int64_t n)
{
	if (l <= neap__leaf_revolve_fit(&x->costs, n))
		return l;
	return n < x->slots ? l + neap__leaf_revolve_cost(&x->costs, l, n) : NEAP__LEAF_NEVER;
}

static int64_t from_held(const struct held *x, int64_t end, int j, int n);

/* What lies below step `end`, from n of the states below state j. */
static int64_t from_lower(const struct held *x, int64_t end, int j, int n)
{
	int64_t least = end == 0 && n == 0 ? 0 : NEAP__LEAF_NEVER;
	for (int i = 0; i < j && n > 0; i++)
		if (n <= i + 1 && x->at[i] < end)
			least = smaller(least, from_held(x, end, i, n));
	return least;
}

/*
 * Forward steps that reverse [0, end) from n of the states up to number j, the highest that is
 * not dropped: a part begins there, or it is used once, and the rest begins at a lower state.
 */
static int64_t from_held(const struct held *x, int64_t end, int j, int n)
{
	int64_t l = end - x->at[j], least = part(x, l, n - 1) + from_lower(x, x->at[j], j, n - 1);
	for (int64_t y = 1; y < l && n > 1; y++)
		least = smaller(
			least, y + part(x, l - y, n - 1) + from_lower(x, x->at[j] + y, j, n - 1));
	return smaller(least, NEAP__LEAF_NEVER);
}

/* What is left to do at the turn: costs of parts beside held states, by exhaustive search. */
static void at_the_turn(void **state)
{
	(void)state;
	char path[4200], line[256], held[64];
	int n = 0;
	snprintf(path, sizeof path, "%s/planner2/turn_exact.csv", test_oracles());
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		long long steps, size, tape, pool, exact = -1;
		if (sscanf(line, "%lld,%lld,%lld,%lld,%63[0-9 ],%lld", &steps, &size, &tape, &pool,
			    held, &exact) < 5)
			continue;
		struct held x = {.slots = (pool - tape) / size};
		for (char *end = held; *end && x.count < 8; end += *end == ' ')
			x.at[x.count++] = strtol(end, &end, 10);
		assert_int_equal(
			neap__leaf_revolve_open(&x.costs, pool, size, tape, x.slots, 3), 0);
		assert_int_equal(neap__leaf_revolve_reach(&x.costs, 3 * steps, 0), 0);
		int64_t found = NEAP__LEAF_NEVER;
		for (int i = 0; i < x.count; i++)
			for (int k = 1; k <= i + 1; k++)
				found = smaller(found, from_held(&x, steps, i, k));
		neap__leaf_revolve_free(&x.costs);
		if (found != (exact < 0 ? NEAP__LEAF_NEVER : exact))
			fail_msg("%s: %lld forward steps", line, (long long)found);
		n++;
	}
	fclose(f);
	assert_int_equal(n, 102);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows),
		cmocka_unit_test(any_problem),
		cmocka_unit_test(at_the_turn),
	};
	if (argc > 1)
		rounds = atoi(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
