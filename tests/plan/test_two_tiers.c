/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plans through two tiers at once: the rows of oracles/planner2/two_tiers.csv, whose column of
 * bounds is an estimate; random plans of blocks with a near tier, whose schedules are legal and
 * take the planned bytes and seconds, also as text; random problems, where another tier never makes
 * a plan slower; and a makespan that was reached.
 *
 *     test_two_tiers          what `make check` runs: every fourth row of short chains
 *     test_two_tiers all      every row, and ten times as many random ones
 */
#include "plan_test.h"
#include "time_limit.h"
#include "plan/blocks/block_plan.h"
#include "plan/blocks/block_program.h"
#include "plan/core/plan_row.h"

#define SLACK 1.01 /* of the values that were reached */

static int all = 0;

static void rows(void **state)
{
	(void)state;
	char path[4200], line[256], capacity[32];
	int n = 0, asked = 0;
	double worst = 0, sum = 0, slowest = 0;
	snprintf(path, sizeof path, "%s/planner2/two_tiers.csv", test_oracles());
	FILE *f = fopen(path, "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		long long steps, size, tape, memory;
		double advance, record, backward, tau[2], value, bound;
		if (sscanf(line, "%lld,%lld,%lld,%lld,%lf,%lf,%lf,%31[^,],%lf,%lf,%lf,%lf", &steps,
			    &size, &tape, &memory, &advance, &record, &backward, capacity, &tau[0],
			    &tau[1], &value, &bound) != 12)
			continue;
		struct neap_problem p = NEAP_PROBLEM_INIT;
		p.chain.steps = steps;
		p.chain.state = p.chain.live = (uint64_t)size * 1000;
		p.chain.tape = (uint64_t)tape * 1000;
		p.chain.advance = advance;
		p.chain.record = record;
		p.chain.backward = backward;
		p.memory = (uint64_t)memory * 1000;
		for (int i = 0; i < 2; i++) {
			add_tier(&p, NEAP_INFINITE, 0, NEAP_TIER_DUPLEX);
			p.tiers[i].write_rate = p.tiers[i].read_rate =
				(double)p.chain.state / tau[i];
		}
		if (strcmp(capacity, "inf") != 0)
			p.tiers[0].capacity = (uint64_t)atof(capacity) * 1000;
		double found = neap_bound(&p), estimate = neap_estimate(&p, found);
		if (estimate < bound * (1 - 1e-6) || estimate > bound * 1.001 || found > value)
			fail_msg("row %d: bound %.10g, estimate %.10g, not %.10g", n, found,
				estimate, bound);
		if (n++ % 4 != 0 && !all)
			continue;
		if (steps > 10000 && !all)
			continue;
		struct neap_plan plan = {.size = sizeof plan};
		double began = test_seconds();
		assert_int_equal(neap_plan_make(&plan, &p, "auto", NULL), 0);
		slowest = fmax(slowest, test_seconds() - began);
		double ratio = plan.makespan / value;
		if (ratio > SLACK)
			fail_msg("row %d: %.10g takes %.4f of %.10g", n - 1, plan.makespan, ratio,
				value);
		assert_true(plan.makespan >= found);
		struct neap_verdict v = verified(&p, &plan);
		assert_true(v.arena_bytes <= plan.arena_bytes && plan.arena_bytes <= p.memory);
		assert_true(fabs(simulated(&p, &plan).makespan / plan.makespan - 1) < 1e-9);
		worst = fmax(worst, ratio);
		sum += ratio;
		asked++;
	}
	fclose(f);
	assert_int_equal(n, 63);
	fprintf(stderr, "# %d rows, mean %.4f of the value, worst %.4f; slowest plan %.2f s\n",
		asked, sum / asked, worst, slowest);
}

/* A chain that two tiers are of use to, in whole numbers of seconds and bytes. */
static struct neap_problem two_tiers(struct random *r, int64_t steps_most)
{
	struct neap_problem p = NEAP_PROBLEM_INIT;
	struct neap_chain *c = &p.chain;
	c->steps = 2 + below(r, steps_most);
	c->state = c->live = (uint64_t)(1 + below(r, 50));
	c->tape = (uint64_t)(1 + below(r, 100));
	c->advance = 1;
	c->record = 1 + (double)below(r, 2);
	c->backward = (double)(1 + below(r, 4));
	c->flags = uniform(r) < 0.2 ? NEAP_CHAIN_TAPES_STAY : 0;
	c->call = maybe(r, 0.2, uniform(r));
	p.memory = 2 * c->state + c->tape + (uint64_t)((double)c->state * decades(r, 1, 100));
	for (int i = 0; i < 2; i++) {
		double rate = (double)c->state / decades(r, 0.5, i ? 300 : 10);
		add_tier(&p, NEAP_INFINITE, maybe(r, 0.3, 1),
			uniform(r) < 0.8 ? NEAP_TIER_DUPLEX : 0);
		p.tiers[i].write_rate = p.tiers[i].read_rate = rate;
		p.tiers[i].staging = (uint64_t)maybe(r, 0.2, (double)c->state);
		p.tiers[i].cpu = maybe(r, 0.2, 0.1 / rate);
	}
	if (uniform(r) < 0.8)
		p.tiers[0].capacity = (uint64_t)((double)c->state * decades(r, 1, 100));
	return p;
}

/* Any numbers whatever: those that fit are legal, and blocks that are left out change nothing. */
static void any_numbers(void **state)
{
	(void)state;
	struct random r = {test_seed(61), 0};
	struct neap__prefetch *prefetch;
	int fit = 0, spread = 0;
	assert_int_equal(neap__prefetch_new(&prefetch), 0);
	for (int i = 0; i < (all ? 20000 : 1000); i++) {
		struct neap_problem p = two_tiers(&r, i % 8 ? 400 : 20000);
		int64_t most = i % 8 ? 60 : 300;
		int stay = (p.chain.flags & NEAP_CHAIN_TAPES_STAY) != 0;
		struct neap_blocks b = {.advance = below(&r, most),
			.record = stay ? 0 : (int64_t)maybe(&r, 0.4, (double)below(&r, 12)),
			.chunk = 1 + below(&r, 6),
			.tail = below(&r, 2 * most),
			.reserve = (int64_t)maybe(&r, 0.3, (double)p.chain.state)};
		struct neap_near near = {.tier = 1,
			.chunk = 1 + below(&r, 6),
			.advance = below(&r, 20),
			.record = stay ? 0 : (int64_t)maybe(&r, 0.4, (double)below(&r, 12)),
			.tail = below(&r, 20),
			.last_advance = below(&r, 20),
			.last_record = stay ? 0 : (int64_t)maybe(&r, 0.4, (double)below(&r, 12)),
			.last_tail = below(&r, 20)};
		if (uniform(&r) < 0.3)
			near = (struct neap_near){
				.tier = 1, .share = (int32_t)below(&r, NEAP_NEAR_SHARES + 1)};
		struct neap_plan plan = {.size = sizeof plan, .strategy = "auto", .chosen = "auto"};
		b.advance += b.advance + b.record == 0;
		int rc = neap__block_plan_evaluate(&plan, &p, 2, &b, &near, prefetch, 0, NULL);
		if (rc < 0)
			fail_msg("round %d: %s", i, neap_detail());
		if (!plan.feasible)
			continue;
		fit++;
		spread += near.share > 0;
		as_said(&p, &plan);
		neap__plan_complete(&plan, &p);
		neap__plan_bound(&plan, neap_bound(&p));
		if (i % 16 == 0)
			plan_read_back(&plan, &p);
	}
	neap__prefetch_free(prefetch);
	fprintf(stderr, "# %d plans fit, %d of them spread over both tiers\n", fit, spread);
	assert_true(fit > 200 && spread > 50);
}

static double plan_of(struct neap_plan *plan, const struct neap_problem *p)
{
	*plan = (struct neap_plan){.size = sizeof *plan};
	assert_int_equal(neap_plan_make(plan, p, "auto", NULL), 0);
	return plan->feasible ? plan->makespan : INFINITY;
}

/* Another tier never makes a plan slower, nor does a bound pass a plan. */
static void another_tier(void **state)
{
	(void)state;
	struct random r = {test_seed(62), 0};
	int both = 0, gained = 0;
	for (int i = 0; i < (all ? 300 : 30); i++) {
		struct neap_problem p = two_tiers(&r, 1500);
		struct neap_plan plan, other;
		double best = INFINITY, joint = plan_of(&plan, &p);
		if (joint < INFINITY)
			as_said(&p, &plan);
		both += plan.near.tier > 0;
		for (int k = 0; k < 2; k++) {
			struct neap_problem alone = p;
			alone.ntiers = 1;
			alone.tiers[0] = p.tiers[k];
			best = fmin(best, plan_of(&other, &alone));
		}
		if (joint > best * (1 + 1e-9))
			fail_msg("round %d: %.10g with both, %.10g with one", i, joint, best);
		gained += joint < best * 0.99;
		if (plan.near.tier > 0)
			plan_read_back(&plan, &p);
	}
	fprintf(stderr, "# both tiers at once in %d plans, over 1%% faster in %d\n", both, gained);
	assert_true(gained > 0);
}

/*
 * Far blocks of 300 steps, each through ten near blocks that record a third of their steps.
 * Descents from other starts take more simulations than the effort allows and reach 357,063 s at
 * most.
 */
static void near_blocks_that_record(void **state)
{
	(void)state;
	struct neap_problem p = NEAP_PROBLEM_INIT;
	p.chain.steps = 100000;
	p.chain.state = p.chain.live = p.chain.tape = 1000000;
	p.chain.advance = p.chain.record = p.chain.backward = 1;
	p.memory = 100000000;
	for (int i = 0; i < 2; i++) {
		add_tier(&p, NEAP_INFINITE, 0, NEAP_TIER_DUPLEX);
		p.tiers[i].write_rate = p.tiers[i].read_rate = 1e6 / (i ? 300 : 4);
	}
	p.tiers[0].capacity = 100000000;
	struct neap_plan plan;
	double makespan = plan_of(&plan, &p);
	if (makespan > 346100)
		fail_msg("%.10g s", makespan);
	as_said(&p, &plan);
	plan_read_back(&plan, &p);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows),
		cmocka_unit_test(any_numbers),
		cmocka_unit_test(another_tier),
		cmocka_unit_test(near_blocks_that_record),
	};
	(void)argv;
	all = argc > 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
