/* SPDX-License-Identifier: Apache-2.0 */
/*
 * join: two chains of p and q steps that meet in one loss, M slots for every state
 * that is kept, the two ends of the first sweep included. That sweep keeps u
 * states; whichever part is reversed, of y steps, has the slots that are not taken
 * by the starts of parts still to come. With R(y,c) Revolve's advance steps,
 *
 *     G(0,0,0) = 0
 *     G(p,q,u) = min( min_y R(y,M-u) + G(p-y,q,u-1), min_y R(y,M-u) + G(p,q-y,u-1) )
 *     advance steps = p + q + min_{u <= M-2} G(p,q,u),
 *
 * the first sweep's included, and every step is recorded once besides. The order
 * in which the chains are reversed matters, G finds it. R is convex in y, so the
 * best y of a row rises from entry to entry: divide and conquer.
 *
 * It counts; actions have one live state, so there is no schedule of them.
 */
#include <errno.h>
#include <stdlib.h>
#include "base/fail.h"
#include "schedule.h"
#include "strategy.h"

#define NEVER (INT64_MAX / 4)
#define WORK_MOST 2e9

/* A row or column of G of one u, every `stride`-th entry. */
struct line {
	const int64_t *from;
	int64_t *into;
	const int64_t *cost; /* R(y,M-u) */
	int64_t stride;
};

/* into[n] = min(into[n], cost[n-k] + from[k]) for n in [first, last], k in [low, high]. */
static void convolve(const struct line *x, int64_t first, int64_t last, int64_t low, int64_t high)
{
	if (first > last || low > high)
		return;
	int64_t n = (first + last) / 2, best = NEVER, at = -1;
	for (int64_t k = low; k <= high && k < n; k++) {
		int64_t before = x->from[k * x->stride], more = x->cost[n - k];
		if (before < NEVER && more < NEVER && before + more < best) {
			best = before + more;
			at = k;
		}
	}
	if (best < x->into[n * x->stride])
		x->into[n * x->stride] = best;
	convolve(x, first, n - 1, low, at < 0 ? high : at);
	convolve(x, n + 1, last, at < 0 ? low : at, high);
}

/* One more state kept: G(.,.,u) of G(.,.,u-1). */
static void keep_one_more(
	int64_t *into, const int64_t *from, const int64_t *cost, int64_t a, int64_t b)
{
	int64_t width = b + 1;
	for (int64_t i = 0; i < (a + 1) * width; i++)
		into[i] = NEVER;
	for (int64_t q = 0; q <= b; q++) {
		struct line x = {from + q, into + q, cost, width};
		convolve(&x, 1, a, 0, a - 1);
	}
	for (int64_t p = 0; p <= a; p++) {
		struct line x = {from + p * width, into + p * width, cost, 1};
		convolve(&x, 1, b, 0, b - 1);
	}
}

/* Advance steps; NEVER: too few slots. -ENOMEM. */
static int count(int64_t *steps, int64_t a, int64_t b, int64_t slots, int64_t kept_most)
{
	size_t cells = (size_t)(a + 1) * (size_t)(b + 1);
	int64_t longest = a > b ? a : b, best = NEVER;
	int64_t *g = malloc(cells * sizeof *g), *next = malloc(cells * sizeof *next);
	int64_t *cost = malloc((size_t)(longest + 1) * sizeof *cost);
	int rc = g && next && cost ? 0 : neap__fail(-ENOMEM, "plan: out of memory");
	for (size_t i = 0; rc == 0 && i < cells; i++)
		g[i] = i ? NEVER : 0;
	for (int64_t u = 1; rc == 0 && u <= kept_most; u++) {
		for (int64_t y = 1; y <= longest; y++) {
			int64_t extra = neap__revolve_extra(y, slots - u);
			cost[y] = extra < 0 || extra > NEVER ? NEVER : extra;
		}
		keep_one_more(next, g, cost, a, b);
		int64_t *old = g;
		g = next;
		next = old;
		if (g[cells - 1] < best)
			best = g[cells - 1];
	}
	free(g);
	free(next);
	free(cost);
	*steps = best < NEVER ? best + a + b : NEVER;
	return rc;
}

static int solve(
	struct neap_plan *plan, const struct neap_problem *problem, const struct neap_params *fixed)
{
	const struct neap_chain *c = &problem->chain;
	int64_t a = c->steps, b = c->join, advances;
	(void)fixed;
	if (b == 0) {
		neap__refuse(plan, 0, "needs two chains (--steps A,B)");
		return 0;
	}
	if (problem->memory < 4) {
		neap__refuse(plan, 4, "two chains need 4 slots at least");
		return 0;
	}
	/* A state kept at every step: nothing is left to do again. */
	int64_t slots =
		problem->memory > (uint64_t)(a + b + 2) ? a + b + 2 : (int64_t)problem->memory;
	if ((double)(a + 1) * (double)(b + 1) * (double)(slots - 2) * 16 > WORK_MOST &&
		slots < a + b + 2) {
		neap__refuse(plan, (uint64_t)(a + b + 2), "chains too long to be searched");
		return 0;
	}
	if (slots == a + b + 2)
		advances = a + b;
	else
		NEAP_TRY(count(&advances, a, b, slots, slots - 2));
	if (advances >= NEVER) {
		neap__refuse(plan, (uint64_t)(a + b + 2), "more than 2^61 steps");
		return 0;
	}
	plan->feasible = 1;
	plan->slots = slots;
	plan->peak_bytes = plan->arena_bytes = (uint64_t)slots;
	plan->advance_steps = advances;
	plan->record_steps = a + b;
	plan->makespan =
		(double)advances * c->advance + (double)(a + b) * (c->record + c->backward);
	return 0;
}

static int open(struct neap_schedule *s)
{
	(void)s;
	return neap__fail(NEAP_EUSAGE, "join: two live states; there are no actions for them");
}

const struct neap__strategy neap__join = {
	"join", "two chains into one loss: the fewest advance steps, counted", solve, open};
