/* SPDX-License-Identifier: Apache-2.0 */
/* join_sizes.c: the budget of two chains, divided between tails, parts and slots. */
#include "plan/recompute/join_sizes.h"

#include <math.h>
#include "base/checked.h"
#include "plan/core/sizing.h"

#define LEVELS_MOST 4096 /* as join_parts.c */
#define POINTS 32 /* tails tried at a time; the range then shrinks to two of their distances */

struct neap__join_units neap__join_units(const struct neap_problem *p)
{
	const struct neap_chain *c = &p->chain;
	int classic = (c->flags & NEAP_CHAIN_CLASSIC) != 0;
	return (struct neap__join_units){.state = c->state,
		.live = classic ? 1 : neap__live_bytes(p),
		.tape = c->tape,
		.fixed = 2 * c->adjoint + neap__tape_reserve(p)};
}

static int64_t all_steps(const struct neap_problem *p)
{
	return p->chain.steps + p->chain.join;
}

static void split(struct neap__join_sizes *x, const struct neap_problem *p, int64_t tail)
{
	const int64_t length[2] = {p->chain.steps, p->chain.join};
	int longer = length[1] > length[0];
	int64_t ahead = length[longer] - length[!longer];
	int64_t shared = tail > ahead ? tail - ahead : 0;
	x->tail[longer] = tail - shared / 2;
	x->tail[!longer] = shared / 2;
	for (int k = 0; k < 2; k++)
		x->left[k] = length[k] - x->tail[k];
}

/* Parts that there must be: one for each chain that is not all tail. */
static int parts_least(const struct neap__join_sizes *x)
{
	return (x->left[0] > 0) + (x->left[1] > 0);
}

int neap__join_sizes(struct neap__join_sizes *x, const struct neap_problem *p, int64_t tail)
{
	const struct neap__join_units u = neap__join_units(p);
	int64_t state = (int64_t)u.state, left = all_steps(p) - tail;
	uint64_t pool = p->memory > u.fixed ? p->memory - u.fixed : 0;
	int64_t bytes = pool < (uint64_t)INT64_MAX ? (int64_t)pool : INT64_MAX;
	split(x, p, tail);
	/* Products are below 2^62: problem.c. */
	int64_t loss = bytes - 2 * (int64_t)u.live - tail * (int64_t)u.tape;
	int64_t reversing = bytes - (int64_t)u.live - (int64_t)u.tape;
	x->parts = x->slots = 0;
	if (loss < 0 || left == 0)
		return loss >= 0;
	if (reversing < 0)
		return 0;
	int64_t slots = reversing / state;
	x->slots = 1 + (slots < all_steps(p) + 1 ? slots : all_steps(p) + 1);
	x->parts = x->slots - 1 < left ? x->slots - 1 : left;
	if (loss / state < x->parts)
		x->parts = loss / state;
	return x->parts >= parts_least(x);
}

uint64_t neap__join_needs(const struct neap_problem *p, int64_t tail)
{
	const struct neap__join_units u = neap__join_units(p);
	struct neap__join_sizes x;
	split(&x, p, tail);
	uint64_t parts = (uint64_t)parts_least(&x);
	uint64_t loss = parts * u.state + 2 * u.live + (uint64_t)tail * u.tape;
	uint64_t reversing = parts ? parts * u.state + u.live + u.tape : 0;
	return u.fixed + (loss > reversing ? loss : reversing);
}

uint64_t neap__join_least(const struct neap_problem *p)
{
	int64_t all = all_steps(p);
	uint64_t least = neap__join_needs(p, 0);
	/* More tail saves a part only where it takes all of the shorter chain, or everything. */
	for (int64_t tail = all - 1; !(p->chain.flags & NEAP_CHAIN_CLASSIC) && tail <= all;
		tail++) {
		uint64_t needs = neap__join_needs(p, tail);
		least = needs < least ? needs : least;
	}
	return least;
}

/*
 * Advance steps if the parts held one chain of all that is left. At level t (join_parts.c) they
 * hold sum_{c=M-n}^{M-1} C(c+t, t) = C(M+t, t+1) - C(M-n+t, t+1) steps.
 */
static double estimate(const struct neap__join_sizes *x)
{
	double left = (double)x->left[0] + (double)x->left[1], advances = left;
	double all = (double)x->slots, others = (double)(x->slots - x->parts);
	double above = all, below = others, held = all - others;
	if (left == 0)
		return 0;
	for (int t = 1; held < left; t++) {
		if (t > LEVELS_MOST)
			return advances + t * (left - held);
		above *= (all + t) / (t + 1);
		below *= (others + t) / (t + 1);
		double now = fmin(above - below, left);
		advances += t * (now - held);
		held = now;
	}
	return advances;
}

int64_t neap__join_tail(const struct neap_problem *p)
{
	struct neap__join_sizes x;
	int classic = (p->chain.flags & NEAP_CHAIN_CLASSIC) != 0;
	int64_t all = all_steps(p), low = 0, high = classic ? 0 : all, best = -1;
	double least = INFINITY;
	if (!classic && neap__join_sizes(&x, p, all))
		return all;
	for (int64_t step = 0; step != 1;) {
		step = neap__ceil_div(high - low, POINTS);
		step = step > 0 ? step : 1;
		for (int64_t tail = low; tail <= high; tail += step) {
			double advances = neap__join_sizes(&x, p, tail) ? estimate(&x) : INFINITY;
			if (advances < least) {
				least = advances;
				best = tail;
			}
		}
		int64_t middle = best < 0 ? low : best;
		low = middle > step ? middle - step : 0;
		high = middle < high - step ? middle + step : high;
	}
	if (best < 0 && !classic && neap__join_sizes(&x, p, all - 1))
		best = all - 1;
	return best;
}
