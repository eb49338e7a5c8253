/* SPDX-License-Identifier: Apache-2.0 */
/* block_plan.c: runs, straight-line continuation, and the schedule of a plan of blocks. */
#include "plan/blocks/block_plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "plan/blocks/block_program.h"
#include "plan/core/sizing.h"

#define ACTIONS_MOST ((int64_t)3000000) /* operations of a full run */
#define SHORT_MOST ((int64_t)2000000)	/* of one that compares plans */

/*
 * Blocks that reach the steady state: the memory must have been filled this many times by what the
 * blocks send. The least and the most keep short runs meaningful and long ones short.
 */
#define FILLS 4
#define STEADY_LEAST 16
#define STEADY_MOST 20000

static void to_queue(void *user, const struct neap_action *action)
{
	neap__emit(user, action);
}

static int refill(struct neap_schedule *s)
{
	int rc = 1;
	while (rc > 0 && s->length == 0)
		rc = neap__prefetch_next(*(struct neap__prefetch **)s->self, to_queue, s);
	if (rc == NEAP_EINFEASIBLE)
		return neap__fail(NEAP_EUSAGE, "schedule: the plan's blocks do not fit");
	return rc < 0 ? rc : 0;
}

static void fini(struct neap_schedule *s)
{
	neap__prefetch_free(*(struct neap__prefetch **)s->self);
}

static int64_t tables(struct neap_schedule *s, int64_t room)
{
	return neap__prefetch_tables(*(struct neap__prefetch **)s->self, room);
}

int neap__block_plan_open(struct neap_schedule *s)
{
	struct neap__prefetch **prefetch = s->self = calloc(1, sizeof *prefetch);
	if (!prefetch)
		return neap__fail(-ENOMEM, "schedule: out of memory");
	s->refill = refill;
	s->fini = fini;
	s->tables = tables;
	NEAP_TRY(neap__prefetch_new(prefetch));
	int rc = neap__prefetch_start_plan(*prefetch, &s->problem, &s->plan);
	if (rc == NEAP_EINFEASIBLE)
		return neap__fail(NEAP_EUSAGE, "schedule: the plan's blocks do not fit");
	return rc;
}

int neap__block_plan_at_block(struct neap_schedule *s, int64_t *step)
{
	return s->refill == refill && s->head == s->length &&
	       neap__prefetch_at_block(*(struct neap__prefetch **)s->self, step);
}

int neap__block_plan_switch(
	struct neap_schedule *s, const struct neap_problem *problem, const struct neap_plan *plan)
{
	return neap__prefetch_replan(*(struct neap__prefetch **)s->self, problem,
		&plan->replans[plan->replan_count - 1].blocks);
}

int64_t neap__block_plan_steady_blocks(
	const struct neap_problem *problem, int tier, const struct neap_blocks *blocks)
{
	const struct neap_chain *c = &problem->chain;
	double sent = (double)blocks->record * (double)neap__tape_sent(c) + (double)c->state;
	double n = FILLS * (double)(neap__pool_bytes(problem, tier) + (int64_t)c->state) / sent;
	return n < STEADY_LEAST ? STEADY_LEAST : n > STEADY_MOST ? STEADY_MOST : (int64_t)n;
}

/* Runs a chain of `steps` steps from start to end. */
static int run(struct neap__prefetch_total *total, struct neap__prefetch *prefetch,
	const struct neap_problem *problem, int tier, const struct neap_blocks *blocks,
	int64_t steps, int64_t most, int64_t *actions)
{
	struct neap_problem shorter = *problem;
	shorter.chain.steps = steps;
	int rc = neap__prefetch_start(prefetch, &shorter, tier, blocks);
	for (int64_t i = 0; rc >= 0 && i < most; i++)
		if ((rc = neap__prefetch_next(prefetch, NULL, NULL)) <= 0)
			break;
	neap__prefetch_total(prefetch, total);
	if (actions)
		*actions += total->actions;
	return rc > 0 ? NEAP_EINFEASIBLE : rc; /* rc > 0: too long to run */
}

static int64_t continue_line(int64_t a, int64_t b, int64_t more)
{
	return b + (b - a) * more;
}

/*
 * Continues the totals of n and of 2 n blocks to `blocks` blocks: all grow by the same amount
 * every n blocks. The remainder of blocks / n is a part of both runs.
 */
static int extrapolate(struct neap__prefetch_total *out, struct neap__prefetch *prefetch,
	const struct neap_problem *problem, int tier, const struct neap_blocks *plan,
	int64_t blocks, int64_t n, int64_t most, int64_t *actions)
{
	int64_t unit = plan->advance + plan->record, steps = problem->chain.steps;
	int64_t more = (blocks - n) / n - 1, rest = blocks - n * (more + 1);
	struct neap__prefetch_total a, b;
	int64_t short_steps = steps - (blocks - rest) * unit, longer = short_steps + n * unit;
	NEAP_TRY(run(&a, prefetch, problem, tier, plan, short_steps, most, actions));
	NEAP_TRY(run(&b, prefetch, problem, tier, plan, longer, most, actions));
	*out = b;
	out->makespan = b.makespan + (double)more * (b.makespan - a.makespan);
	out->stall = b.stall + (double)more * (b.stall - a.stall);
	out->lost = b.lost + (double)more * (b.lost - a.lost);
	out->advanced = continue_line(a.advanced, b.advanced, more);
	out->recorded = continue_line(a.recorded, b.recorded, more);
	out->actions = continue_line(a.actions, b.actions, more);
	out->state_places = continue_line(a.state_places, b.state_places, more);
	out->tape_places = continue_line(a.tape_places, b.tape_places, more);
	out->written = (uint64_t)continue_line((int64_t)a.written, (int64_t)b.written, more);
	out->read = (uint64_t)continue_line((int64_t)a.read, (int64_t)b.read, more);
	return 0;
}

static int fill_plan(struct neap_plan *plan, const struct neap_problem *problem, int tier,
	const struct neap_blocks *blocks, const struct neap__prefetch_total *t)
{
	const struct neap_chain *c = &problem->chain;
	uint64_t bytes = (uint64_t)t->state_places * c->state +
			 (uint64_t)t->tape_places * (uint64_t)t->longest * c->tape;
	if (tier > 0 && bytes > problem->tiers[tier - 1].capacity)
		return 0;
	neap__accept(plan, problem, tier, t->slots, (int64_t)t->peak);
	plan->blocks = *blocks;
	plan->params = (struct neap_params){.tail = blocks->tail, .kept_tapes = blocks->record};
	if (blocks->advance > 0)
		plan->params.interval = blocks->advance + blocks->record;
	if (blocks->record > 0)
		plan->params.chunk = blocks->chunk;
	plan->advance_steps = t->advanced;
	plan->record_steps = t->recorded;
	plan->makespan = t->makespan;
	plan->stall = t->stall;
	plan->lost = t->lost;
	if (tier > 0) {
		plan->tiers[tier - 1].peak_bytes = bytes;
		plan->tiers[tier - 1].written = t->written;
		plan->tiers[tier - 1].read = t->read;
	}
	return 0;
}

/* Runs all blocks but those that prefetch_skip.c leaves out. *actions grows by what was run. */
static int run_whole(struct neap__prefetch_total *total, struct neap__prefetch *prefetch,
	const struct neap_problem *problem, int tier, const struct neap_blocks *blocks,
	int64_t most, int64_t *actions)
{
	int64_t performed = 0;
	int rc = neap__prefetch_run(prefetch, problem, tier, blocks, most, &performed);
	neap__prefetch_total(prefetch, total);
	if (actions)
		*actions += performed;
	return rc;
}

int neap__block_plan_run(
	struct neap_plan *plan, const struct neap_problem *problem, struct neap__prefetch *prefetch)
{
	struct neap__prefetch_total total;
	const struct neap_blocks blocks = plan->blocks;
	const struct neap_params params = plan->params;
	int rc = 1;
	if (plan->replan_count == 0) {
		NEAP_TRY(run_whole(
			&total, prefetch, problem, plan->tier, &blocks, ACTIONS_MOST, NULL));
	} else {
		NEAP_TRY(neap__prefetch_start_plan(prefetch, problem, plan));
		for (int64_t i = 0; rc > 0 && i < ACTIONS_MOST; i++)
			rc = neap__prefetch_next(prefetch, NULL, NULL);
		if (rc != 0)
			return rc < 0 ? rc : NEAP_EINFEASIBLE;
		neap__prefetch_total(prefetch, &total);
	}
	plan->feasible = 0;
	NEAP_TRY(fill_plan(plan, problem, plan->tier, &blocks, &total));
	plan->params = params;
	return plan->feasible ? 0 : NEAP_EINFEASIBLE;
}

int neap__block_plan_evaluate(struct neap_plan *plan, const struct neap_problem *problem, int tier,
	const struct neap_blocks *given, struct neap__prefetch *prefetch, int64_t n,
	int64_t *actions)
{
	struct neap_blocks blocks = *given;
	struct neap__prefetch_total total;
	plan->feasible = 0;
	memset(plan->tiers, 0, sizeof plan->tiers);
	if (blocks.tail > problem->chain.steps)
		blocks.tail = problem->chain.steps;
	int64_t count = neap__block_plan_count(&blocks, problem->chain.steps);
	if (count == 0)
		tier = 0;
	int64_t steady = n ? n : neap__block_plan_steady_blocks(problem, tier, &blocks);
	int rc, estimated = 0;
	if (n == 0) {
		rc = run_whole(&total, prefetch, problem, tier, &blocks, ACTIONS_MOST, actions);
		steady = steady < count / 8 ? steady : count / 8;
		if (rc > 0 && steady > 0) {
			rc = extrapolate(&total, prefetch, problem, tier, &blocks, count, steady,
				2 * ACTIONS_MOST, actions);
			estimated = 1;
		} else if (rc > 0) {
			rc = NEAP_EINFEASIBLE; /* too long to run */
		}
	} else if (count > 3 * steady) {
		rc = extrapolate(&total, prefetch, problem, tier, &blocks, count, steady,
			SHORT_MOST, actions);
	} else {
		rc = run(&total, prefetch, problem, tier, &blocks, problem->chain.steps, SHORT_MOST,
			actions);
	}
	if (rc < 0)
		return rc == NEAP_EINFEASIBLE ? 0 : rc;
	NEAP_TRY(fill_plan(plan, problem, tier, &blocks, &total));
	if (plan->feasible && estimated) /* the peak is an estimate: takes the whole budget */
		plan->arena_bytes = neap__fixed_bytes(problem, tier) +
				    (uint64_t)neap__pool_bytes(problem, tier);
	return 0;
}
