/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain.c: the strategy `chain`: stages of different sizes and costs, by the dynamic program of
 * chain_table.h. A part is done by keeping its first state, advancing to stage j, with the
 * stage before j recorded on the way or not, then doing the right part and then the left part.
 * Chains of more stages than the tables are for are done by Revolve over the tapes as they are
 * (long_chain.h) or in groups (chain_tree.h), each also as if every tape were the largest, or in
 * groups that are grouped anew where they are taken apart; the fastest of the five is taken.
 *
 * Peak: found by verifying the schedule, in bytes, before the plan is offered.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "plan/stages/long_chain.h"
#include "plan/core/schedule.h"
#include "plan/core/simulate.h"
#include "plan/core/stage_sizes.h"
#include "plan/core/strategy.h"
#include "plan/stages/chain_table.h"
#include "plan/stages/tree_schedule.h"
#include "plan/core/sizing.h"

#define BLOCKS 128	   /* whose tables take some 15 MB and a fifth of a second */
#define AGAIN_GROUPS 96	   /* of a part, whose table takes 25 MB and some 20 ms, */
#define AGAIN_MOST 48	   /* and of it, of parts that are grouped anew */
#define AGAIN_STAGES 20000 /* of longer chains the tables that may be filled reach too little */

/* How the stages of a plan are grouped. */
static struct neap__chain_grouping grouping(const struct neap_schedule *s)
{
	const struct neap_chain *c = &s->problem.chain;
	struct neap__chain_grouping how = {0};
	if (c->steps <= NEAP__CHAIN_TABLE_STAGES)
		return how;
	how.groups = BLOCKS;
	if (s->plan.variant == NEAP__LONG_CHAIN_AGAIN)
		how = (struct neap__chain_grouping){.groups = AGAIN_GROUPS, .again = AGAIN_MOST};
	for (int64_t i = 0; i < c->steps && s->plan.variant == NEAP__LONG_CHAIN_BLOCKS_WORST; i++) {
		int64_t tape = (int64_t)c->stages->tape[i];
		how.largest = tape > how.largest ? tape : how.largest;
	}
	return how;
}

static int open(struct neap_schedule *s)
{
	const struct neap_chain *c = &s->problem.chain;
	if (!c->stages)
		return neap__fail(NEAP_EUSAGE, "schedule: the plan is not one of this problem");
	if (c->steps > NEAP__CHAIN_TABLE_STAGES && s->plan.variant < NEAP__LONG_CHAIN_BLOCKS)
		return neap__long_chain_open(s);
	const struct neap__chain_grouping how = grouping(s);
	return neap__tree_schedule_open(s, &how);
}

/* A plan with more advance steps is refused: it would take too long to verify. */
#define FOLLOWED_MOST ((int64_t)1000000000)

/* A schedule whose actions move a clock as they pass, so that one pass verifies and times. */
struct chain_timed {
	struct neap_schedule *schedule;
	struct neap__clock clock;
	double *sums; /* [steps + 1] seconds to advance to step i from 0 */
	int64_t advanced;
	int flat;
};

static int timed_next(void *user, struct neap_action *a)
{
	struct chain_timed *timed = user;
	int rc = neap_schedule_next(timed->schedule, a);
	if (rc > 0 && a->kind == NEAP_ADVANCE) {
		double seconds = timed->sums[a->t1] - timed->sums[a->t0];
		timed->clock.advance += seconds;
		timed->clock.now += seconds;
		timed->advanced += a->t1 - a->t0;
		if (!timed->flat && timed->advanced > FOLLOWED_MOST)
			return neap__fail(NEAP_EINFEASIBLE, "chain: more than 10^9 steps");
	} else if (rc > 0) {
		NEAP_TRY(neap__clock_step(&timed->clock, a));
	}
	return rc;
}

static int timed_init(struct chain_timed *timed, const struct neap_problem *problem)
{
	const struct neap_chain *c = &problem->chain;
	memset(timed, 0, sizeof *timed);
	neap__clock_init(&timed->clock, problem);
	timed->flat = neap__stages_flat(c);
	timed->sums = malloc((size_t)(c->steps + 1) * sizeof *timed->sums);
	if (!timed->sums)
		return neap__fail(-ENOMEM, "plan: out of memory");
	timed->sums[0] = 0;
	for (int64_t i = 0; i < c->steps; i++)
		timed->sums[i + 1] = timed->sums[i] + c->stages->advance[i];
	return 0;
}

/* Verifies and times the schedule of the plan in one pass; fills the plan. */
static int measured(struct neap_plan *plan, const struct neap_problem *problem)
{
	struct chain_timed timed;
	struct neap_schedule *s = NULL;
	struct neap_verdict v = {.size = sizeof v};
	plan->feasible = 1;
	int rc = timed_init(&timed, problem);
	if (rc == 0)
		rc = neap__schedule_open_row(&timed.schedule, &neap__strategy_chain, problem, plan);
	if (rc == 0)
		rc = neap_schedule_wrap(&s, timed_next, NULL, &timed);
	if (rc == 0)
		rc = neap_verify(&v, problem, s);
	neap_schedule_close(s);
	neap_schedule_close(timed.schedule);
	free(timed.sums);
	NEAP_TRY(rc);
	if (v.peak_bytes > problem->memory)
		return neap__fail(NEAP_EILLEGAL, "chain: the plan takes %llu bytes",
			(unsigned long long)v.peak_bytes);
	plan->peak_bytes = v.peak_bytes;
	plan->arena_bytes = v.arena_bytes;
	plan->slots = v.slots;
	plan->advance_steps = v.advance_steps;
	plan->record_steps = v.record_steps;
	plan->makespan = (double)timed.clock.now;
	return 0;
}

/* The fastest of the plans for long chains. */
static int solve_long(struct neap_plan *plan, const struct neap_problem *problem)
{
	struct neap_plan best = *plan;
	best.feasible = 0;
	for (int variant = 0; variant < NEAP__LONG_CHAIN_VARIANTS; variant++) {
		struct neap_plan trial = *plan;
		if (variant == NEAP__LONG_CHAIN_AGAIN && problem->chain.steps > AGAIN_STAGES)
			continue;
		trial.variant = variant;
		int rc = measured(&trial, problem);
		if (rc < 0 && rc != NEAP_EINFEASIBLE)
			return rc;
		if (rc == 0 && (!best.feasible || trial.makespan < best.makespan))
			best = trial;
	}
	*plan = best;
	if (best.feasible)
		return 0;
	uint64_t least = neap__long_chain_least(&problem->chain);
	neap__refuse(plan, least, "the stages need %llu bytes at least", (unsigned long long)least);
	return 0;
}

static int solve(
	struct neap_plan *plan, const struct neap_problem *problem, const struct neap_params *fixed)
{
	(void)fixed;
	if (!problem->chain.stages) {
		neap__refuse(plan, 0, "needs steps that differ, but these are all equal");
		return 0;
	}
	if (problem->chain.steps > NEAP__CHAIN_TABLE_STAGES)
		return solve_long(plan, problem);
	int rc = measured(plan, problem);
	if (rc != NEAP_EINFEASIBLE)
		return rc;
	uint64_t least = neap__chain_table_least(&problem->chain);
	neap__refuse(plan, least, "the stages need %llu bytes at least", (unsigned long long)least);
	return 0;
}

const struct neap__strategy neap__strategy_chain = {
	.name = "chain",
	.about = "stages of different sizes and costs, by dynamic programming (after rotor)",
	.solve = solve,
	.open = open,
	.traits = NEAP_STRATEGY_STAGES,
};
