/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mixed.c: the strategy `mixed`: Revolve whose leaves keep as many tapes as fast memory has room
 * for, more of them as slots fall free (leaf_revolve.h). In a classic problem whose slots hold
 * a state or a tape (NEAP_CHAIN_MIXED), a leaf has slots + 1 - j steps if j states are kept.
 * That is optimal for slots that hold either: keeping a tape while another part is recomputed
 * never helps. If a call of the model has a cost (chain.call), fewer slots than fit are tried:
 * leaves are then longer, and fewer.
 *
 * Peak: the largest of j S + l A bytes over all leaves (l: steps of a leaf, j: states kept then, S:
 * bytes of a state, A: bytes of a tape). The number is exact, and T A if all T tapes fit.
 */
#include "plan/recompute/leaf_revolve.h"

#include <errno.h>
#include <stdlib.h>
#include "base/fail.h"
#include "plan/core/schedule.h"
#include "plan/core/strategy.h"
#include "plan/core/sizing.h"

/* Calls that take a smaller part of the time are left alone (chosen: no limit gains more). */
#define CALLS_COUNT 0.01
#define FASTER 1e-13	/* relative, so that rounding does not decide */
#define SLOTS_FEW 32	/* limits that are tried one by one (chosen) */
#define SLOTS_REFUSED 8 /* fewer slots are tried for the least budget that a refusal names */

/* The sizes in the unit of leaf_revolve.h: bytes, or slots, of which one tape more is free. */
static void units(const struct neap_problem *p, int64_t *pool, int64_t *state, int64_t *tape)
{
	const struct neap_chain *c = &p->chain;
	int classic = (c->flags & NEAP_CHAIN_CLASSIC) != 0;
	*pool = neap__pool_bytes(p, 0) + classic;
	*state = (int64_t)c->state;
	*tape = classic ? 1 : (int64_t)c->tape;
	if (*tape == 0) { /* any number of tapes fits */
		*tape = 1;
		*pool = *pool < 0 ? -1 : *pool + c->steps;
	}
}

/* Splits the chain with `slots` slots at most. */
static int build(struct neap__leaf_revolve *x, const struct neap_problem *p, int64_t slots)
{
	int64_t pool, state, tape;
	units(p, &pool, &state, &tape);
	return neap__leaf_revolve_plan(x, p->chain.steps, pool, state, tape, slots);
}

/* Refuses and names the least budget that works. */
static void refuse(struct neap_plan *plan, const struct neap_problem *problem)
{
	int64_t steps = problem->chain.steps;
	int classic = (problem->chain.flags & NEAP_CHAIN_CLASSIC) != 0;
	struct neap_problem richer = *problem;
	uint64_t all =
		classic ? UINT64_MAX
			: neap__fixed_bytes(problem, 0) + (uint64_t)neap__bytes(problem, 0, steps);
	for (int64_t slots = steps > 1; slots < SLOTS_REFUSED; slots++) {
		struct neap__leaf_revolve x;
		richer.memory =
			neap__fixed_bytes(problem, 0) + (uint64_t)neap__bytes(problem, slots, 1);
		int rc = build(&x, &richer, slots);
		neap__leaf_revolve_free(&x);
		if (rc < 0 && richer.memory < all)
			continue;
		if (richer.memory >= all) {
			neap__refuse(plan, all, "all tapes need %llu", (unsigned long long)all);
			return;
		}
		neap__refuse(plan, richer.memory, "%lld slot%s and a tape need %llu%s",
			(long long)slots, slots == 1 ? "" : "s", (unsigned long long)richer.memory,
			classic ? " slots" : "");
		return;
	}
	neap__refuse(plan, 0, "too many steps");
}

static double seconds_of_calls(const struct neap_chain *c, const struct neap__leaf_use *use)
{
	return (double)(3 * use->loads + 2) * c->call;
}

static double seconds_of(const struct neap_chain *c, const struct neap__leaf_use *use)
{
	return (double)c->steps * (c->record + c->backward) + (double)use->advances * c->advance +
	       (double)(use->saves + (use->loads > 0)) * c->slot_write +
	       (double)use->loads * c->slot_read + seconds_of_calls(c, use);
}

/* Takes the splits with `slots` slots at most if they are faster. */
static int attempt(struct neap__leaf_revolve *best, const struct neap_problem *p, int64_t slots)
{
	struct neap__leaf_revolve x;
	int rc = build(&x, p, slots);
	if (rc == 0 &&
		seconds_of(&p->chain, &x.use) < seconds_of(&p->chain, &best->use) * (1 - FASTER)) {
		const struct neap__leaf_revolve slower = *best;
		*best = x;
		x = slower;
	}
	neap__leaf_revolve_free(&x);
	return rc == NEAP_EINFEASIBLE ? 0 : rc;
}

/*
 * With fewer slots leaves are longer, so fewer calls are made for more advances. Tries all limits
 * of slots if they are few; else halves the limit, then the steps around the best one.
 */
static int spare_calls(struct neap__leaf_revolve *best, const struct neap_problem *p)
{
	const struct neap_chain *c = &p->chain;
	if (c->flags & NEAP_CHAIN_CLASSIC ||
		!(seconds_of_calls(c, &best->use) > CALLS_COUNT * seconds_of(c, &best->use)))
		return 0;
	for (int64_t n = best->use.slots - 1; n > 0; n = n > SLOTS_FEW ? n / 2 : n - 1)
		NEAP_TRY(attempt(best, p, n));
	for (int64_t step = best->slots / 4 + 1; step > 0; step /= 2) {
		int64_t middle = best->slots;
		NEAP_TRY(attempt(best, p, middle + step));
		if (middle > step)
			NEAP_TRY(attempt(best, p, middle - step));
	}
	return 0;
}

static int solve(
	struct neap_plan *plan, const struct neap_problem *problem, const struct neap_params *fixed)
{
	const struct neap_chain *c = &problem->chain;
	int classic = (c->flags & NEAP_CHAIN_CLASSIC) != 0;
	struct neap__leaf_revolve x;

	if (classic && !(c->flags & NEAP_CHAIN_MIXED) && c->steps > 1) {
		neap__refuse(plan, 0, "needs bytes, or slots that hold tapes too");
		return 0;
	}
	int64_t slots = fixed->checkpoints ? fixed->checkpoints : c->steps;
	int rc = build(&x, problem, slots);
	if (rc == NEAP_EINFEASIBLE) {
		neap__leaf_revolve_free(&x);
		refuse(plan, problem);
		return 0;
	}
	if (rc == 0 && !fixed->checkpoints)
		rc = spare_calls(&x, problem);
	if (rc == 0) {
		int64_t bytes = c->tape == 0 && !classic ? x.use.slots * x.state : x.use.peak;
		neap__accept(plan, problem, 0, x.use.slots, bytes - classic);
		plan->params.checkpoints = x.slots;
		plan->advance_steps = x.use.advances;
		plan->record_steps = c->steps;
		plan->makespan = seconds_of(c, &x.use);
	}
	neap__leaf_revolve_free(&x);
	return rc;
}

/* Parts still to do, the topmost next; the first state of part j is in slot j. */
struct mixed {
	struct neap__leaf_revolve leaves;
	struct {
		int64_t t0;
		struct neap__leaf_part part;
	} * stack;
	int64_t depth;
	int live, stored; /* the first state of the topmost part is live; is in its slot */
};

static void do_leaf(struct neap_schedule *s, int64_t t0, int64_t t1)
{
	neap__record(s, t0, t1);
	if (t1 == s->problem.chain.steps)
		neap__emit_turn(s);
	neap__backward(s, t0, t1);
}

static int refill(struct neap_schedule *s)
{
	struct mixed *x = s->self;
	if (x->depth == 0)
		return 0;
	int64_t slot = x->depth - 1, t0 = x->stack[slot].t0;
	struct neap__leaf_part part = x->stack[slot].part, left, right;
	int leaf = part.l <= neap__leaf_revolve_fit(&x->leaves, slot);
	if (!x->live) {
		neap__load(s, slot, t0);
		if (leaf)
			neap__drop(s, slot, t0);
	}
	if (leaf) {
		do_leaf(s, t0, t0 + part.l);
		x->depth--;
		x->live = 0;
		x->stored = 1;
		return 0;
	}
	if (!x->stored)
		neap__save(s, slot, t0);
	int64_t y = neap__leaf_revolve_split(&x->leaves, &part, &left, &right);
	neap__advance(s, t0, t0 + y);
	x->stack[slot].part = left;
	x->stack[slot + 1].t0 = t0 + y;
	x->stack[slot + 1].part = right;
	x->depth++;
	x->live = 1;
	x->stored = 0;
	return 0;
}

static void fini(struct neap_schedule *s)
{
	struct mixed *x = s->self;
	neap__leaf_revolve_free(&x->leaves);
	free(x->stack);
}

static int open(struct neap_schedule *s)
{
	struct mixed *x = s->self = calloc(1, sizeof *x);
	if (!x)
		return neap__fail(-ENOMEM, "schedule: out of memory");
	s->refill = refill;
	s->fini = fini;
	int rc = build(&x->leaves, &s->problem, s->plan.params.checkpoints);
	if (rc == NEAP_EINFEASIBLE)
		return neap__fail(NEAP_EUSAGE, "schedule: the plan is not one of this problem");
	NEAP_TRY(rc);
	x->stack = malloc((size_t)(x->leaves.slots + 1) * sizeof *x->stack);
	if (!x->stack)
		return neap__fail(-ENOMEM, "schedule: out of memory");
	x->stack[0].t0 = 0;
	x->stack[0].part = x->leaves.root;
	x->depth = 1;
	x->live = 1;
	return 0;
}

const struct neap__strategy neap__strategy_mixed = {
	.name = "mixed",
	.about = "Revolve whose leaves keep as many tapes as fit; slots hold a state or a tape",
	.solve = solve,
	.open = open,
	.traits = NEAP_STRATEGY_TAPE_SLOTS,
	.plan_seconds = NEAP__PLANS_BY_SEARCH,
	.color = "#777777",
	.mark = 12,
};
