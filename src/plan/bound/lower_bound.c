/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lower_bound.c: neap_bound, the seconds that no schedule beats. Every step is recorded and
 * reversed once, T (r + b) seconds. Without a slow tier, P bytes force further advances.
 *
 *     T            steps of the chain
 *     f, r, b      seconds to advance, to record and to reverse a step
 *     P            bytes of fast memory for states and tapes
 *     Phi_t        Phi_t(P) of recompute_cost.h
 *
 *     further forward executions >= max_t ( t T - Phi_t )
 *
 * Any t gives a valid bound, so the search over levels may stop early: at the maximum, since the
 * terms are concave in t, or after NEAP__PHI_CELLS_MOST entries. With one slot the levels have a
 * closed form. Classic problems (a leaf of one tape) use Revolve's optimum (binomial.h). With slow
 * tiers, what crosses the turn is counted (turn_program.h). Calls are spread over steps
 * (call_bound.h). Ours.
 */
#include <math.h>
#include <stdlib.h>
#include "plan/bound/call_bound.h"
#include "plan/bound/level_bound.h"
#include "plan/bound/phi_levels.h"
#include "plan/bound/stage_bound.h"
#include "plan/bound/turn_program.h"
#include "plan/core/sizing.h"

#define PROGRAM_ROUNDING 1e-6	      /* relative, of the linear program beyond T (r + b) */
#define SUM_ROUNDING 1e-9	      /* relative, of T (r + b) */
#define POOL_MOST ((uint64_t)1 << 61) /* no bound changes beyond it; bytes stay in 63 bits */

/*
 * The maximum of u T - Phi_u over all levels u >= t, with one slot, from Phi_t = `now`. a and b
 * are the tapes without and with the slot. Once Phi_{t-1} + t b exceeds t a, all later levels
 * are Phi_u = u (u+1)/2 b + constant, so the maximum lies at about u = T/b.
 */
static neap__wide one_slot(neap__wide now, int64_t t, int64_t steps, int64_t b)
{
	neap__wide best = 0, base = now - (neap__wide)t * (t + 1) / 2 * b;
	for (int64_t u = steps / b - 2; u <= steps / b + 1; u++)
		if (u >= t) {
			neap__wide value =
				(neap__wide)u * steps - ((neap__wide)u * (u + 1) / 2 * b + base);
			best = value > best ? value : best;
		}
	return best;
}

/* max_t ( t T - Phi_t ): further forward executions without a slow tier. */
static neap__wide extra_steps(const struct neap_chain *c, int64_t pool)
{
	struct neap__phi_levels x;
	int64_t steps = c->steps, tape = (int64_t)c->tape;
	neap__wide best = 0;
	if (tape == 0 || pool / tape >= steps || pool < tape + (int64_t)c->state ||
		neap__phi_levels_init(&x, pool, c) < 0)
		return 0; /* nothing to recompute, nothing possible, or too large */
	for (int64_t cells = 0; cells < NEAP__PHI_CELLS_MOST; cells += x.slots + 1) {
		neap__wide before = x.value[0];
		neap__phi_levels_next(&x);
		neap__wide value = (neap__wide)x.t * steps - x.value[0];
		if (value < best)
			break;
		best = value;
		if (x.slots == 1 && x.value[0] == before + x.value[1]) {
			neap__wide far = one_slot(x.value[0], x.t, steps, (pool - x.state) / tape);
			best = far > best ? far : best;
			break;
		}
	}
	free(x.value);
	return best;
}

static double bound_of(const struct neap_problem *problem, int late);

/* A mixed problem as one of bytes: a slot is a byte, and one tape is free. */
static double bound_mixed(const struct neap_problem *problem, int late)
{
	struct neap_problem p = *problem;
	p.chain.flags &= ~(uint32_t)(NEAP_CHAIN_CLASSIC | NEAP_CHAIN_MIXED);
	p.chain.tape = p.chain.live = 1;
	p.memory += 2;
	return bound_of(&p, late);
}

/*
 * With a log, the bound is that of a problem whose steps are recorded at the price of a replay:
 * the log takes no room and no time to move. Besides, each step is once either logged and
 * replayed, or recorded.
 */
static double bound_logged(const struct neap_problem *problem, int late)
{
	const struct neap_chain *c = &problem->chain;
	struct neap_problem p = *problem;
	p.chain.log = 0;
	p.chain.record = c->replay;
	double each = fmin(c->record, c->advance + c->replay) + c->backward;
	return fmax(bound_of(&p, late), (double)c->steps * each);
}

/*
 * The fastest schedule for a chain with a short last step also fits the chain with a whole one,
 * whose tape has the same room. There it takes longer by what the last step is short of, at most.
 */
static double bound_last(const struct neap_problem *problem, int late)
{
	struct neap_problem whole = *problem;
	const struct neap_chain *c = &problem->chain;
	double tape = c->log ? fmax(c->record, c->advance + c->replay) : c->record;
	whole.chain.last = 0;
	return fmax(bound_of(&whole, late) - neap__last_missing(c) * (tape + c->backward), 0);
}

/* Equal steps, memory in bytes or slots, calls that are free. */
static double bound_uniform(const struct neap_problem *problem, int late)
{
	const struct neap_chain *c = &problem->chain;
	double least = (double)c->steps * (c->record + c->backward);
	/* The reserve for worst-case tapes is a promise of plans, so a bound cannot count it. */
	uint64_t taken = c->adjoint + neap__live_bytes(problem);
	if (problem->memory < taken || c->steps < 2)
		return least;
	uint64_t pool = problem->memory - taken, most = POOL_MOST;
	int64_t room = (int64_t)(pool < most ? pool : most);
	if (problem->ntiers > 0) {
		/* Less what rounding can have added. */
		double more = (neap__turn_program_bound(problem, room, late) - least) *
				      (1 - PROGRAM_ROUNDING) -
			      SUM_ROUNDING * least;
		return fmax(more > 0 ? least + more : least, late ? neap__level_bound(problem) : 0);
	}
	neap__wide extra;
	if (c->flags & NEAP_CHAIN_CLASSIC)
		extra = room < 1 ? 0 : neap__revolve_extra(c->steps, room);
	else
		extra = extra_steps(c, room);
	return least + (extra > 0 ? (double)extra : 0) * fmin(c->advance, c->record);
}

/*
 * late: as of neap__turn_program_bound. 0 leaves the bound of synchronous levels out as well, which
 * is the same with and without late states.
 */
static double bound_of(const struct neap_problem *problem, int late)
{
	const struct neap_chain *c = &problem->chain;
	struct neap_problem spread = {.size = sizeof spread};
	if (c->record_steps > 0) {
		spread = neap__calls_counted(problem);
		return bound_of(&spread, late);
	}
	if (c->last > 0)
		return bound_last(problem, late);
	if (neap__call_bound_spread(&spread, problem))
		return bound_of(&spread, late);
	if (c->log && c->replay < c->record)
		return bound_logged(problem, late);
	if (c->stages)
		return neap__stage_bound(problem);
	if (c->join)
		return (double)(c->steps + c->join) * (c->record + c->backward);
	if (c->flags & NEAP_CHAIN_MIXED)
		return bound_mixed(problem, late);
	return bound_uniform(problem, late);
}

double neap_bound(const struct neap_problem *problem)
{
	return problem ? bound_of(problem, 1) : 0;
}

double neap_estimate(const struct neap_problem *problem, double bound)
{
	double estimate = problem && problem->ntiers > 0 ? bound_of(problem, 0) : 0;
	return estimate > bound * (1 + PROGRAM_ROUNDING) ? estimate : bound;
}
