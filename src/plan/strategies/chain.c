/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain.c: the strategy `chain`: stages of different sizes and costs, by the dynamic program of
 * chain_table.h. A part is done by keeping its first state, advancing to stage j, with the
 * stage before j recorded on the way or not, then doing the right part and then the left part.
 * Chains of more stages than the tables are for are done by Revolve over the tapes as they are
 * (long_chain.h) or in blocks (grouped_chain.h), each also as if every tape were the largest;
 * the fastest of the four is taken.
 *
 * Peak: found by verifying the schedule, in bytes, before the plan is offered.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "plan/stages/grouped_chain.h"
#include "plan/stages/long_chain.h"
#include "plan/core/schedule.h"
#include "plan/core/simulate.h"
#include "plan/core/stage_sizes.h"
#include "plan/core/strategy.h"
#include "plan/stages/chain_table.h"
#include "plan/core/sizing.h"

/* All sizes together are less. More memory is no better, and bytes stay in 63 bits. */
#define MEMORY_MOST ((uint64_t)1 << 61)

/* Stages i..t, still to be done, with `bytes` for them; state i is in `slot`. */
struct chain_part {
	int64_t i, t, bytes, slot;
	int taped;
};

/* Values of `slot` without a slot. */
#define IN_TAPE (-1)  /* the tape of stage i - 1 holds the state */
#define NOT_KEPT (-2) /* the last state, live until the loss */

struct chain_schedule {
	struct neap__chain_table tables;
	struct chain_part *stack;
	int64_t *free_slots; /* [steps + 1] free numbers, the lowest last */
	int64_t depth, free;
	int64_t live; /* the live state's step, -1: none */
};

static int64_t take_slot(struct chain_schedule *x)
{
	return x->free_slots[--x->free];
}

static void drop(struct neap_schedule *s, struct chain_part *part)
{
	struct chain_schedule *x = s->self;
	if (part->slot < 0)
		return;
	neap__drop(s, part->slot, part->i);
	x->free_slots[x->free++] = part->slot;
	part->slot = NOT_KEPT;
}

/* Makes the first state of a part live. */
static void bring(struct neap_schedule *s, const struct chain_part *part)
{
	struct chain_schedule *x = s->self;
	if (x->live == part->i)
		return;
	x->live = part->i;
	if (part->slot >= 0)
		neap__load(s, part->slot, part->i);
	else
		neap__emit(s, &(struct neap_action){.kind = NEAP_LOAD,
				      .payload = NEAP_TAPE,
				      .t0 = part->i,
				      .t1 = part->i});
}

static void reverse(struct neap_schedule *s, int64_t i)
{
	struct chain_schedule *x = s->self;
	neap__backward(s, i, i + 1);
	x->live = -1;
}

/* Does a part of one stage, or the loss. */
static void do_leaf(struct neap_schedule *s, struct chain_part part)
{
	struct chain_schedule *x = s->self;
	int needs = neap__backward_needs_input(s->problem.chain.stages);
	if (part.i == s->problem.chain.steps) {
		bring(s, &part);
		neap__emit_turn(s);
		drop(s, &part);
		x->live = -1;
		return;
	}
	if (!part.taped) {
		bring(s, &part);
		if (!needs)
			drop(s, &part);
		neap__record(s, part.i, part.i + 1);
	} else if (!needs) {
		drop(s, &part);
	}
	reverse(s, part.i);
	drop(s, &part);
}

static void push(struct chain_schedule *x, struct chain_part part)
{
	x->stack[x->depth++] = part;
}

static void do_split(struct neap_schedule *s, struct chain_part part)
{
	struct chain_schedule *x = s->self;
	const struct neap_stages *stages = s->problem.chain.stages;
	struct neap__chain_table_choice k =
		neap__chain_table_choose(&x->tables, part.taped, part.i, part.t, part.bytes);
	struct chain_part left = {part.i, k.j - 1, k.left, part.slot, k.record};
	struct chain_part right = {k.j, part.t, k.right, NOT_KEPT, part.taped};
	bring(s, &part);
	neap__advance(s, part.i, k.record ? k.j - 1 : k.j);
	if (k.record)
		neap__record(s, k.j - 1, k.j);
	x->live = k.j;
	if (k.record && neap__tape_holds_output(stages)) {
		right.slot = IN_TAPE;
	} else if (k.j < s->problem.chain.steps) {
		right.slot = take_slot(x);
		neap__save(s, right.slot, k.j);
	}
	push(x, left);
	push(x, right);
}

static int refill(struct neap_schedule *s)
{
	struct chain_schedule *x = s->self;
	if (x->depth == 0)
		return 0;
	struct chain_part part = x->stack[--x->depth];
	if (part.i == part.t) {
		do_leaf(s, part);
	} else if (part.taped && !neap__backward_needs_input(s->problem.chain.stages)) {
		/* The backward of the last stage needs its tape only. */
		reverse(s, part.t);
		part.bytes += (int64_t)s->problem.chain.stages->tape[part.t];
		part.t--;
		part.taped = 0;
		push(x, part);
		return refill(s);
	} else {
		do_split(s, part);
	}
	return 0;
}

static void fini(struct neap_schedule *s)
{
	struct chain_schedule *x = s->self;
	neap__chain_table_free(&x->tables);
	free(x->stack);
	free(x->free_slots);
}

static int open(struct neap_schedule *s)
{
	const struct neap_chain *c = &s->problem.chain;
	if (!c->stages)
		return neap__fail(NEAP_EUSAGE, "schedule: the plan is not one of this problem");
	if (c->steps > NEAP__CHAIN_TABLE_STAGES)
		return s->plan.variant >= NEAP__LONG_CHAIN_BLOCKS ? neap__grouped_chain_open(s)
								  : neap__long_chain_open(s);
	struct chain_schedule *x = s->self = calloc(1, sizeof *x);
	if (!x)
		return neap__fail(-ENOMEM, "schedule: out of memory");
	s->refill = refill;
	s->fini = fini;
	uint64_t memory = s->problem.memory < MEMORY_MOST ? s->problem.memory : MEMORY_MOST;
	NEAP_TRY(neap__chain_table_fill(&x->tables, c, memory));
	x->stack = malloc((size_t)(c->steps + 2) * sizeof *x->stack);
	x->free_slots = malloc((size_t)(c->steps + 2) * sizeof *x->free_slots);
	if (!x->stack || !x->free_slots)
		return neap__fail(-ENOMEM, "schedule: out of memory");
	for (x->free = 0; x->free < c->steps + 2; x->free++)
		x->free_slots[x->free] = c->steps + 1 - x->free;
	int64_t slot = take_slot(x);
	neap__save(s, slot, 0);
	push(x, (struct chain_part){0, c->steps, (int64_t)(memory - c->stages->state[0]), slot, 0});
	return s->error;
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
		neap__refuse(plan, 0, "needs per-step sizes and costs (a chain file)");
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
