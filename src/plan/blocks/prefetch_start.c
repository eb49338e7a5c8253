/* SPDX-License-Identifier: Apache-2.0 */
/* prefetch_start.c: a schedule of blocks begins, is replaced on its way, and what it came to. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "base/grow.h"
#include "plan/blocks/kept_blocks.h"
#include "plan/blocks/prefetch_state.h"
#include "plan/core/sizing.h"

/* GETs in flight or placed; chosen. */
#define AHEAD 100
#define AHEAD_KEPT 3

int64_t neap__prefetch_tables(struct neap__prefetch *x, int64_t room)
{
	int64_t rows = neap__block_program_tables(&x->program, room);
	if (rows < 0)
		return rows;
	NEAP_TRY(neap__prefetch_reserve(&x->slots.free, &x->slots.room, room));
	NEAP_TRY(neap__prefetch_reserve(&x->tickets.free, &x->tickets.room, room));
	NEAP_TRY(neap__prefetch_reserve(&x->slot_of, &x->handles, room));
	rows = rows > x->slots.room ? rows : x->slots.room;
	rows = rows > x->tickets.room ? rows : x->tickets.room;
	return rows > x->handles ? rows : x->handles;
}

int neap__prefetch_new(struct neap__prefetch **prefetch)
{
	*prefetch = calloc(1, sizeof **prefetch);
	return *prefetch ? 0 : neap__fail(-ENOMEM, "schedule: out of memory");
}

void neap__prefetch_free(struct neap__prefetch *x)
{
	if (!x)
		return;
	neap__block_program_free(&x->program);
	free(x->slots.free);
	free(x->tickets.free);
	free(x->slot_of);
	free(x->watch);
	free(x);
}

int neap__prefetch_start(struct neap__prefetch *x, const struct neap_problem *problem, int tier,
	const struct neap_blocks *blocks, const struct neap_near *near)
{
	int64_t pool = neap__pool_bytes(problem, tier);
	int second = near ? near->tier : 0;
	if (second < 0 || second > problem->ntiers || (second > 0 && second == tier) ||
		(second > 0 && (near->share < 0 || near->share > NEAP_NEAR_SHARES)))
		return NEAP_EINFEASIBLE;
	if (second > 0)
		pool -= (int64_t)problem->tiers[second - 1].staging;
	if (pool < 0 || (blocks->record > 0 && problem->chain.flags & (NEAP_CHAIN_TAPES_STAY |
									      NEAP_CHAIN_CLASSIC)))
		return NEAP_EINFEASIBLE;
	x->problem = *problem;
	x->tiers[0] = tier;
	x->tiers[1] = second;
	x->sync = tier > 0 && (problem->tiers[tier - 1].flags & NEAP_TIER_SYNC) != 0;
	x->sync |= second > 0 && (problem->tiers[second - 1].flags & NEAP_TIER_SYNC) != 0;
	x->pool = pool;
	x->state = (int64_t)problem->chain.state;
	x->ahead = neap__keeps(blocks) ? AHEAD_KEPT : AHEAD;
	x->program.state_out =
		tier > 0 ? neap_tier_seconds(&problem->tiers[tier - 1], 1, problem->chain.state)
			 : 0;
	neap__clock_init(&x->clock, &x->problem);
	x->ended = x->error = 0;
	x->head = x->tail = 0;
	x->get_head = x->get_issued = x->get_tail = 0;
	for (int i = 0; i < 2; i++) {
		x->puts[i].head = x->puts[i].tail = 0;
		x->puts[i].not_ended = 0;
	}
	x->arriving = x->leaving = 0;
	x->slots.nfree = x->slots.made = 0;
	x->tickets.nfree = x->tickets.made = 0;
	x->slots_now = x->tapes_now = 0;
	memset(&x->total, 0, sizeof x->total);
	return neap__block_program_start(
		&x->program, &x->problem.chain, pool, blocks, second > 0 ? near : NULL);
}

int neap__prefetch_start_plan(
	struct neap__prefetch *x, const struct neap_problem *problem, const struct neap_plan *plan)
{
	NEAP_TRY(neap__prefetch_start(x, problem, plan->tier, &plan->blocks, &plan->near));
	if (plan->replan_count < 0 || plan->replan_count > NEAP_REPLANS_MAX)
		return NEAP_EINFEASIBLE;
	for (int64_t i = 0; i < plan->replan_count; i++)
		NEAP_TRY(neap__block_program_replan(
			&x->program, plan->replans[i].from, &plan->replans[i].blocks));
	return 0;
}

int neap__prefetch_at_block(struct neap__prefetch *x, int64_t *step)
{
	if (x->head == x->tail || x->get_issued > x->get_head || x->tiers[1] > 0)
		return 0;
	const struct neap__block_op *op = neap__prefetch_op(x, x->head);
	*step = op->t0;
	return op->begins == NEAP__BEGINS_UP;
}

int neap__prefetch_replan(struct neap__prefetch *x, const struct neap_problem *problem,
	const struct neap_blocks *blocks)
{
	int64_t step = neap__prefetch_op(x, x->head)->t0;
	int64_t pool = neap__pool_bytes(problem, x->tiers[0]);
	x->problem = *problem;
	x->pool = x->program.pool = pool < x->pool ? pool : x->pool;
	x->tail = x->head;
	x->get_tail = x->get_issued = x->get_head;
	x->ended = 0;
	x->puts[0].not_ended = 0;
	NEAP_TRY(neap__block_program_replan(&x->program, step, blocks));
	neap__block_program_rewind(&x->program, x->head);
	return 0;
}

double neap__prefetch_least(struct neap__prefetch *x)
{
	const struct neap__block_op *op = neap__prefetch_op(x, x->head);
	const struct neap__block_series *r = x->program.whole.series;
	const struct neap_chain *c = &x->problem.chain;
	double now = (double)x->clock.now;
	if (x->head == x->tail || op->begins != NEAP__BEGINS_DOWN || op->t0 == 0)
		return now;
	double blocks = (double)((op->t0 - r->first) / r->plan.advance + 1);
	double extra = blocks * neap__recompute_extra(&r->inner, r->plan.advance, 0);
	return now + (double)(op->t0 + r->plan.advance) * (c->record + c->backward) +
	       c->advance * extra;
}

void neap__prefetch_total(const struct neap__prefetch *x, struct neap__prefetch_total *total)
{
	*total = x->total;
	total->makespan = (double)x->clock.now;
	total->slots = x->slots.made;
	total->lost = (double)x->clock.lost;
	total->stall = 0;
	for (int i = 0; i < x->problem.ntiers; i++)
		total->stall += (double)(x->clock.stall_write[i] + x->clock.stall_read[i]);
	for (int i = 0; i < 2; i++)
		if (x->tiers[i] > 0) {
			total->use[i].written = x->clock.use[x->tiers[i] - 1].written;
			total->use[i].read = x->clock.use[x->tiers[i] - 1].read;
		}
}
