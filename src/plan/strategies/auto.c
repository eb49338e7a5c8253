/* SPDX-License-Identifier: Apache-2.0 */
/*
 * auto.c: the strategy `auto`: the fastest feasible strategy by predicted makespan. Of equal
 * makespans the earlier row of the table is taken; rows after one that meets the lower bound
 * are not asked. Where no row meets the bound and there is a slow tier, plans of blocks are
 * searched too (block_search.h, kept_search.h), or plans of unequal stages (offload_search.h). So
 * the answer is never slower than any row. Ours.
 */
#include <math.h>
#include "base/fail.h"
#include "plan/blocks/block_plan.h"
#include "plan/blocks/block_search.h"
#include "plan/blocks/kept_search.h"
#include "plan/blocks/near_search.h"
#include "plan/bound/at_bound.h"
#include "plan/offload/offload_search.h"
#include "plan/core/strategy.h"
#include "plan/core/sizing.h"
#include "plan/core/plan_row.h"
#include "plan/strategy_table.h"

/*
 * Simulations, unless params say otherwise. Measured on 186 random problems with tiers (8 to 20,000
 * steps): 500 take 30% less time, and one plan is slower, by 0.002%; 1000 take 10% less, and no
 * plan is slower, but a plan that keeps states is, by 0.1% (tests/plan/test_kept_states.c, row 3).
 */
#define EFFORT 2000
#define STEPS_LONG                                                                                 \
	100000000 /* beyond it a simulation takes longer: a quarter of EFFORT; chosen              \
		   */

#define FASTER 1e-12 /* relative: a plan must be faster by more to win */

static struct neap_plan trial_plan(void)
{
	return (struct neap_plan){.size = sizeof(struct neap_plan),
		.strategy = neap__strategy_auto.name,
		.chosen = neap__strategy_auto.name};
}

static void take_faster(struct neap_plan *plan, const struct neap_plan *trial)
{
	if (trial->feasible && (!plan->feasible || trial->makespan < plan->makespan * (1 - FASTER)))
		*plan = *trial;
}

/* Whether tier a is the faster one of two, of equal ones the first. */
static int is_near(const struct neap_problem *p, int a, int b)
{
	double x = neap_tier_seconds(&p->tiers[a - 1], 1, p->chain.state);
	double y = neap_tier_seconds(&p->tiers[b - 1], 1, p->chain.state);
	return x != y ? x < y : a < b;
}

/* Searches plans of blocks through each two tiers at once. */
static int search_pairs(
	struct neap_plan *plan, const struct neap_problem *problem, int64_t effort, double bound)
{
	for (int far = 1; far <= problem->ntiers; far++)
		for (int near = 1; near <= problem->ntiers; near++) {
			struct neap_plan trial = trial_plan();
			if (near == far || !is_near(problem, near, far))
				continue;
			if (plan->feasible && neap__at_bound(plan->makespan, bound))
				return 0;
			NEAP_TRY(neap__near_search(&trial, problem, far, near, effort,
				plan->feasible ? plan->makespan : INFINITY));
			take_faster(plan, &trial);
		}
	return 0;
}

/* The bound of a problem that keeps one of its tiers. */
static double bound_alone(const struct neap_problem *problem, int tier)
{
	struct neap_problem alone = *problem;
	alone.tiers[0] = problem->tiers[tier - 1];
	alone.ntiers = 1;
	return neap_bound(&alone);
}

/* The families of plans through one tier; each search is as neap__block_search. */
static int (*const families[])(struct neap_plan *plan, const struct neap_problem *problem, int tier,
	int64_t effort, double below) = {neap__block_search, neap__kept_search};

static int search_tier(struct neap_plan *plan, const struct neap_problem *problem, int tier,
	int64_t effort, double bound)
{
	for (size_t i = 0; i < sizeof families / sizeof *families; i++) {
		struct neap_plan trial = trial_plan();
		if (plan->feasible && neap__at_bound(plan->makespan, bound))
			return 0;
		NEAP_TRY(families[i](
			&trial, problem, tier, effort, plan->feasible ? plan->makespan : INFINITY));
		take_faster(plan, &trial);
	}
	return 0;
}

/*
 * Searches plans of blocks through two tiers at once, then through each alone, with the whole
 * effort, unless none through that tier can be faster. So another tier never makes a plan slower.
 */
static int search(struct neap_plan *plan, const struct neap_problem *problem,
	const struct neap_params *fixed, double bound)
{
	const struct neap_chain *c = &problem->chain;
	int64_t usual = c->steps > STEPS_LONG ? EFFORT / 4 : EFFORT;
	int64_t effort = fixed->effort ? fixed->effort : usual;
	if (c->stages || c->flags & NEAP_CHAIN_CLASSIC || fixed->chunk || fixed->checkpoints ||
		fixed->remote_chunk || fixed->interval)
		return 0;
	NEAP_TRY(search_pairs(plan, problem, effort, bound));
	for (int tier = 1; tier <= problem->ntiers; tier++) {
		if (plan->feasible && problem->ntiers > 1 &&
			plan->makespan <= bound_alone(problem, tier))
			continue;
		NEAP_TRY(search_tier(plan, problem, tier, effort, bound));
	}
	return 0;
}

/* Searches plans of unequal stages with tiers; takes the best one if it is faster. */
static int search_stages(
	struct neap_plan *plan, const struct neap_problem *problem, const struct neap_params *fixed)
{
	struct neap_plan trial = trial_plan();
	NEAP_TRY(neap__offload_auto_solve(&trial, problem, fixed->effort));
	take_faster(plan, &trial);
	return 0;
}

static double bound_without_tiers(const struct neap_problem *problem)
{
	struct neap_problem fast = *problem;
	fast.ntiers = 0;
	return neap_bound(&fast);
}

/* What is known while rows are asked. */
struct rows_asked {
	const struct neap_problem *problem;
	const struct neap_params *fixed;
	double bound, still; /* still: a bound of what needs no tier */
	uint64_t least;
};

/* Asks the rows for chains of unknown length, which run through every step, or all others. */
static int ask_rows(struct neap_plan *plan, struct rows_asked *x, uint32_t unknown)
{
	for (int i = 0; neap__strategies[i]; i++) {
		const struct neap__strategy *row = neap__strategies[i];
		struct neap_plan trial = {.size = sizeof trial};
		int tiers = (row->traits & NEAP_STRATEGY_TIERS) != 0;
		if ((row->traits & NEAP_STRATEGY_UNKNOWN_LENGTH) != unknown ||
			(plan->feasible && !tiers && plan->makespan <= x->still))
			continue;
		if (plan->feasible && neap__at_bound(plan->makespan, x->bound) &&
			plan->makespan <= x->bound * (1 + FASTER))
			break; /* no other row can be faster */
		if (row == &neap__strategy_auto)
			continue;
		NEAP_TRY(neap__plan_row_below(&trial, row, x->problem, x->fixed,
			plan->feasible ? plan->makespan : INFINITY));
		take_faster(plan, &trial);
		if (!trial.feasible && trial.least_bytes &&
			(!x->least || trial.least_bytes < x->least))
			x->least = trial.least_bytes;
	}
	return 0;
}

static int solve(
	struct neap_plan *plan, const struct neap_problem *problem, const struct neap_params *fixed)
{
	if (problem->chain.join) {
		plan->chosen = neap__strategy_join.name;
		return neap__strategy_join.solve(plan, problem, fixed);
	}
	const char *name = plan->strategy;
	struct rows_asked x = {problem, fixed, neap_bound(problem), 0, 0};
	if (problem->chain.stages && problem->ntiers > 0) {
		NEAP_TRY(search_stages(plan, problem, fixed));
		x.still = bound_without_tiers(problem);
	}
	NEAP_TRY(ask_rows(plan, &x, 0));
	NEAP_TRY(search(plan, problem, fixed, x.bound));
	NEAP_TRY(ask_rows(plan, &x, NEAP_STRATEGY_UNKNOWN_LENGTH));
	plan->strategy = name;
	if (!plan->feasible) {
		if (problem->chain.stages && problem->ntiers)
			NEAP_TRY(neap__offload_auto_least(&x.least, problem, fixed->effort));
		int classic = (problem->chain.flags & NEAP_CHAIN_CLASSIC) != 0;
		neap__refuse(plan, x.least,
			x.least ? "no strategy fits %llu %s"
				: "no strategy solves this problem (budget %llu %s)",
			(unsigned long long)problem->memory, classic ? "slots" : "bytes");
	}
	return 0;
}

static int open(struct neap_schedule *s)
{
	if (s->problem.chain.join)
		return neap__fail(NEAP_EUSAGE, "schedule: auto: not a problem it plans");
	return s->problem.chain.stages ? neap__offload_auto_open(s) : neap__block_plan_open(s);
}

const struct neap__strategy neap__strategy_auto = {
	.name = "auto",
	.about = "the fastest feasible of all strategies, by simulation",
	.solve = solve,
	.open = open,
	.traits = NEAP_STRATEGY_CHOOSES | NEAP_STRATEGY_STAGES | NEAP_STRATEGY_JOIN |
		  NEAP_STRATEGY_TIERS,
	.plan_seconds = NEAP__PLANS_BY_SEARCH,
	.color = "#882255",
	.mark = 15,
};
