/* SPDX-License-Identifier: Apache-2.0 */
/*
 * auto.c: the strategy `auto`: the fastest feasible strategy by predicted makespan. Of equal
 * makespans the earlier row of the table is taken; rows after one that meets the lower bound
 * are not asked. Where no row meets the bound and there is a slow tier, plans of blocks are
 * searched too (block_search.h), or plans of unequal stages (offload_search.h). So the answer
 * is never slower than any row. Ours.
 */
#include <math.h>
#include "base/fail.h"
#include "plan/blocks/block_plan.h"
#include "plan/blocks/block_search.h"
#include "plan/blocks/near_search.h"
#include "plan/offload/offload_search.h"
#include "plan/core/strategy.h"
#include "plan/core/sizing.h"
#include "plan/core/plan_row.h"
#include "plan/strategy_table.h"

#define EFFORT 2000	     /* simulations, unless params say otherwise */
#define STEPS_LONG 100000000 /* beyond it a simulation takes longer: a quarter of EFFORT */

/* Relative: a plan so close to the bound ends a search; a plan must be faster by more to win. */
#define AT_BOUND 1e-6
#define AT_BOUND_STAGES 1e-9
#define FASTER 1e-12

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
			if (plan->feasible && plan->makespan <= bound * (1 + AT_BOUND))
				return 0;
			NEAP_TRY(neap__near_search(&trial, problem, far, near, effort,
				plan->feasible ? plan->makespan : INFINITY));
			take_faster(plan, &trial);
		}
	return 0;
}

/*
 * Searches plans of blocks through each tier, with the whole effort, so that another tier never
 * makes a plan slower, then through two at once; takes the best one that is faster.
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
	for (int tier = 1; tier <= problem->ntiers; tier++) {
		struct neap_plan trial = trial_plan();
		if (plan->feasible && plan->makespan <= bound * (1 + AT_BOUND))
			return 0;
		NEAP_TRY(neap__block_search(
			&trial, problem, tier, effort, plan->feasible ? plan->makespan : INFINITY));
		take_faster(plan, &trial);
	}
	return search_pairs(plan, problem, effort, bound);
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

static int solve(
	struct neap_plan *plan, const struct neap_problem *problem, const struct neap_params *fixed)
{
	if (problem->chain.join) {
		plan->chosen = neap__strategy_join.name;
		return neap__strategy_join.solve(plan, problem, fixed);
	}
	const char *name = plan->strategy;
	double bound = neap_bound(problem);
	uint64_t least = 0;
	int found = 0;
	double still = 0; /* a bound of what needs no tier */
	if (problem->chain.stages && problem->ntiers > 0) {
		NEAP_TRY(search_stages(plan, problem, fixed));
		found = plan->feasible;
		still = bound_without_tiers(problem);
	}
	for (int i = 0; neap__strategies[i]; i++) {
		struct neap_plan trial = {.size = sizeof trial};
		int tiers = (neap__strategies[i]->traits & NEAP_STRATEGY_TIERS) != 0;
		if (found && !tiers && plan->makespan <= still)
			continue;
		if (found && plan->makespan <= bound * (1 + FASTER))
			break; /* no other row can be faster */
		if (neap__strategies[i] == &neap__strategy_auto)
			continue;
		NEAP_TRY(neap__plan_row(&trial, neap__strategies[i], problem, fixed));
		if (trial.feasible && (!found || trial.makespan < plan->makespan * (1 - FASTER))) {
			*plan = trial;
			found = 1;
		}
		if (!trial.feasible && trial.least_bytes && (!least || trial.least_bytes < least))
			least = trial.least_bytes;
	}
	plan->feasible = found;
	NEAP_TRY(search(plan, problem, fixed, bound));
	plan->strategy = name;
	if (!plan->feasible) {
		if (problem->chain.stages && problem->ntiers)
			NEAP_TRY(neap__offload_auto_least(&least, problem, fixed->effort));
		int classic = (problem->chain.flags & NEAP_CHAIN_CLASSIC) != 0;
		neap__refuse(plan, least,
			least ? "no strategy fits %llu %s"
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
