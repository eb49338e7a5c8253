/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stream.c: the strategy `stream`: records every step once. Tapes leave for the slow tier in
 * chunks of q steps as they are made and come back in reverse order; the last ones never leave
 * fast memory. No step runs twice, so no plan is faster where the tier keeps up with the
 * computation. A plan of blocks (blocks/block_program.h) with J = 0.
 *
 * Peak: as much as the budget allows; q A bytes at least (A a tape).
 */
#include "plan/blocks/block_plan.h"
#include "base/fail.h"
#include "plan/core/strategy.h"
#include "plan/core/sizing.h"

/* Chunks are halves, quarters and so on of what fits, down to this share, or until one works. */
#define SHARES_MOST 64

/* Tapes that must stay in fast memory where chunks of q travel: the tier holds no more. */
static int64_t stay(const struct neap_problem *problem, int tier, int64_t q)
{
	uint64_t capacity = problem->tiers[tier - 1].capacity;
	uint64_t all = (uint64_t)neap__bytes(problem, 0, problem->chain.steps + q);
	if (capacity >= all)
		return 0;
	int64_t places = (int64_t)(capacity / (uint64_t)neap__bytes(problem, 0, q));
	return problem->chain.steps > places * q ? problem->chain.steps - places * q : 0;
}

/* The least budget with chunks of q and at most `tail` tapes that stay (0: any); 0: none. */
static uint64_t least_of(const struct neap_problem *problem, int tier, int64_t q, int64_t tail)
{
	int64_t most = stay(problem, tier, q);
	if (most > 0 && tail > 0 && tail < most)
		return 0;
	return neap__fixed_bytes(problem, tier) +
	       (uint64_t)neap__bytes(problem, 0, q > most ? q : most);
}

/* The longest chunk: all tapes that leave. */
static int64_t longest(const struct neap_problem *problem, const struct neap_params *fixed)
{
	int64_t steps = problem->chain.steps;
	return fixed->tail && fixed->tail < steps ? steps - fixed->tail : steps;
}

static int refuse(struct neap_plan *plan, const struct neap_problem *problem,
	const struct neap_params *fixed, int tier)
{
	int64_t steps = problem->chain.steps, most = longest(problem, fixed);
	int64_t q = !fixed->chunk ? 1 : fixed->chunk < most ? fixed->chunk : most;
	uint64_t all = neap__fixed_bytes(problem, 0) + (uint64_t)neap__bytes(problem, 0, steps);
	uint64_t least = least_of(problem, tier, q, fixed->tail);
	if ((!fixed->tail || fixed->tail >= steps) && (all < least || !least))
		least = all;
	neap__refuse(plan, least > problem->memory ? least : 0,
		"chunks of %lld tapes, %lld of them here, need %llu bytes", (long long)q,
		(long long)stay(problem, tier, q), (unsigned long long)least);
	return 0;
}

/* Chunks of q; the tail is all that fits beside a chunk, or what was asked for. */
static struct neap_blocks chunked(
	const struct neap_problem *problem, int tier, int64_t q, int64_t given_tail)
{
	int64_t fit = neap__tapes_fit(problem, neap__pool_bytes(problem, tier));
	int64_t tail = fit - q > q ? fit - q : q, must = stay(problem, tier, q);
	if (tail < must)
		tail = must;
	int64_t all = neap__tapes_fit(problem, neap__pool_bytes(problem, 0));
	int64_t steps = problem->chain.steps;
	if (all >= steps)
		tail = steps;
	if (given_tail && (all < steps || given_tail < steps))
		tail = given_tail < fit ? given_tail : fit;
	return (struct neap_blocks){.record = q, .chunk = q, .tail = tail};
}

static int best_chunk(struct neap_plan *plan, const struct neap_problem *problem,
	const struct neap_params *fixed, int tier, struct neap__prefetch *prefetch)
{
	int64_t fit = neap__tapes_fit(problem, neap__pool_bytes(problem, tier));
	int64_t most = longest(problem, fixed);
	int64_t given = fixed->chunk < most ? fixed->chunk : most;
	int64_t last = 0;
	if (neap__tapes_fit(problem, neap__pool_bytes(problem, 0)) >= problem->chain.steps &&
		neap__pool_bytes(problem, 0) >= 0)
		fit = problem->chain.steps; /* no tape has to leave */
	for (int64_t d = 1; d <= SHARES_MOST || !plan->feasible; d *= 2) {
		int64_t q = given ? given : fit / d;
		struct neap_plan trial = *plan;
		if (q < 1 || q == last)
			break;
		last = q;
		struct neap_blocks blocks = chunked(problem, tier, q, fixed->tail);
		if (blocks.tail > fit)
			continue;
		NEAP_TRY(neap__block_plan_evaluate(
			&trial, problem, tier, &blocks, NULL, prefetch, 0, NULL));
		if (trial.feasible && (!plan->feasible || trial.makespan < plan->makespan))
			*plan = trial;
	}
	return plan->feasible ? 0 : refuse(plan, problem, fixed, tier);
}

static int attempt(struct neap_plan *plan, const struct neap_problem *problem,
	const struct neap_params *fixed, int tier)
{
	struct neap__prefetch *prefetch;
	NEAP_TRY(neap__prefetch_new(&prefetch));
	int rc = best_chunk(plan, problem, fixed, tier, prefetch);
	neap__prefetch_free(prefetch);
	return rc;
}

static int solve(
	struct neap_plan *plan, const struct neap_problem *problem, const struct neap_params *fixed)
{
	if (problem->chain.flags & NEAP_CHAIN_CLASSIC) {
		neap__refuse(plan, 0, "needs bytes: its tapes travel");
		return 0;
	}
	if (problem->chain.flags & NEAP_CHAIN_TAPES_STAY) {
		neap__refuse(plan, 0, "tapes cannot be offloaded in this problem");
		return 0;
	}
	return neap__over_tiers(plan, problem, fixed, attempt);
}

const struct neap__strategy neap__strategy_stream = {
	.name = "stream",
	.about = "every step recorded once, the tapes sent to slow memory and read back",
	.solve = solve,
	.open = neap__block_plan_open,
	.traits = NEAP_STRATEGY_TIERS,
	.plan_seconds = NEAP__PLANS_IN_CLOSED_FORM,
	.color = "#44AA99",
	.mark = 8,
};
