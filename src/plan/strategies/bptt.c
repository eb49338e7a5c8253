/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bptt.c: the strategy `bptt`: keeps every tape and recomputes nothing, plain backpropagation
 * through time (Werbos 1990). The fastest plan wherever T tapes of A bytes fit.
 *
 * Peak: T A bytes.
 */
#include "plan/core/schedule.h"
#include "plan/core/strategy.h"
#include "plan/core/sizing.h"

static int solve(
	struct neap_plan *plan, const struct neap_problem *problem, const struct neap_params *fixed)
{
	const struct neap_chain *c = &problem->chain;
	int64_t bytes = neap__bytes(problem, 0, c->steps);
	(void)fixed;
	if (c->flags & NEAP_CHAIN_CLASSIC && c->steps > 1) {
		neap__refuse(plan, 0, "needs bytes: it keeps more than one tape");
		return 0;
	}
	if (neap__pool_bytes(problem, 0) < bytes) {
		uint64_t least = neap__fixed_bytes(problem, 0) + (uint64_t)bytes;
		neap__refuse(plan, least, "all tapes need %llu bytes", (unsigned long long)least);
		return 0;
	}
	neap__accept(plan, problem, 0, 0, bytes);
	plan->record_steps = c->steps;
	plan->makespan = (double)c->steps * (c->record + c->backward) + 2 * c->call;
	return 0;
}

static int refill(struct neap_schedule *s)
{
	int64_t steps = s->problem.chain.steps;
	if (s->plan.record_steps < 0)
		return 0;
	s->plan.record_steps = -1; /* once */
	neap__record(s, 0, steps);
	neap__emit_turn(s);
	neap__backward(s, 0, steps);
	return 0;
}

static int open(struct neap_schedule *s)
{
	s->refill = refill;
	return 0;
}

static int64_t every_tape(const struct neap_plan *plan, int64_t steps)
{
	(void)plan;
	return steps;
}

const struct neap__strategy neap__strategy_bptt = {
	.name = "bptt",
	.about = "every tape kept, nothing recomputed: plain backpropagation through time",
	.solve = solve,
	.open = open,
	.tapes_held = every_tape,
	.plan_seconds = NEAP__PLANS_IN_CLOSED_FORM,
	.color = "#000000",
	.mark = 7,
};
