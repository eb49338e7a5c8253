/* SPDX-License-Identifier: Apache-2.0 */
/*
 * online_sizes.c: how much of what is kept and sent while a chain of unknown length goes forward
 * (online_tier.h), from the costs of its steps and of the tier.
 *
 * A run of `send` steps whose tapes are sent and of J steps, a leaf, that are recomputed writes
 * one state: with w seconds to write a tape, W a state, f and r seconds a step,
 *
 *     W + send w <= J f + send r
 *
 * and the same for reads, with backward steps in place of forward ones.
 */
#include "plan/online/online_schedule.h"
#include "plan/online/online_tier.h"
#include "plan/core/sizing.h"

/* All values are chosen. */
#define PIECES 32	/* parts in which the tapes that are kept in passing go */
#define RING_MOST 8	/* times R steps, after which tapes are not kept in passing */
#define SEND_LEAST 50	/* send >= J / SEND_LEAST, or none is sent */
#define CHUNK_SHARE 16	/* of the pool: a chunk of tapes at most */
#define CHUNKS_LEAST 4	/* that the pool holds, or none is sent */
#define MARGIN 0.94	/* of the tier's time that the tapes may take */
#define PLACES_WORTH 64 /* states: a tier that holds fewer is taken only if none holds more */
#define STATES_SHARE 4	/* of a bounded tier that sends tapes: a part for states */

/* The tier that is written fastest among those that have room for many states. */
static int best_tier(const struct neap_problem *p)
{
	int best = 0;
	for (int i = 1; i <= p->ntiers; i++) {
		const struct neap_tier_spec *a = &p->tiers[i - 1];
		const struct neap_tier_spec *b = best ? &p->tiers[best - 1] : NULL;
		uint64_t most = p->chain.state * PLACES_WORTH, bytes = p->chain.state;
		uint64_t here = a->capacity < most ? a->capacity : most;
		uint64_t there = b ? b->capacity < most ? b->capacity : most : 0;
		int faster = b && neap_tier_seconds(a, 1, bytes) < neap_tier_seconds(b, 1, bytes);
		if (a->capacity >= p->chain.state && (here > there || (here == there && faster)))
			best = i;
	}
	return best;
}

/* Steps of a run that can be sent while `fixed` seconds go by, `spare` more with each of them. */
static int64_t fit(double fixed, double each, double spare)
{
	if (each <= spare * MARGIN)
		return INT64_MAX;
	double most = fixed > 0 ? fixed / (each - spare) : 0;
	return most < 1e15 ? (int64_t)most : INT64_MAX;
}

static void size_sending(struct neap__online_sizes *x, const struct neap_problem *p)
{
	const struct neap_chain *c = &p->chain;
	const struct neap_tier_spec *tier = &p->tiers[x->tier - 1];
	int64_t tapes = x->pool / x->tape, j = (x->pool - x->state) / x->tape;
	if (c->flags & NEAP_CHAIN_TAPES_STAY || tier->flags & NEAP_TIER_SYNC || c->tape == 0)
		return;
	x->chunk = tapes / CHUNK_SHARE < j / 4 ? tapes / CHUNK_SHARE : j / 4;
	if (x->chunk > NEAP__ONLINE_RECENT / 8)
		x->chunk = NEAP__ONLINE_RECENT / 8;
	if (x->chunk < 1)
		x->chunk = 1;
	if (tapes < CHUNKS_LEAST * x->chunk)
		return;
	uint64_t bytes = (uint64_t)x->chunk * neap__tape_sent(c);
	double q = (double)x->chunk, w = neap_tier_seconds(tier, 1, bytes) / q;
	double rd = neap_tier_seconds(tier, 0, bytes) / q;
	double up = (double)j * c->advance * MARGIN - x->write_state;
	double down = (double)j * (c->record + c->backward) * MARGIN -
		      neap_tier_seconds(tier, 0, c->state);
	int64_t writes = fit(up, w, c->record), reads = fit(down, rd, c->backward);
	int64_t send = writes < reads ? writes : reads;
	uint64_t room = tier->capacity;
	if (send < 1 || send < j / SEND_LEAST)
		return;
	int64_t chunks = NEAP__ONLINE_PIECES / x->chunk;
	if (chunks > NEAP__ONLINE_CHUNKS)
		chunks = NEAP__ONLINE_CHUNKS;
	uint64_t most = (room - room / STATES_SHARE) / ((uint64_t)x->chunk * c->tape);
	x->chunks = most < (uint64_t)chunks ? (int64_t)most : chunks;
	x->send = x->chunks > 0 ? send : 0;
	x->write_chunk = w * q;
	x->read_chunk = rd * q;
}

int64_t neap__online_ring_room(const struct neap__online_sizes *x)
{
	int64_t least = x->send && x->chunk < x->piece ? x->chunk : x->piece;
	return 2 * (x->recent / least) + 8;
}

void neap__online_sizes(struct neap__online_sizes *x, const struct neap_problem *p)
{
	const struct neap_chain *c = &p->chain;
	*x = (struct neap__online_sizes){0};
	int tier = c->flags & NEAP_CHAIN_CLASSIC ? 0 : best_tier(p);
	if (tier == 0)
		return;
	const struct neap_tier_spec *spec = &p->tiers[tier - 1];
	x->tier = tier;
	x->pool = neap__pool_bytes(p, tier);
	x->state = (int64_t)c->state;
	x->tape = c->tape ? (int64_t)c->tape : 1;
	if (x->pool > INT64_MAX / 8)
		x->pool = INT64_MAX / 8;
	x->write_state = neap_tier_seconds(spec, 1, c->state);
	x->read_state = neap_tier_seconds(spec, 0, c->state);
	size_sending(x, p);
	int64_t buffers = 2 * x->chunk * x->tape;
	if (x->send && (x->pool - buffers - x->tape) / x->state - 1 < 2)
		x->send = 0;
	if (x->send == 0)
		x->chunk = x->chunks = buffers = 0, x->write_chunk = x->read_chunk = 0;
	int64_t states = (x->pool - buffers - x->tape) / x->state - 1;
	x->slots = states < NEAP__ONLINE_SLOTS ? states : NEAP__ONLINE_SLOTS;
	if (x->slots < 2) {
		x->tier = 0;
		return;
	}
	uint64_t room = spec->capacity / (x->send ? STATES_SHARE : 1) / c->state;
	x->states = room < NEAP__ONLINE_STATES ? (int64_t)room : NEAP__ONLINE_STATES;
	x->recent = (x->pool - 2 * x->state) / x->tape;
	if (x->recent > NEAP__ONLINE_RECENT)
		x->recent = NEAP__ONLINE_RECENT;
	x->piece = x->recent / PIECES > 1 ? x->recent / PIECES : 1;
	double dearer = c->record - c->advance, times = RING_MOST;
	if (dearer * (RING_MOST - 1) > c->advance)
		times = 1 + c->advance / dearer;
	x->ring_until = (int64_t)(times * (double)x->recent);
	if (x->states < 2)
		x->tier = 0;
}
