/* SPDX-License-Identifier: Apache-2.0 */
/*
 * join.c: the strategy `join`: two chains that meet in one loss, with slots for every state there
 * is, live ones included. The first sweep keeps u states and both ends; each part between them
 * is then reversed in the slots that the first states of parts still to come leave free.
 *
 *     a, b        steps of the two chains
 *     M           slots
 *     u           parts, which the first sweep leaves
 *     R(y,c)      Revolve's advance steps of y steps in c slots (binomial.h)
 *     G(p,q,u)    least advance steps of the first p and q steps of the chains in u parts
 *
 *     G(0,0,0) = 0
 *     G(p,q,u) = min( min_y R(y,M-u) + G(p-y,q,u-1), min_y R(y,M-u) + G(p,q-y,u-1) )
 *     advance steps = a + b + min_{u <= M-2} G(a,b,u)
 *
 * The sum includes the first sweep; every step is recorded once besides. The order in which
 * the chains are reversed matters; join_parts.h finds it. The recurrence is ours; it equals
 * exhaustive search on all cases that can be searched. Part i has its first state in slot i;
 * the parts are entries of Revolve's stack (revolve_stack.h).
 *
 * Peak: M states at most.
 */
#include <errno.h>
#include <stdlib.h>
#include "base/fail.h"
#include "plan/recompute/join_parts.h"
#include "plan/recompute/revolve_stack.h"
#include "plan/core/strategy.h"
#include "plan/core/sizing.h"

#define NEVER (INT64_MAX / 4) /* advance steps that join_parts.h could not count */
#define PARTS_MOST 4000000    /* of 16 bytes, and entries of the stack */

struct join {
	struct neap__revolve_stack revolve; /* first: a schedule's self */
	struct neap__join_part *part;
	int64_t count;
	int64_t done; /* parts that the first sweep of a chain has passed */
	int64_t t;    /* the step that the first sweep has reached */
	int swept;    /* chains whose first sweep is done */
};

/* Slots of the problem, at most as many as there are states. */
static int64_t slots_of(const struct neap_problem *p)
{
	int64_t all = p->chain.steps + p->chain.join + 2;
	return p->memory > (uint64_t)all ? all : (int64_t)p->memory;
}

/* Fills the numbers of the plan. */
static void count(struct neap_plan *plan, const struct neap_problem *problem,
	const struct neap__join_part *part, int64_t n)
{
	const struct neap_chain *c = &problem->chain;
	int64_t slots = slots_of(problem), loads = c->steps + c->join, saves = n;
	int64_t peak = n + 2, used = n;
	for (int64_t i = 0; i < n; i++) {
		int64_t l = part[i].l, own = 1;
		if (l > 1) {
			struct neap__binomial x = neap__binomial(l, slots - 1 - i);
			saves += neap__binomial_saves(x);
			own = x.s;
		}
		peak = i + own + 1 > peak ? i + own + 1 : peak;
		used = i + own > used ? i + own : used;
	}
	plan->feasible = 1;
	plan->slots = used;
	plan->peak_bytes = plan->arena_bytes = (uint64_t)peak;
	plan->record_steps = c->steps + c->join;
	plan->makespan = (double)plan->advance_steps * c->advance +
			 (double)plan->record_steps * (c->record + c->backward) +
			 (double)saves * c->slot_write + (double)loads * c->slot_read +
			 (double)(3 * plan->record_steps) * c->call;
}

static int solve(
	struct neap_plan *plan, const struct neap_problem *problem, const struct neap_params *fixed)
{
	const struct neap_chain *c = &problem->chain;
	int64_t a = c->steps, b = c->join, n, advances;
	struct neap__join_part *part;
	(void)fixed;
	if (b == 0) {
		neap__refuse(plan, 0, "needs two chains (--steps A,B)");
		return 0;
	}
	if (problem->memory < 4) {
		neap__refuse(plan, 4, "two chains need 4 slots at least");
		return 0;
	}
	if (slots_of(problem) > PARTS_MOST) {
		neap__refuse(plan, 0, "cuts two chains into %d parts at most", PARTS_MOST);
		return 0;
	}
	int rc = neap__join_parts(&part, &n, &advances, a, b, slots_of(problem));
	if (rc == NEAP_EINFEASIBLE) {
		neap__refuse(plan, (uint64_t)(a + b + 2), "chains too long to be searched");
		return 0;
	}
	NEAP_TRY(rc);
	plan->advance_steps = a + b + advances;
	if (advances < NEVER)
		count(plan, problem, part, n);
	else
		neap__refuse(plan, (uint64_t)(a + b + 2), "more than 2^61 steps");
	free(part);
	return 0;
}

/* The first sweep: keeps the next state and advances over its part, or ends the chain. */
static int sweep(struct join *x, struct neap_schedule *s)
{
	int64_t a = s->problem.chain.steps, end = x->swept ? a + 1 + s->problem.chain.join : a;
	while (x->done < x->count && x->part[x->done].second != x->swept)
		x->done++;
	if (x->done < x->count) {
		neap__save(s, x->done, x->t);
		x->revolve.stack[x->done].t0 = x->t;
		neap__advance(s, x->t, x->t + x->part[x->done].l);
		x->t += x->part[x->done++].l;
		return 0;
	}
	if (x->t != end)
		return neap__fail(NEAP_EUSAGE, "schedule: the plan is not one of this problem");
	x->done = 0;
	x->t = a + 1;
	if (x->swept++)
		neap__emit(s, &(struct neap_action){.kind = NEAP_TURN, .t0 = end, .t1 = end});
	return 0;
}

static int refill(struct neap_schedule *s)
{
	struct join *x = s->self;
	while (x->swept < 2 && s->length == 0)
		NEAP_TRY(sweep(x, s));
	return s->length ? 0 : neap__revolve_stack_next(&x->revolve, s);
}

static void fini(struct neap_schedule *s)
{
	struct join *x = s->self;
	free(x->revolve.stack);
	free(x->part);
}

static int open(struct neap_schedule *s)
{
	const struct neap_chain *c = &s->problem.chain;
	int64_t slots = slots_of(&s->problem), advances;
	struct join *x = s->self = calloc(1, sizeof *x);
	if (!x)
		return neap__fail(-ENOMEM, "schedule: out of memory");
	s->refill = refill;
	s->fini = fini;
	s->tables = neap__revolve_stack_tables;
	if (c->join < 1 || slots < 4 || slots > PARTS_MOST)
		return neap__fail(NEAP_EUSAGE, "schedule: the plan is not one of this problem");
	NEAP_TRY(neap__join_parts(&x->part, &x->count, &advances, c->steps, c->join, slots));
	for (int64_t i = 0; i < x->count; i++)
		NEAP_TRY(neap__revolve_stack_push(&x->revolve, 0, x->part[i].l, slots - 1 - i));
	x->revolve.turned = 1; /* sweep() emits TURN */
	return 0;
}

const struct neap__strategy neap__strategy_join = {
	.name = "join",
	.about = "two chains into one loss, the fewest advance steps",
	.solve = solve,
	.open = open,
	.traits = NEAP_STRATEGY_JOIN,
};
