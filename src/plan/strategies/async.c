/* SPDX-License-Identifier: Apache-2.0 */
/*
 * async.c: the strategy `async`: asynchronous multistage checkpointing (Kukreja, Hueckelheim and
 * Gorman, arXiv 1806.01117). A state is sent to the slow tier every I steps, as often as the
 * tier takes one without delaying the computation. On the way back, Revolve reverses the steps
 * between two states while the next state is read. The last interval is reversed at once.
 *
 *     I    ceil( max(seconds of a write, f) / f ) steps, f the seconds of an advance
 *
 * A plan of blocks (blocks/block_program.h) with J = I and k = 0.
 *
 * Peak: s S + A bytes (S a state, A a tape), s the slots that fit; one of them is reserved for
 * the state that is read where that pays.
 */
#include <errno.h>
#include <math.h>
#include "base/fail.h"
#include "plan/blocks/block_plan.h"
#include "plan/recompute/recompute_cost.h"
#include "plan/core/strategy.h"
#include "plan/core/sizing.h"

#define INTERVAL_MOST 700000 /* steps; a longer block has too many operations to run */

static int64_t interval_of(
	const struct neap_problem *problem, const struct neap_params *fixed, int tier)
{
	const struct neap_chain *c = &problem->chain;
	double write = neap_tier_seconds(&problem->tiers[tier - 1], 1, c->state);
	double interval = c->advance > 0 ? ceil(fmax(write, c->advance) / c->advance)
					 : (write > 0 ? (double)c->steps : 1);
	if (fixed->interval)
		interval = (double)fixed->interval;
	return interval < (double)c->steps ? (int64_t)interval : c->steps;
}

/* The plan with or without a slot for the state that is read, whichever is faster. */
static int with_reserve(struct neap_plan *plan, const struct neap_problem *problem, int tier,
	int64_t interval, struct neap__prefetch *prefetch)
{
	int64_t state = (int64_t)problem->chain.state;
	struct neap_blocks blocks = {
		.advance = interval, .tail = interval, .inner = NEAP_BLOCKS_REVOLVE};
	struct neap_plan other = *plan;
	NEAP_TRY(neap__block_plan_evaluate(plan, problem, tier, &blocks, NULL, prefetch, 0, NULL));
	blocks.reserve = state;
	NEAP_TRY(
		neap__block_plan_evaluate(&other, problem, tier, &blocks, NULL, prefetch, 0, NULL));
	if (other.feasible && (!plan->feasible || other.makespan < plan->makespan))
		*plan = other;
	return 0;
}

/* Returns 1 where Revolve's table (recompute_cost.h) with `slots` slots reaches an interval. */
static int covers(const struct neap_problem *problem, int64_t interval, int64_t slots)
{
	struct neap__recompute costs = {0};
	int64_t state = (int64_t)problem->chain.state, tape = (int64_t)problem->chain.tape;
	int rc = neap__recompute_make(&costs, interval, slots * state + tape, state, tape, 1);
	int64_t reach = costs.reach;
	neap__recompute_free(&costs);
	return rc < 0 ? rc : reach >= interval;
}

/* The fewest slots whose table reaches the interval and whose plan works; -1: none found. */
static int64_t slots_least(const struct neap_problem *problem, int tier, int64_t interval,
	struct neap__prefetch *prefetch)
{
	struct neap_problem richer = *problem;
	struct neap_plan trial = {.size = sizeof trial, .strategy = "async"};
	int64_t low = interval > 1, high = low, rc;
	while ((rc = covers(problem, interval, high)) == 0 && high < interval)
		high = 2 * high + 1;
	for (low--; rc > 0 && high - low > 1;) {
		int64_t middle = low + (high - low) / 2;
		int enough = covers(problem, interval, middle);
		if (enough < 0)
			return enough;
		*(enough ? &high : &low) = middle;
	}
	if (rc <= 0)
		return rc < 0 ? rc : -1;
	richer.memory = neap__fixed_bytes(problem, tier) + (uint64_t)neap__bytes(problem, high, 1);
	NEAP_TRY(with_reserve(&trial, &richer, tier, interval, prefetch));
	return trial.feasible ? high : -1;
}

static int refuse(
	struct neap_plan *plan, const struct neap_problem *problem, int tier, int64_t interval)
{
	int64_t steps = problem->chain.steps, sent = neap__ceil_div(steps, interval) - 1;
	struct neap__prefetch *prefetch;
	if (sent > neap__places(problem, tier)) {
		neap__refuse(plan, 0, "tier %s is too small: it holds %lld states",
			problem->tiers[tier - 1].name, (long long)neap__places(problem, tier));
		return 0;
	}
	tier = sent ? tier : 0;
	NEAP_TRY(neap__prefetch_new(&prefetch));
	int64_t slots = slots_least(problem, tier, interval, prefetch);
	neap__prefetch_free(prefetch);
	if (slots == -ENOMEM)
		return -ENOMEM;
	uint64_t least = neap__fixed_bytes(problem, tier) +
			 (uint64_t)neap__bytes(problem, slots < 0 ? 0 : slots, 1);
	if (slots < 0 || least <= problem->memory)
		neap__refuse(plan, 0, "a state every %lld steps does not fit", (long long)interval);
	else
		neap__refuse(plan, least, "%lld slot%s and a tape need %llu", (long long)slots,
			slots == 1 ? "" : "s", (unsigned long long)least);
	return 0;
}

static int attempt(struct neap_plan *plan, const struct neap_problem *problem,
	const struct neap_params *fixed, int tier)
{
	int64_t interval = interval_of(problem, fixed, tier);
	struct neap__prefetch *prefetch;
	if (interval > INTERVAL_MOST) {
		neap__refuse(plan, 0, "a state every %lld steps leaves too much between them",
			(long long)interval);
		return 0;
	}
	NEAP_TRY(neap__prefetch_new(&prefetch));
	int rc = with_reserve(plan, problem, tier, interval, prefetch);
	neap__prefetch_free(prefetch);
	if (rc < 0 || plan->feasible)
		return rc;
	return refuse(plan, problem, tier, interval);
}

static int solve(
	struct neap_plan *plan, const struct neap_problem *problem, const struct neap_params *fixed)
{
	return neap__over_tiers(plan, problem, fixed, attempt);
}

const struct neap__strategy neap__strategy_async = {
	.name = "async",
	.about = "a state as often as the tier takes one, Revolve in between (arXiv 1806.01117)",
	.solve = solve,
	.open = neap__block_plan_open,
	.traits = NEAP_STRATEGY_TIERS,
	.plan_seconds = NEAP__PLANS_IN_CLOSED_FORM,
	.color = "#CC6677",
	.mark = 6,
};
