/* SPDX-License-Identifier: Apache-2.0 */
/*
 * join.c: the strategy `join`: two chains that meet in one loss. The first sweep keeps u states and
 * both ends, and records the last steps of each chain, its tail, which are reversed right after the
 * loss. Each part between the states is then reversed in the slots that the first states of parts
 * still to come leave free. In a problem that counts states there is no tail, and slots hold every
 * state there is, live ones included; in bytes, join_sizes.h divides the budget.
 *
 *     a, b        steps of the two chains without their tails
 *     M           slots
 *     u           parts, which the first sweep leaves; at most M - 2 of states
 *     R(y,c)      Revolve's advance steps of y steps in c slots (binomial.h)
 *     G(p,q,u)    least advance steps of the first p and q steps of the chains in u parts
 *
 *     G(0,0,0) = 0
 *     G(p,q,u) = min( min_y R(y,M-u) + G(p-y,q,u-1), min_y R(y,M-u) + G(p,q-y,u-1) )
 *     advance steps = a + b + min_u G(a,b,u)
 *
 * The sum includes the first sweep; every step is recorded once besides. The order in which
 * the chains are reversed matters; join_parts.h finds it. The recurrence is ours; it equals
 * exhaustive search on all cases that can be searched. Tails are as long as gives the fewest
 * advance steps. Part i has its first state in slot i; the parts are entries of Revolve's stack
 * (revolve_stack.h).
 *
 * Peak: M states at most; in bytes, join_sizes.h has the formula.
 */
#include <errno.h>
#include <stdlib.h>
#include "base/fail.h"
#include "plan/recompute/join_parts.h"
#include "plan/recompute/join_sizes.h"
#include "plan/recompute/revolve_stack.h"
#include "plan/core/strategy.h"
#include "plan/core/sizing.h"

#define NEVER (INT64_MAX / 4) /* advance steps that join_parts.h could not count */
#define PARTS_MOST 4000000    /* of 16 bytes, and entries of the stack */
/*
 * Measured by test_plan_join: without a search near the estimate, plans of short chains take up to
 * 8.7% more forward steps than with the best tail, with it at most 1.9%.
 */
#define EXACT_STEPS 1000
#define NEAR 8

struct join {
	struct neap__revolve_stack revolve; /* first: a schedule's self */
	struct neap__join_part *part;
	int64_t count;
	struct neap__join_sizes sizes;
	int64_t done; /* parts that the first sweep of a chain has passed */
	int64_t t;    /* the step that the first sweep has reached */
	int swept;    /* chains whose first sweep is done */
};

/* Calls, copies and bytes of a plan. */
static void count(struct neap_plan *plan, const struct neap_problem *problem,
	const struct neap__join_sizes *x, const struct neap__join_part *part, int64_t n)
{
	const struct neap_chain *c = &problem->chain;
	const struct neap__join_units u = neap__join_units(problem);
	int64_t tail = x->tail[0] + x->tail[1], left = x->left[0] + x->left[1];
	int64_t saves = n, used = n, taped = 0; /* slots at most, and in addition to a tape */
	for (int64_t i = 0; i < n; i++) {
		int64_t l = part[i].l, own = 0; /* the slot of a single step is free by then */
		if (l > 1) {
			struct neap__binomial b = neap__binomial(l, x->slots - 1 - i);
			saves += neap__binomial_saves(b);
			own = b.s;
		}
		used = i + own > used ? i + own : used;
		taped = i + own > taped ? i + own : taped;
	}
	uint64_t loss = (uint64_t)n * u.state + 2 * u.live + (uint64_t)tail * u.tape;
	uint64_t reversing = left ? (uint64_t)taped * u.state + u.live + u.tape : 0;
	plan->feasible = 1;
	plan->params.tail = tail;
	plan->slots = used;
	plan->arena_bytes = u.fixed + (loss > reversing ? loss : reversing);
	plan->peak_bytes = plan->arena_bytes - neap__tape_reserve(problem);
	plan->record_steps = c->steps + c->join;
	/* Of the steps that are not recorded at once, a LOAD, an ADVANCE, a RECORD and a BACKWARD.
	 */
	int64_t calls = 3 * left + 2 * ((x->tail[0] > 0) + (x->tail[1] > 0));
	plan->makespan = (double)plan->advance_steps * c->advance +
			 (double)plan->record_steps * (c->record + c->backward) +
			 (double)saves * c->slot_write + (double)left * c->slot_read +
			 (double)calls * c->call;
}

/* The parts besides tails whose sizes are known; none where the tails are everything. */
static int make_parts(const struct neap__join_sizes *x, struct neap__join_part **part,
	int64_t *count, int64_t *advances)
{
	*part = NULL;
	*count = *advances = 0;
	if (x->parts == 0)
		return 0;
	return neap__join_parts(part, count, advances, x->left[0], x->left[1], x->slots, x->parts);
}

/*
 * Returns the tail, or -1 where the budget is too small for any. That of the estimate, or with
 * short chains, whose parts the estimate pools too boldly, the best one near it.
 */
static int64_t best_tail(const struct neap_problem *problem)
{
	int64_t estimate = neap__join_tail(problem), best = estimate, least = INT64_MAX;
	int64_t all = problem->chain.steps + problem->chain.join, n, advances;
	if (estimate < 0 || problem->chain.flags & NEAP_CHAIN_CLASSIC || all > EXACT_STEPS)
		return estimate;
	for (int64_t tail = estimate - NEAR; tail <= estimate + NEAR; tail++) {
		struct neap__join_part *part;
		struct neap__join_sizes x;
		if (tail < 0 || tail > all || !neap__join_sizes(&x, problem, tail) ||
			make_parts(&x, &part, &n, &advances) < 0)
			continue;
		free(part);
		advances += x.left[0] + x.left[1];
		if (advances < least) {
			least = advances;
			best = tail;
		}
	}
	return best;
}

/* Why the budget is too small. */
static void refuse_memory(struct neap_plan *plan, const struct neap_problem *problem)
{
	uint64_t least = neap__join_least(problem);
	int classic = (problem->chain.flags & NEAP_CHAIN_CLASSIC) != 0;
	neap__refuse(plan, least, "two chains need at least %llu %s", (unsigned long long)least,
		classic ? "slots" : "bytes");
}

/* A budget with which every step is recorded in the first pass, or has a slot. */
static uint64_t ample(const struct neap_problem *problem)
{
	int64_t all = problem->chain.steps + problem->chain.join;
	return problem->chain.flags & NEAP_CHAIN_CLASSIC ? (uint64_t)all + 2
							 : neap__join_needs(problem, all);
}

static int solve(
	struct neap_plan *plan, const struct neap_problem *problem, const struct neap_params *fixed)
{
	int64_t all = problem->chain.steps + problem->chain.join, n, advances;
	struct neap__join_part *part;
	struct neap__join_sizes x;
	if (problem->chain.join == 0) {
		neap__refuse(plan, 0, "needs two chains that end in one loss; this is one chain");
		return 0;
	}
	int given = fixed->tail > 0 && !(problem->chain.flags & NEAP_CHAIN_CLASSIC);
	int64_t tail = given ? (fixed->tail < all ? fixed->tail : all) : best_tail(problem);
	if (tail < 0 || !neap__join_sizes(&x, problem, tail)) {
		refuse_memory(plan, problem);
		return 0;
	}
	if (x.parts > PARTS_MOST) {
		neap__refuse(plan, 0, "cuts two chains into %d parts at most", PARTS_MOST);
		return 0;
	}
	int rc = make_parts(&x, &part, &n, &advances);
	if (rc == NEAP_EINFEASIBLE) {
		neap__refuse(plan, ample(problem), "chains too long to be searched");
		return 0;
	}
	NEAP_TRY(rc);
	plan->advance_steps = x.left[0] + x.left[1] + advances;
	if (advances < NEVER)
		count(plan, problem, &x, part, n);
	else
		neap__refuse(plan, ample(problem), "more than 2^61 steps");
	free(part);
	return 0;
}

static int unlike(void)
{
	return neap__fail(NEAP_EUSAGE, "schedule: the plan is not one of this problem");
}

/* The loss, and the tails reversed. */
static void turn(const struct join *x, struct neap_schedule *s)
{
	const struct neap_chain *c = &s->problem.chain;
	const int64_t end[2] = {c->steps, c->steps + 1 + c->join};
	neap__emit(s, &(struct neap_action){.kind = NEAP_TURN, .t0 = end[1], .t1 = end[1]});
	for (int k = 1; k >= 0; k--)
		if (x->sizes.tail[k] > 0)
			neap__backward(s, end[k] - x->sizes.tail[k], end[k]);
}

/* The first sweep: keeps the next state and advances over its part, or records the tail. */
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
	if (x->t + x->sizes.tail[x->swept] != end)
		return unlike();
	if (x->t < end)
		neap__record(s, x->t, end);
	x->done = 0;
	x->t = a + 1;
	if (x->swept++)
		turn(x, s);
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
	int64_t advances, tail = s->plan.params.tail;
	struct join *x = s->self = calloc(1, sizeof *x);
	if (!x)
		return neap__fail(-ENOMEM, "schedule: out of memory");
	s->refill = refill;
	s->fini = fini;
	s->tables = neap__revolve_stack_tables;
	if (c->join < 1 || tail < 0 || tail > c->steps + c->join ||
		(tail > 0 && c->flags & NEAP_CHAIN_CLASSIC) ||
		!neap__join_sizes(&x->sizes, &s->problem, tail) || x->sizes.parts > PARTS_MOST)
		return unlike();
	NEAP_TRY(make_parts(&x->sizes, &x->part, &x->count, &advances));
	for (int64_t i = 0; i < x->count; i++)
		NEAP_TRY(neap__revolve_stack_push(
			&x->revolve, 0, x->part[i].l, x->sizes.slots - 1 - i));
	x->revolve.turned = 1; /* turn() emits TURN */
	return 0;
}

static int64_t tapes_held(const struct neap_plan *plan, int64_t steps)
{
	(void)steps;
	return plan->params.tail > 1 ? plan->params.tail : 1;
}

const struct neap__strategy neap__strategy_join = {
	.name = "join",
	.about = "two chains into one loss, the fewest advance steps",
	.solve = solve,
	.open = open,
	.tapes_held = tapes_held,
	.traits = NEAP_STRATEGY_JOIN,
};
