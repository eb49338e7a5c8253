/* SPDX-License-Identifier: Apache-2.0 */
/* sizing.c: bytes of slots and tapes, lengths of chunks, and plans accepted or refused. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "base/checked.h"
#include "base/fail.h"
#include "base/print.h"
#include "plan/core/sizing.h"

void neap__refuse(struct neap_plan *plan, uint64_t least, const char *format, ...)
{
	va_list args;
	memset(&plan->params, 0, sizeof plan->params);
	plan->feasible = 0;
	plan->tier = 0;
	plan->least_bytes = least;
	va_start(args, format);
	neap__vprint(plan->why, sizeof plan->why, format, args);
	va_end(args);
}

uint64_t neap__fixed_bytes(const struct neap_problem *p, int tier)
{
	uint64_t bytes = p->chain.adjoint + neap__live_bytes(p) + neap__tape_reserve(p);
	return tier > 0 ? bytes + p->tiers[tier - 1].staging : bytes;
}

int64_t neap__pool_bytes(const struct neap_problem *p, int tier)
{
	uint64_t fixed = neap__fixed_bytes(p, tier);
	if (p->memory < fixed)
		return -1;
	uint64_t pool = p->memory - fixed;
	return pool > (uint64_t)INT64_MAX / 2 ? INT64_MAX / 2 : (int64_t)pool;
}

int64_t neap__places(const struct neap_problem *p, int tier)
{
	uint64_t places = p->tiers[tier - 1].capacity / p->chain.state;
	return places > (uint64_t)p->chain.steps ? p->chain.steps : (int64_t)places;
}

int64_t neap__tapes_fit(const struct neap_problem *p, int64_t bytes)
{
	if (bytes < 0)
		return 0;
	if (p->chain.flags & NEAP_CHAIN_CLASSIC)
		return 1;
	if (p->chain.tape == 0)
		return p->chain.steps;
	int64_t tapes = bytes / (int64_t)p->chain.tape;
	return tapes < p->chain.steps ? tapes : p->chain.steps;
}

/* Largest c for exactly n chunks at most, or 0. */
static int64_t chunk_for(const struct neap_problem *p, int64_t length, int64_t pool, int64_t n)
{
	int64_t c = neap__tapes_fit(p, pool - (n - 1) * (int64_t)p->chain.state);
	if (c > length)
		c = length;
	return c >= 1 && c >= neap__ceil_div(length, n) ? c : 0;
}

/*
 * n chunks fit where S n^2 - (pool + S) n + L A <= 0; fewer chunks are longer
 * ones, so the answer is at the first whole n between the roots.
 */
int64_t neap__chunk_largest(const struct neap_problem *p, int64_t length, int64_t pool)
{
	if (pool < 0)
		return 0;
	if (p->chain.flags & NEAP_CHAIN_CLASSIC)
		return (length - 1) * (int64_t)p->chain.state <= pool;
	long double s = (long double)p->chain.state, a = (long double)p->chain.tape;
	long double q = (long double)pool + s, la = (long double)length * a;
	long double root = sqrtl(fmaxl(0, q * q - 4 * s * la));
	long double low = 2 * la / (q + root), high = (q + root) / (2 * s);
	int64_t from = low > 3 ? (int64_t)fminl(low - 2, (long double)length) : 1;
	int64_t to = (int64_t)fminl(high + 3, (long double)length);
	for (int64_t n = from; n <= to && (n - 1) <= pool / (int64_t)p->chain.state; n++) {
		int64_t c = chunk_for(p, length, pool, n);
		if (c)
			return c;
	}
	return 0;
}

/*
 * (n - 1) S + ceil(L/n) A is within A of a convex function with its minimum at
 * n0 = sqrt(L A / S); the best n lies within sqrt(n0^3 / L) of it or so.
 */
int64_t neap__chunk_least(const struct neap_problem *p, int64_t length, int64_t chunks)
{
	if (p->chain.flags & NEAP_CHAIN_CLASSIC || length <= 1)
		return 1;
	if (chunks < 1)
		chunks = 1;
	long double ratio = (long double)p->chain.tape / (long double)p->chain.state;
	long double n0 = fminl(sqrtl((long double)length * ratio), (long double)length);
	if (n0 < (long double)chunks)
		n0 = (long double)chunks;
	long double w = fminl(4 + 2 * sqrtl(n0 * n0 * n0 / (long double)length), 100000);
	int64_t from = (int64_t)fmaxl(n0 - w, (long double)chunks);
	int64_t to = (int64_t)fminl(n0 + w, (long double)length);
	int64_t best = length, least = INT64_MAX;
	for (int64_t n = from; n <= to || n == from; n++) {
		int64_t c = neap__ceil_div(length, n);
		int64_t bytes = neap__bytes(p, n - 1, c);
		if (bytes < least)
			least = bytes, best = c;
	}
	return best;
}

void neap__accept(struct neap_plan *plan, const struct neap_problem *problem, int tier,
	int64_t slots, int64_t bytes)
{
	plan->feasible = 1;
	plan->tier = tier;
	plan->slots = slots;
	plan->arena_bytes = neap__fixed_bytes(problem, tier) + (uint64_t)bytes;
	plan->peak_bytes = plan->arena_bytes - neap__tape_reserve(problem);
}

void neap__tier_traffic(struct neap_plan *plan, const struct neap_problem *problem, int64_t states)
{
	struct neap_tier_use *use = &plan->tiers[plan->tier - 1];
	use->peak_bytes = use->written = use->read = (uint64_t)states * problem->chain.state;
}

int64_t neap__outbox_room(const struct neap_problem *p, int tier, int64_t bytes, int64_t states)
{
	if (p->tiers[tier - 1].flags & NEAP_TIER_SYNC)
		return 0;
	int64_t s = (int64_t)p->chain.state, room = bytes / s;
	if (room < 1)
		room = neap__pool_bytes(p, tier) >= s;
	if (room > states)
		room = states;
	return room < NEAP__OUTBOX_MOST ? room : NEAP__OUTBOX_MOST;
}

/* Of two answers: the feasible one, the faster one, the one that asks for less. */
static int better(const struct neap_plan *a, const struct neap_plan *b)
{
	if (a->feasible != b->feasible)
		return a->feasible;
	if (a->feasible)
		return a->makespan < b->makespan * (1 - 1e-12);
	return a->least_bytes && (!b->least_bytes || a->least_bytes < b->least_bytes);
}

int neap__over_tiers(struct neap_plan *plan, const struct neap_problem *problem,
	const struct neap_params *fixed,
	int (*attempt)(struct neap_plan *, const struct neap_problem *, const struct neap_params *,
		int tier))
{
	struct neap_plan best = {.size = sizeof best};
	if (problem->ntiers == 0) {
		neap__refuse(plan, 0, "needs a slow tier");
		return 0;
	}
	struct neap_params params = *fixed;
	if (problem->chain.flags & NEAP_CHAIN_CLASSIC) {
		if (params.chunk > 1 && problem->chain.steps > 1) {
			neap__refuse(plan, 0,
				"needs bytes: chunks of %lld steps keep as many tapes",
				(long long)params.chunk);
			return 0;
		}
		params.chunk = 1;
	}
	for (int tier = 1; tier <= problem->ntiers; tier++) {
		struct neap_plan trial = *plan;
		NEAP_TRY(attempt(&trial, problem, &params, tier));
		if (tier == 1 || better(&trial, &best))
			best = trial;
	}
	*plan = best;
	return 0;
}

int neap__grouped_chain(struct neap_problem *grouped, const struct neap_problem *p, int64_t g)
{
	struct neap_chain *c = &grouped->chain;
	const uint64_t most = INT64_MAX / 4;
	*grouped = *p;
	c->steps = neap__ceil_div(p->chain.steps, g);
	c->tape = neap__sat_mul(p->chain.tape, (uint64_t)g);
	c->tape_max = p->chain.tape_max ? neap__sat_add(c->tape, neap__tape_reserve(p)) : 0;
	c->tape_mean = c->log = 0;
	c->last = 0;
	c->advance *= (double)g;
	c->record *= (double)g;
	c->backward *= (double)g;
	return c->tape < most && c->tape_max < most;
}
