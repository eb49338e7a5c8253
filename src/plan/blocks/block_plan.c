/* SPDX-License-Identifier: Apache-2.0 */
/* block_plan.c: simulation of a block plan, linear extrapolation of long ones, and its schedule. */
#include "plan/blocks/block_plan.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "plan/blocks/block_program.h"
#include "plan/blocks/kept_blocks.h"
#include "plan/core/sizing.h"

/* Limits of planning time; chosen. */
#define ACTIONS_MOST ((int64_t)3000000) /* operations of a full run */
#define SHORT_MOST ((int64_t)2000000)	/* operations of a comparison run */

/*
 * Number of blocks to reach the steady state: until the bytes that blocks write have filled the
 * memory FILLS times, but at least STEADY_LEAST and at most STEADY_MOST blocks. Chosen; 8 blocks
 * were 2% too optimistic in a prototype.
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

/* A block plan and the parameters of its simulation. */
struct blocks_run {
	struct neap__prefetch *prefetch;
	const struct neap_problem *problem;
	int tier;
	const struct neap_blocks *blocks;
	const struct neap_near *near; /* NULL: one tier */
	int64_t *actions;
};

/* Simulates a chain of `steps` steps from start to end. */
static int run(
	const struct blocks_run *x, struct neap__prefetch_total *total, int64_t steps, int64_t most)
{
	struct neap_problem shorter = *x->problem;
	shorter.chain.steps = steps;
	int rc = neap__prefetch_start(x->prefetch, &shorter, x->tier, x->blocks, x->near);
	for (int64_t i = 0; rc >= 0 && i < most; i++)
		if ((rc = neap__prefetch_next(x->prefetch, NULL, NULL)) <= 0)
			break;
	neap__prefetch_total(x->prefetch, total);
	if (x->actions)
		*x->actions += total->actions;
	return rc > 0 ? NEAP_EINFEASIBLE : rc; /* rc > 0: too long to run */
}

static int64_t continue_line(int64_t a, int64_t b, int64_t more)
{
	return b + (b - a) * more;
}

/*
 * Extrapolates the totals of rest + n and rest + 2 n blocks to `blocks` blocks: in the steady state
 * all totals grow by the same amount every n blocks. rest: the remainder of blocks / n.
 */
static int extrapolate(const struct blocks_run *x, struct neap__prefetch_total *out, int64_t blocks,
	int64_t n, int64_t most)
{
	int64_t steps = x->problem->chain.steps;
	int64_t more = (blocks - n) / n - 1, rest = blocks - n * (more + 1);
	struct neap__prefetch_total a, b;
	int64_t short_steps = steps - neap__block_steps(x->blocks, blocks - rest);
	int64_t longer = short_steps + neap__block_steps(x->blocks, n);
	NEAP_TRY(run(x, &a, short_steps, most));
	NEAP_TRY(run(x, &b, longer, most));
	*out = b;
	out->makespan = b.makespan + (double)more * (b.makespan - a.makespan);
	out->stall = b.stall + (double)more * (b.stall - a.stall);
	out->lost = b.lost + (double)more * (b.lost - a.lost);
	out->advanced = continue_line(a.advanced, b.advanced, more);
	out->recorded = continue_line(a.recorded, b.recorded, more);
	out->actions = continue_line(a.actions, b.actions, more);
	for (int i = 0; i < 2; i++) {
		const struct neap__prefetch_use *u = &a.use[i], *v = &b.use[i];
		struct neap__prefetch_use *to = &out->use[i];
		to->state_places = continue_line(u->state_places, v->state_places, more);
		to->tape_places = continue_line(u->tape_places, v->tape_places, more);
		to->written =
			(uint64_t)continue_line((int64_t)u->written, (int64_t)v->written, more);
		to->read = (uint64_t)continue_line((int64_t)u->read, (int64_t)v->read, more);
	}
	return 0;
}

/* Sets the use of a tier. Returns 0 if the tier is too small. */
static int fill_tier(struct neap_plan *plan, const struct neap_problem *problem, int tier,
	const struct neap__prefetch_use *use)
{
	const struct neap_chain *c = &problem->chain;
	uint64_t bytes = (uint64_t)use->state_places * c->state +
			 (uint64_t)use->tape_places * (uint64_t)use->longest * c->tape;
	if (tier < 1)
		return 1;
	plan->tiers[tier - 1] = (struct neap_tier_use){
		.peak_bytes = bytes, .written = use->written, .read = use->read};
	return bytes <= problem->tiers[tier - 1].capacity;
}

static int fill_plan(
	struct neap_plan *plan, const struct blocks_run *x, const struct neap__prefetch_total *t)
{
	const struct neap_blocks *blocks = x->blocks;
	int second = x->near ? x->near->tier : 0;
	for (int i = 0; i < 2 && second > 0; i++)
		if (t->use[i].state_places + t->use[i].tape_places == 0)
			return 0; /* the plan does not use one of the tiers */
	if (!fill_tier(plan, x->problem, x->tier, &t->use[0]) ||
		!fill_tier(plan, x->problem, second, &t->use[1]))
		return 0;
	neap__accept(plan, x->problem, x->tier, t->slots, (int64_t)t->peak);
	if (second > 0) {
		plan->arena_bytes += x->problem->tiers[second - 1].staging;
		plan->peak_bytes += x->problem->tiers[second - 1].staging;
	}
	plan->near = second > 0 ? *x->near : (struct neap_near){0};
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
	return 0;
}

/* Simulates all blocks except those that prefetch_skip.c skips. Adds the operations to *actions. */
static int run_whole(const struct blocks_run *x, struct neap__prefetch_total *total, int64_t most)
{
	int64_t performed = 0;
	int rc = neap__prefetch_run(
		x->prefetch, x->problem, x->tier, x->blocks, x->near, INFINITY, most, &performed);
	neap__prefetch_total(x->prefetch, total);
	if (x->actions)
		*x->actions += performed;
	return rc;
}

int neap__block_plan_run(
	struct neap_plan *plan, const struct neap_problem *problem, struct neap__prefetch *prefetch)
{
	struct neap__prefetch_total total;
	const struct neap_blocks blocks = plan->blocks;
	const struct neap_near near = plan->near;
	const struct neap_params params = plan->params;
	const struct blocks_run x = {prefetch, problem, plan->tier, &blocks, &near, NULL};
	int rc = 1;
	if (plan->replan_count == 0) {
		NEAP_TRY(run_whole(&x, &total, ACTIONS_MOST));
	} else {
		NEAP_TRY(neap__prefetch_start_plan(prefetch, problem, plan));
		for (int64_t i = 0; rc > 0 && i < ACTIONS_MOST; i++)
			rc = neap__prefetch_next(prefetch, NULL, NULL);
		if (rc != 0)
			return rc < 0 ? rc : NEAP_EINFEASIBLE;
		neap__prefetch_total(prefetch, &total);
	}
	plan->feasible = 0;
	NEAP_TRY(fill_plan(plan, &x, &total));
	plan->params = params;
	return plan->feasible ? 0 : NEAP_EINFEASIBLE;
}

int neap__block_plan_below(double *makespan, const struct neap_problem *problem, int tier,
	const struct neap_blocks *blocks, double below, struct neap__prefetch *prefetch,
	int64_t *actions)
{
	int rc = neap__prefetch_run(
		prefetch, problem, tier, blocks, NULL, below, ACTIONS_MOST, actions);
	struct neap__prefetch_total total;
	*makespan = INFINITY;
	if (rc < 0)
		return rc == NEAP_EINFEASIBLE ? 0 : rc;
	neap__prefetch_total(prefetch, &total);
	double least = rc > 0 ? neap__prefetch_least(prefetch) : total.makespan;
	if (rc == 0 || least >= below)
		*makespan = least;
	return 0;
}

/* A number of blocks, rounded down to one after which the lengths of blocks repeat. */
static int64_t whole_periods(const struct neap_blocks *b, int64_t blocks)
{
	return b->every > 0 ? blocks - blocks % b->every : blocks;
}

int neap__block_plan_evaluate(struct neap_plan *plan, const struct neap_problem *problem, int tier,
	const struct neap_blocks *given, const struct neap_near *near,
	struct neap__prefetch *prefetch, int64_t n, int64_t *actions)
{
	struct neap_blocks blocks = *given;
	struct blocks_run x = {prefetch, problem, tier, &blocks, near, actions};
	struct neap__prefetch_total total;
	plan->feasible = 0;
	memset(plan->tiers, 0, sizeof plan->tiers);
	if (blocks.tail > problem->chain.steps)
		blocks.tail = problem->chain.steps;
	int64_t count = neap__block_plan_count(&blocks, problem->chain.steps);
	if (count == 0 && (!near || near->tier == 0))
		x.tier = 0;
	int64_t steady = n ? n : neap__block_plan_steady_blocks(problem, x.tier, &blocks);
	steady = whole_periods(&blocks, steady + blocks.every);
	int rc, estimated = 0;
	if (n == 0) {
		rc = run_whole(&x, &total, ACTIONS_MOST);
		steady = whole_periods(&blocks, steady < count / 8 ? steady : count / 8);
		if (rc > 0 && steady > 0 && !neap__keeps(&blocks)) {
			rc = extrapolate(&x, &total, count, steady, 2 * ACTIONS_MOST);
			estimated = 1;
		} else if (rc > 0) {
			rc = NEAP_EINFEASIBLE; /* too long to run */
		}
	} else if (count > 3 * steady) {
		rc = extrapolate(&x, &total, count, steady, SHORT_MOST);
	} else {
		rc = run(&x, &total, problem->chain.steps, SHORT_MOST);
	}
	if (rc < 0)
		return rc == NEAP_EINFEASIBLE ? 0 : rc;
	NEAP_TRY(fill_plan(plan, &x, &total));
	if (plan->feasible && estimated) /* the peak is an estimate, so reserve the whole budget */
		plan->arena_bytes = neap__fixed_bytes(problem, x.tier) +
				    (uint64_t)neap__pool_bytes(problem, x.tier);
	return 0;
}
