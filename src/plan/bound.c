/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bound: every step is recorded and reversed once, T (r + b), and without a slow
 * tier a pool of P bytes forces E(T,P) further forward steps (each an advance or
 * a record):
 *
 *     E(T,P) = max_t ( t T - Phi_t(P) ),   Phi_0 = 0,
 *     Phi_t(p) = max( t floor(p/A), Phi_{t-1}(p) + Phi_t(p - S) while p - S >= A )
 *
 * the convex hull of the best recomputation. Any t gives a valid bound, so the
 * table may stop early: at the maximum (the terms are concave in t), or after
 * CELLS_MOST entries in problems too large for it. With one slot the rows have a
 * closed form, and classic problems (one tape a leaf) use Revolve's, where the
 * hull is the optimum itself.
 *
 * With a slow tier T (r + b) alone is used: enough bandwidth makes it reachable.
 */
#include <math.h>
#include <stdlib.h>
#include "strategy.h"

#define CELLS_MOST 4000000

typedef __int128 wide;

/* Phi_t of 0 slots taken is held in phi[0]; j slots taken in phi[j], j <= slots. */
static void next_row(wide *phi, int64_t t, int64_t pool, int64_t state, int64_t tape, int64_t slots)
{
	for (int64_t j = slots; j >= 0; j--) {
		wide leaf = (wide)t * ((pool - j * state) / tape);
		wide split = j < slots ? phi[j] + phi[j + 1] : 0;
		phi[j] = leaf > split ? leaf : split;
	}
}

/*
 * One slot: Phi_t = Phi_{t-1} + t b once that exceeds t a (a, b: tapes without
 * and with the slot), so Phi_t = t(t+1)/2 b + const from the present t on; the
 * maximum of t T - Phi_t lies at t = T/b or so.
 */
static wide one_slot(wide phi, int64_t t, int64_t steps, int64_t b)
{
	wide best = 0, base = phi - (wide)t * (t + 1) / 2 * b;
	for (int64_t u = steps / b - 2; u <= steps / b + 1; u++)
		if (u >= t) {
			wide value = (wide)u * steps - ((wide)u * (u + 1) / 2 * b + base);
			best = value > best ? value : best;
		}
	return best;
}

static wide extra_steps(int64_t steps, int64_t pool, int64_t state, int64_t tape)
{
	int64_t slots = pool < state + tape ? 0 : (pool - tape) / state;
	wide best = 0;
	if (tape == 0 || pool / tape >= steps || slots == 0 || slots > CELLS_MOST)
		return 0; /* nothing to recompute, nothing possible, or too large */
	wide *phi = calloc((size_t)slots + 1, sizeof *phi);
	if (!phi)
		return 0;
	for (int64_t t = 1, cells = 0; cells < CELLS_MOST; t++, cells += slots + 1) {
		wide before = phi[0];
		next_row(phi, t, pool, state, tape, slots);
		wide value = (wide)t * steps - phi[0];
		if (value < best)
			break;
		best = value;
		if (slots == 1 && phi[0] == before + phi[1]) {
			wide far = one_slot(phi[0], t, steps, (pool - state) / tape);
			best = far > best ? far : best;
			break;
		}
	}
	free(phi);
	return best;
}

double neap_bound(const struct neap_problem *problem)
{
	const struct neap_chain *c = &problem->chain;
	double least = (double)c->steps * (c->record + c->backward);
	/* The worst-case reserve is a promise of our plans, not a law: not taken off. */
	uint64_t taken = c->adjoint + neap__live_bytes(problem);
	if (problem->ntiers > 0 || problem->memory < taken || c->steps < 2)
		return least;
	uint64_t pool = problem->memory - taken, most = (uint64_t)1 << 61;
	int64_t room = (int64_t)(pool < most ? pool : most);
	wide extra;
	if (c->flags & NEAP_CHAIN_CLASSIC)
		extra = room < 1 ? 0 : neap__revolve_extra(c->steps, room);
	else
		extra = extra_steps(c->steps, room, (int64_t)c->state, (int64_t)c->tape);
	return least + (extra > 0 ? (double)extra : 0) * fmin(c->advance, c->record);
}
