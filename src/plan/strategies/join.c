/* SPDX-License-Identifier: Apache-2.0 */
/*
 * join: two chains of a and b steps that meet in one loss, M slots for every state
 * there is, live ones included. The first sweep keeps u states and both ends;
 * whichever part is reversed, of y steps, has the slots that are not taken by the
 * starts of parts still to come. With R(y,c) Revolve's advance steps,
 *
 *     G(0,0,0) = 0
 *     G(p,q,u) = min( min_y R(y,M-u) + G(p-y,q,u-1), min_y R(y,M-u) + G(p,q-y,u-1) )
 *     advance steps = a + b + min_{u <= M-2} G(a,b,u),
 *
 * the first sweep's included, and every step is recorded once besides. The order
 * in which the chains are reversed matters; join_parts.c finds it. Equal to
 * exhaustive search wherever that can be done.
 *
 * Part number i has its start in slot i; the parts are Revolve's stack (revolve_stack.h),
 * which does the rest. Peak: M states at most.
 */
#include <errno.h>
#include <stdlib.h>
#include "base/fail.h"
#include "plan/recompute/join_parts.h"
#include "plan/recompute/revolve_stack.h"
#include "plan/core/strategy.h"
#include "plan/core/sizing.h"

#define NEVER (INT64_MAX / 4)
#define PARTS_MOST 4000000

struct join {
	struct neap__revolve_stack revolve; /* first: a schedule's self */
	struct neap__join_part *part;
	int64_t count;
	int64_t done; /* parts of the first sweep that were begun */
	int64_t t;    /* where it stands */
	int swept;    /* chains whose first sweep is done */
};

/* Slots that a problem of any budget has use for. */
static int64_t slots_of(const struct neap_problem *p)
{
	int64_t all = p->chain.steps + p->chain.join + 2;
	return p->memory > (uint64_t)all ? all : (int64_t)p->memory;
}

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

/* One more state kept on the way up, and on to the next, or to the chain's end. */
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
	x->revolve.turned = 1; /* not by the last step */
	return 0;
}

const struct neap__strategy neap__strategy_join = {
	.name = "join",
	.about = "two chains into one loss, the fewest advance steps",
	.solve = solve,
	.open = open,
	.traits = NEAP_STRATEGY_JOIN,
};
