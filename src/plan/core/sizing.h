/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sizing.h: the sizes that every strategy computes with: what a budget leaves for slots
 * and tapes, how many places a tier has, how long chunks may be; and how a plan is
 * accepted or refused.
 */
#ifndef NEAP_PLAN_CORE_SIZING_H
#define NEAP_PLAN_CORE_SIZING_H

#include <neap/plan.h>

/* Infeasible: the least budget (0: none is known to help) and why. */
void neap__refuse(struct neap_plan *plan, uint64_t least, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static inline uint64_t neap__live_bytes(const struct neap_problem *p)
{
	return p->chain.live || p->chain.flags & NEAP_CHAIN_CLASSIC ? p->chain.live
								    : p->chain.state;
}

/* The number of the last state; of two chains, the second one's. */
static inline int64_t neap__last_state(const struct neap_chain *c)
{
	return c->join > 0 ? (int64_t)((uint64_t)c->steps + (uint64_t)c->join + 1) : c->steps;
}

/* What a worst-case tape takes beyond a planned one. */
static inline uint64_t neap__tape_reserve(const struct neap_problem *p)
{
	return p->chain.tape_max ? p->chain.tape_max - p->chain.tape : 0;
}

/* Bytes a step that transfers of tapes take. */
static inline uint64_t neap__tape_sent(const struct neap_chain *c)
{
	return c->tape_mean ? c->tape_mean : c->tape;
}

/* How much of a step the last one is short of. */
static inline double neap__last_missing(const struct neap_chain *c)
{
	return c->last > 0 ? 1 - c->last : 0;
}

/*
 * The problem in which each action is one call, whatever its steps: the cost of the calls that
 * chain.record_steps adds to a long RECORD or BACKWARD is in the seconds of its steps.
 */
static inline struct neap_problem neap__calls_counted(const struct neap_problem *p)
{
	struct neap_problem counted = *p;
	struct neap_chain *c = &counted.chain;
	if (c->record_steps > 0 && !c->stages) {
		double each = c->call / (double)c->record_steps;
		c->record += each;
		c->replay += each;
		c->backward += each;
	}
	c->record_steps = 0;
	return counted;
}

/*
 * Bytes no strategy can do without, whatever its parameters: adjoint, live
 * state, the worst-case reserve and the staging of `tier` (0: none).
 */
uint64_t neap__fixed_bytes(const struct neap_problem *p, int tier);
/* What is left of the budget for slots and tapes; -1 if it is below the fixed bytes. */
int64_t neap__pool_bytes(const struct neap_problem *p, int tier);
/* States a tier can hold (at most the steps of the problem). */
int64_t neap__places(const struct neap_problem *p, int tier);
/* Tapes that fit `bytes`, at most T; in a classic problem 1, which is free. */
int64_t neap__tapes_fit(const struct neap_problem *p, int64_t bytes);

static inline int64_t neap__ceil_div(int64_t a, int64_t b)
{
	return a / b + (a % b != 0);
}

/* Bytes of `slots` states and `tapes` tapes. */
static inline int64_t neap__bytes(const struct neap_problem *p, int64_t slots, int64_t tapes)
{
	return slots * (int64_t)p->chain.state + tapes * (int64_t)p->chain.tape;
}

/*
 * Chunks of c steps over `length` steps, all but the last one's start in slots:
 * (ceil(length/c) - 1) S + c A bytes. The largest c that fits `pool`, 0 if none.
 */
int64_t neap__chunk_largest(const struct neap_problem *p, int64_t length, int64_t pool);
/* The c that needs the least bytes, with at least `chunks` chunks. */
int64_t neap__chunk_least(const struct neap_problem *p, int64_t length, int64_t chunks);

/* Revolve's advance steps in closed form (slots >= 1); -1 beyond 63 bits. */
int64_t neap__revolve_extra(int64_t steps, int64_t slots);

/* Sets feasible, tier, slots, peak_bytes and arena_bytes (`bytes`: slots and tapes). */
void neap__accept(struct neap_plan *plan, const struct neap_problem *problem, int tier,
	int64_t slots, int64_t bytes);
/* `states` places of the plan's tier are written once and read once. */
void neap__tier_traffic(struct neap_plan *plan, const struct neap_problem *problem, int64_t states);

/*
 * Calls attempt(plan, problem, fixed, tier) for each slow tier and keeps the
 * fastest plan, of equal ones the first; without one the refusal with the least
 * budget. In a classic problem the chunk is one step: only one tape can be had.
 */
int neap__over_tiers(struct neap_plan *plan, const struct neap_problem *problem,
	const struct neap_params *fixed,
	int (*attempt)(struct neap_plan *, const struct neap_problem *, const struct neap_params *,
		int tier));

#define NEAP__OUTBOX_MOST 16 /* staging slots of an outbox (schedule.h) at most */

/*
 * Slots that can stage outgoing states while no tapes are there yet: as many as
 * `bytes` hold, one if the pool has room for it, none where the tier is synchronous.
 */
int64_t neap__outbox_room(const struct neap_problem *p, int tier, int64_t bytes, int64_t states);

/* The chain whose steps are groups of g steps (leaf_groups.h). 1, or 0 if its sizes are too large.
 */
int neap__grouped_chain(struct neap_problem *grouped, const struct neap_problem *p, int64_t g);

#endif
