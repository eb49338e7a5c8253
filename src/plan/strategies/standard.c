/* SPDX-License-Identifier: Apache-2.0 */
/*
 * standard.c: the strategy `standard`: a checkpoint every c steps, all in fast memory (Chen et
 * al. 2016; "Standard" of arXiv 2412.11810).
 *
 *     T, S, A   steps of the chain; bytes of a state and of a tape
 *     c         steps of a chunk; n = ceil(T/c) chunks, of which the first may be shorter
 *
 * The last chunk is recorded as the forward pass reaches it, so T - c steps run twice and that
 * chunk needs no slot. A slot falls free when its chunk is recorded. Fewer steps run twice
 * and fewer calls are made when c grows, so the largest c that fits is the best.
 *
 * Peak: (n - 1) S + c A bytes, S below the paper's (T/c) S + c A.
 */
#include "base/fail.h"
#include "plan/core/chunk_walk.h"
#include "plan/core/strategy.h"
#include "plan/core/sizing.h"

static void refuse(struct neap_plan *plan, const struct neap_problem *problem, int64_t chunk)
{
	int64_t steps = problem->chain.steps;
	int64_t c = chunk ? chunk : neap__chunk_least(problem, steps, 1);
	uint64_t least = neap__fixed_bytes(problem, 0) +
			 (uint64_t)neap__bytes(problem, neap__ceil_div(steps, c) - 1, c);
	neap__refuse(plan, least, "chunks of %lld steps need %llu bytes", (long long)c,
		(unsigned long long)least);
}

static int solve(
	struct neap_plan *plan, const struct neap_problem *problem, const struct neap_params *fixed)
{
	const struct neap_chain *k = &problem->chain;
	int64_t steps = k->steps, pool = neap__pool_bytes(problem, 0);
	int64_t c = fixed->chunk < steps ? fixed->chunk : steps;
	if (k->flags & NEAP_CHAIN_CLASSIC && c > 1) {
		neap__refuse(plan, 0, "needs bytes: chunks of %lld steps keep as many tapes",
			(long long)c);
		return 0;
	}
	if (c == 0)
		c = neap__chunk_largest(problem, steps, pool);
	if (c == 0 || pool < neap__bytes(problem, neap__ceil_div(steps, c) - 1, c)) {
		refuse(plan, problem, c);
		return 0;
	}
	int64_t n = neap__ceil_div(steps, c);
	neap__accept(plan, problem, 0, n - 1, neap__bytes(problem, n - 1, c));
	plan->params.chunk = c;
	plan->advance_steps = steps - c;
	plan->record_steps = steps;
	plan->makespan =
		(double)steps * (k->record + k->backward) + (double)(steps - c) * k->advance +
		(double)(n - 1) * (k->slot_write + k->slot_read) + (double)(3 * n - 1) * k->call;
	return 0;
}

static void keep(struct neap_schedule *s, int64_t i)
{
	neap__save(s, i, neap__chunk_start(s, i));
}

static void bring(struct neap_schedule *s, int64_t i)
{
	neap__load(s, i, neap__chunk_start(s, i));
	neap__drop(s, i, neap__chunk_start(s, i));
}

static int open(struct neap_schedule *s)
{
	static const struct neap__chunk_moves moves = {.keep = keep, .bring = bring};
	int64_t c = s->plan.params.chunk;
	if (c < 1)
		return neap__fail(NEAP_EUSAGE, "schedule: standard: chunk is %lld", (long long)c);
	return neap__chunk_walk_open(s, sizeof(struct neap__chunk_walk), &moves, c);
}

const struct neap__strategy neap__strategy_standard = {
	.name = "standard",
	.about = "a checkpoint every chunk of steps, all in fast memory (arXiv 2412.11810, "
		 "Standard)",
	.solve = solve,
	.open = open,
	.plan_seconds = NEAP__PLANS_IN_CLOSED_FORM,
	.color = "#DDAA33",
	.mark = 5,
};
