/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wide.h: random problems of every kind the planner takes: no tier to eight, waited
 * for or not, duplex or not, tiny to unlimited capacity, latency, staging, computing
 * lost to transfers; sizes and
 * costs over six decades, or small whole numbers, or nothing; tapes that vary, that
 * stay, that are free; classic problems, with tapes in slots, or with a second chain;
 * a step to 10^6; budgets from nothing to plenty, most of them short.
 */
#ifndef NEAP_PLAN_WIDE_H
#define NEAP_PLAN_WIDE_H

#include "plan_test.h"

static inline int chance(struct random *r, double p)
{
	return uniform(r) < p;
}

static inline int64_t wide_steps(struct random *r)
{
	double kind = uniform(r);
	if (kind < 0.08)
		return below(r, 4);
	if (kind < 0.35)
		return 4 + below(r, 60);
	if (kind < 0.9)
		return (int64_t)decades(r, 20, 2000);
	return (int64_t)(kind < 0.98 ? decades(r, 2000, 30000) : decades(r, 30000, 1e6));
}

static inline struct neap_tier_spec wide_tier(struct random *r, const struct neap_chain *c)
{
	struct neap_tier_spec t = {.name = "slow"};
	double step = fmax(c->advance, fmax(c->record, c->backward)), kind = uniform(r);
	double all = (double)c->steps * (double)(c->state + c->tape);
	if (!(step > 0))
		step = 1e-3;
	t.capacity = kind < 0.5	   ? NEAP_INFINITE
		     : kind < 0.55 ? 0
		     : kind < 0.75
			     ? (uint64_t)below(r, 8) * (c->state + (uint64_t)below(r, 2) * c->tape)
			     : (uint64_t)(all * decades(r, 1e-4, 2));
	double rate = (double)c->state / step;
	t.write_rate = maybe(r, 0.8, rate * decades(r, 1e-3, 1e3));
	t.read_rate = chance(r, 0.4) ? t.write_rate : maybe(r, 0.8, rate * decades(r, 1e-3, 1e3));
	t.write_fixed = maybe(r, 0.4, step * decades(r, 1e-3, 1e3));
	t.read_fixed = chance(r, 0.5) ? t.write_fixed : maybe(r, 0.4, step * decades(r, 1e-3, 1e3));
	if (!(c->flags & NEAP_CHAIN_CLASSIC))
		t.staging = (uint64_t)maybe(r, 0.2, (double)c->state * decades(r, 0.1, 5));
	t.cpu = maybe(r, 0.3, decades(r, 1e-4, 1e3) / rate);
	t.cpu_fixed = maybe(r, 0.3, step * decades(r, 1e-3, 1e2));
	t.flags = (chance(r, 0.3) ? NEAP_TIER_SYNC : 0u) | (chance(r, 0.5) ? NEAP_TIER_DUPLEX : 0u);
	return t;
}

static inline void wide_sizes(struct random *r, struct neap_chain *c)
{
	c->state = chance(r, 0.3) ? 1 + (uint64_t)below(r, 4) : (uint64_t)decades(r, 1, 1e6);
	c->tape = chance(r, 0.3) ? (uint64_t)below(r, 6)
				 : (uint64_t)((double)c->state * decades(r, 1e-3, 1e3));
	c->tape_max = (uint64_t)maybe(r, 0.3, (double)c->tape * decades(r, 1, 10));
	if (c->tape_max < c->tape)
		c->tape_max = 0;
	c->adjoint =
		(uint64_t)maybe(r, 0.7, (double)c->state * (chance(r, 0.8) ? 1 : uniform(r) * 3));
	if (chance(r, 0.6))
		c->live = chance(r, 0.7) ? c->state
					 : 1 + (uint64_t)((double)c->state * uniform(r) * 3);
	c->flags = chance(r, 0.2) ? NEAP_CHAIN_TAPES_STAY : 0;
}

static inline void wide_costs(struct random *r, struct neap_chain *c)
{
	int whole = chance(r, 0.3);
	c->advance = chance(r, 0.07) ? 0 : whole ? (double)(1 + below(r, 3)) : decades(r, 1e-6, 1);
	double kind = uniform(r);
	c->record = kind < 0.1	 ? 0
		    : kind < 0.5 ? c->advance
		    : whole	 ? c->advance + (double)below(r, 4)
				 : c->advance * decades(r, 0.5, 4);
	c->backward = chance(r, 0.07)  ? 0
		      : whole	       ? (double)(1 + below(r, 4))
		      : chance(r, 0.8) ? c->advance * decades(r, 0.3, 10)
				       : decades(r, 1e-6, 1);
	c->slot_write =
		maybe(r, 0.3, whole ? (double)below(r, 3) : c->advance * decades(r, 0.01, 100));
	c->slot_read =
		maybe(r, 0.3, whole ? (double)below(r, 3) : c->advance * decades(r, 0.01, 100));
}

static inline uint64_t wide_budget(struct random *r, const struct neap_problem *p)
{
	const struct neap_chain *c = &p->chain;
	uint64_t least = neap_problem_least(p), state = c->state, tape = c->tape;
	double kind = uniform(r), steps = (double)c->steps;
	double all = ((double)state + (double)tape) * (steps + 1);
	if (kind < 0.1)
		return least;
	if (kind < 0.2)
		return least ? (uint64_t)below(r, (int64_t)least) : 0;
	if (kind < 0.25)
		return least + (uint64_t)(2 * all);
	if (kind < 0.5) /* some slots, some tapes */
		return least + (uint64_t)below(r, 12) * state + (uint64_t)below(r, 12) * tape +
		       (uint64_t)below(r, (int64_t)state);
	if (kind < 0.75) /* about the square root */
		return least + (uint64_t)(((double)state + (double)tape) * sqrt(steps) *
					  decades(r, 0.1, 10));
	return least + (uint64_t)(all * decades(r, 1e-4, 1));
}

static inline struct neap_problem wide_problem(struct random *r)
{
	struct neap_problem p = NEAP_PROBLEM_INIT;
	struct neap_chain *c = &p.chain;
	int classic = chance(r, 0.25);
	c->steps = wide_steps(r);
	c->state = 1;
	if (classic)
		c->flags = NEAP_CHAIN_CLASSIC | (chance(r, 0.25) ? NEAP_CHAIN_MIXED : 0u);
	else
		wide_sizes(r, c);
	wide_costs(r, c);
	if (classic && c->flags == NEAP_CHAIN_CLASSIC && c->steps > 0 && c->steps < 40 &&
		chance(r, 0.4)) {
		c->join = 1 + below(r, 40);
		p.memory = (uint64_t)below(r, c->steps + c->join + 6);
		c->call = random_call(r, c->advance);
		return p;
	}
	p.ntiers = chance(r, 0.3)   ? 0
		   : chance(r, 0.6) ? 1
		   : chance(r, 0.9) ? 2
				    : 3 + (int)below(r, 6);
	for (int i = 0; i < p.ntiers; i++)
		p.tiers[i] = wide_tier(r, c);
	p.memory = wide_budget(r, &p);
	if (c->tape && chance(r, 0.3))
		c->tape_mean = (uint64_t)below(r, (int64_t)c->tape + 1);
	c->call = random_call(r, c->advance);
	c->last = chance(r, 0.1) ? uniform(r) : 0;
	return p;
}

#endif
