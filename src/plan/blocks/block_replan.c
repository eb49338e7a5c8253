/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_replan.c: the rest of the chain is searched as a chain of its own. That search knows
 * neither the queue of what was sent before nor that earlier blocks come back afterwards. So the
 * whole is run through against the clock, with what was found and with neighbours of it.
 */
#include "plan/blocks/block_replan.h"

#include <math.h>
#include "base/fail.h"
#include "plan/blocks/block_plan.h"
#include "plan/blocks/block_search.h"
#include "plan/core/plan_row.h"

#define TRIES 24 /* neighbours that are simulated; chosen: twice the 12 of one round */

struct replanning {
	const struct neap_problem *problem;
	const struct neap_plan *old;
	struct neap__prefetch *prefetch;
	int64_t step, chunk;
	struct neap_plan best;
};

/* The problem of the steps from x->step on. */
static struct neap_problem rest_of(const struct replanning *x)
{
	struct neap_problem rest = *x->problem;
	struct neap_tier_spec *tier = &rest.tiers[x->old->tier - 1];
	double share = (double)x->step / (double)rest.chain.steps;
	uint64_t before = (uint64_t)(share * (double)x->old->tiers[x->old->tier - 1].peak_bytes);
	rest.chain.steps -= x->step;
	if (tier->capacity < NEAP_INFINITE)
		tier->capacity -= before < tier->capacity ? before : tier->capacity;
	if (x->chunk == 0)
		rest.chain.flags |= NEAP_CHAIN_TAPES_STAY;
	return rest;
}

/* Runs the whole with these blocks from x->step on, and keeps it where it is the best so far. */
static int try_blocks(struct replanning *x, const struct neap_blocks *blocks, int *better)
{
	struct neap_plan plan = *x->old;
	*better = 0;
	plan.replans[plan.replan_count++] = (struct neap_replan){x->step, *blocks};
	int rc = neap__block_plan_run(&plan, x->problem, x->prefetch);
	if (rc == NEAP_EINFEASIBLE || (rc == 0 && !plan.feasible))
		return 0;
	NEAP_TRY(rc);
	if (plan.makespan < x->best.makespan) {
		x->best = plan;
		*better = 1;
	}
	return 0;
}

/* Another length of the blocks or of the tail; 0: there is no n-th one. */
static int change(struct neap_blocks *b, int n)
{
	/* Chosen: costs changed by more than 5%, so a few tens of percent of a length suffice. */
	static const double factors[] = {0.7, 0.9, 0.97, 1.03, 1.1, 1.4};
	if (n >= 12)
		return 0;
	int64_t *at = n < 6 ? &b->advance : &b->tail;
	*at = (int64_t)((double)*at * factors[n % 6] + 0.5);
	return 1;
}

static int improve(struct replanning *x)
{
	int tries = 0, better = 1;
	while (better) {
		better = 0;
		for (int n = 0; tries < TRIES; n++) {
			struct neap_blocks b = x->best.replans[x->best.replan_count - 1].blocks;
			int found;
			if (!change(&b, n))
				break;
			tries++;
			NEAP_TRY(try_blocks(x, &b, &found));
			better |= found;
		}
	}
	return 0;
}

static int replan(struct replanning *x, int64_t effort)
{
	struct neap_problem rest = rest_of(x);
	struct neap_plan found = {.size = sizeof found};
	int better;
	NEAP_TRY(neap__block_search(&found, &rest, x->old->tier, effort, INFINITY));
	if (!found.feasible)
		return 0;
	if (found.blocks.chunk > x->chunk && x->chunk > 0)
		found.blocks.chunk = x->chunk;
	NEAP_TRY(try_blocks(x, &found.blocks, &better));
	return better ? improve(x) : 0;
}

int neap__block_replan(struct neap_plan *plan, const struct neap_problem *problem, int64_t step,
	int64_t chunk, int64_t effort, double gain)
{
	struct replanning x = {.problem = problem, .old = plan, .step = step, .chunk = chunk};
	NEAP_TRY(neap__prefetch_new(&x.prefetch));
	int rc = neap__block_plan_run(plan, problem, x.prefetch);
	x.best = *plan;
	if (rc == 0 && plan->replan_count < NEAP_REPLANS_MAX)
		rc = replan(&x, effort);
	neap__prefetch_free(x.prefetch);
	NEAP_TRY(rc);
	if (!(x.best.makespan < plan->makespan * (1 - gain)))
		return 0;
	*plan = x.best;
	neap__plan_complete(plan, problem);
	neap__plan_bound(plan, neap_bound(problem));
	return 1;
}

int neap__block_replan_holds(const struct neap_plan *rest, const struct neap_plan *plan,
	const struct neap_problem *problem)
{
	struct neap_plan now = *rest, before = *plan;
	struct neap__prefetch *prefetch;
	NEAP_TRY(neap__prefetch_new(&prefetch));
	int rc = neap__block_plan_run(&before, problem, prefetch);
	if (rc == 0)
		rc = neap__block_plan_run(&now, problem, prefetch);
	neap__prefetch_free(prefetch);
	if (rc == NEAP_EINFEASIBLE)
		return 0;
	NEAP_TRY(rc);
	return now.feasible && now.makespan <= before.makespan;
}
