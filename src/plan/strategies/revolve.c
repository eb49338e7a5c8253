/* SPDX-License-Identifier: Apache-2.0 */
/*
 * revolve.c: the strategy `revolve`: the fewest advance steps with s slots and one tape (Griewank
 * and Walther 2000, Algorithm 799), for one step at a time. The arithmetic is in binomial.h,
 * the recursion in revolve_stack.h. If a call of the model has a cost (chain.call), steps may be
 * groups of time steps (core/leaf_groups.h); the number of advances is then the least for groups.
 *
 * Peak: s S + A bytes (S a state, A a tape), s = min(slots that fit, T - 1) for T steps; with
 * groups of g steps s S + g A.
 */
#include "plan/recompute/revolve_stack.h"

#include <errno.h>
#include <stdlib.h>
#include "base/fail.h"
#include "plan/core/strategy.h"
#include "plan/core/sizing.h"

static int solve(
	struct neap_plan *plan, const struct neap_problem *problem, const struct neap_params *fixed)
{
	const struct neap_chain *c = &problem->chain;
	int64_t steps = c->steps, pool = neap__pool_bytes(problem, 0), tape = (int64_t)c->tape;
	int64_t slots = pool < tape ? -1 : (pool - tape) / (int64_t)c->state;
	int64_t least = neap__binomial_slots_least(steps);

	if (fixed->checkpoints && steps > 1) {
		least = fixed->checkpoints < steps - 1 ? fixed->checkpoints : steps - 1;
		slots = slots >= least ? least : -1;
	}
	if (slots > steps - 1)
		slots = steps - 1;
	if (slots < least) {
		uint64_t bytes =
			neap__fixed_bytes(problem, 0) + (uint64_t)neap__bytes(problem, least, 1);
		neap__refuse(plan, bytes, "%lld slot%s and a tape need %llu", (long long)least,
			least == 1 ? "" : "s", (unsigned long long)bytes);
		return 0;
	}
	plan->record_steps = steps;
	double copies = 0;
	if (steps > 1) {
		struct neap__binomial x = neap__binomial(steps, slots);
		plan->advance_steps = neap__binomial_extra(&x);
		if (plan->advance_steps < 0) {
			neap__refuse(plan, 0, "%lld slots: more than 2^63 steps", (long long)slots);
			return 0;
		}
		copies = (double)(1 + neap__binomial_saves(x)) * c->slot_write +
			 (double)(steps - 1) * c->slot_read;
	}
	neap__accept(plan, problem, 0, slots, neap__bytes(problem, slots, 1));
	plan->params.checkpoints = slots;
	plan->makespan = (double)plan->advance_steps * c->advance +
			 (double)steps * (c->record + c->backward) + copies +
			 (double)(3 * steps - 1) * c->call;
	return 0;
}

/* Begins with x_0, which is live, and keeps it where there is more than one step. */
static int refill(struct neap_schedule *s)
{
	struct neap__revolve_stack *x = s->self;
	if (!x->turned && x->depth == 1 && !x->down) {
		x->down = 1;
		if (x->stack[0].part.l >= 2)
			neap__save(s, 0, 0);
	}
	return neap__revolve_stack_next(x, s);
}

static void fini(struct neap_schedule *s)
{
	struct neap__revolve_stack *x = s->self;
	free(x->stack);
}

static int open(struct neap_schedule *s)
{
	int64_t steps = s->problem.chain.steps, slots = s->plan.params.checkpoints;
	if (steps > 1 && slots < 1)
		return neap__fail(NEAP_EUSAGE, "schedule: revolve: no slots");
	struct neap__revolve_stack *x = s->self = calloc(1, sizeof *x);
	if (!x)
		return neap__fail(-ENOMEM, "schedule: out of memory");
	s->refill = refill;
	s->fini = fini;
	s->tables = neap__revolve_stack_tables;
	return neap__revolve_stack_push(x, 0, steps, slots);
}

const struct neap__strategy neap__strategy_revolve = {
	.name = "revolve",
	.about = "the fewest forward steps for a number of slots (Griewank and Walther 2000)",
	.solve = solve,
	.open = open,
	.leaf_steps = 1,
	.plan_seconds = NEAP__PLANS_IN_CLOSED_FORM,
	.color = "#117733",
	.mark = 4,
};
