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
#include <errno.h>
#include <stdlib.h>
#include "base/fail.h"
#include "plan/core/schedule.h"
#include "plan/core/strategy.h"
#include "plan/core/sizing.h"

static void refuse(struct neap_plan *plan, const struct neap_problem *problem, int64_t chunk)
{
	int64_t steps = problem->chain.steps;
	int64_t c = chunk ? chunk : neap__chunk_least(problem, steps, 1);
	uint64_t least = neap__fixed_bytes(problem, 0) +
			 (uint64_t)neap__bytes(problem, neap__ceil_div(steps, c) - 1, c);
	neap__refuse(plan, least, "chunks of %lld steps need %llu", (long long)c,
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

struct standard {
	int64_t n, c, i; /* chunks, steps of a chunk, present chunk */
	int back;
};

static int64_t start(const struct neap_schedule *s, int64_t i)
{
	const struct standard *x = s->self;
	return i == 0 ? 0 : s->problem.chain.steps - (x->n - i) * x->c;
}

static int refill(struct neap_schedule *s)
{
	struct standard *x = s->self;
	if (x->i < 0)
		return 0;
	int64_t t0 = start(s, x->i), t1 = start(s, x->i + 1);
	if (!x->back && x->i < x->n - 1) {
		neap__save(s, x->i, t0);
		neap__advance(s, t0, t1);
		x->i++;
		return 0;
	}
	if (x->back) {
		neap__load(s, x->i, t0);
		neap__drop(s, x->i, t0);
	}
	neap__record(s, t0, t1);
	if (!x->back)
		neap__emit_turn(s);
	neap__backward(s, t0, t1);
	x->back = 1;
	x->i--;
	return 0;
}

static int open(struct neap_schedule *s)
{
	int64_t c = s->plan.params.chunk;
	if (c < 1)
		return neap__fail(NEAP_EUSAGE, "schedule: standard: chunk is %lld", (long long)c);
	struct standard *x = s->self = calloc(1, sizeof *x);
	if (!x)
		return neap__fail(-ENOMEM, "schedule: out of memory");
	x->c = c;
	x->n = neap__ceil_div(s->problem.chain.steps, c);
	s->refill = refill;
	return 0;
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
