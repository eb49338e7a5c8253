/* SPDX-License-Identifier: Apache-2.0 */
/* online_placement.c: the sums over checkpoints, and the ring of the optimal range. */
#include "plan/online/online_placement.h"

#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "base/grow.h"

/* Rows allocated at the start, chosen: with fewer slots a sweep never allocates while it runs. */
#define ROOM_FIRST 64

/* Chosen. */
#define SPACING_BITS 16	 /* minimum distance of new checkpoints: 2^-16 of the steps so far, */
#define SPACING_SHARE 32 /* and c/32 steps, so that a change updates few parts */
#define AHEAD_BITS 40	 /* neap__placement_until looks at most 2^40 steps ahead */

int neap__placement_open(struct neap__placement *x, struct neap__leaf_revolve *costs)
{
	*x = (struct neap__placement){.costs = costs, .most = costs->slots, .count = 1, .slots = 1};
	NEAP_TRY(neap__placement_reserve(x, ROOM_FIRST));
	x->kept[0] = (struct neap__kept_state){0};
	return 0;
}

void neap__placement_free(struct neap__placement *x)
{
	free(x->kept);
	x->kept = NULL;
}

static int64_t cost(const struct neap__placement *x, int64_t l, int64_t j)
{
	return neap__leaf_revolve_cost(x->costs, l, j);
}

/* Entry i with its sums, from entry i - 1; part i ends at step `end`. */
static struct neap__kept_state row(const struct neap__placement *x, int64_t i, int64_t end)
{
	struct neap__kept_state r = x->kept[i];
	int64_t l = end - r.t;
	r.here = cost(x, l, i);
	if (i == 0)
		return r;
	const struct neap__kept_state *last = &x->kept[i - 1];
	r.before = cost(x, l, i - 1);
	r.gain = (i > 1 ? last->gain : 0) + r.before - r.here;
	int64_t merged = cost(x, end - last->t, i - 1) - last->here - r.here - r.gain;
	r.least = merged;
	r.first = i;
	if (i > 1 &&
		(last->least < merged || (last->least == merged && x->most < 2 * SPACING_SHARE))) {
		r.least = last->least;
		r.first = last->first;
	}
	return r;
}

/* Returns 1 if a checkpoint is due at t. *evicted: the entry to drop, 0: none. */
static int due(const struct neap__placement *x, int64_t t, int64_t *evicted)
{
	int64_t k = x->count - 1, l = t - x->kept[k].t;
	*evicted = 0;
	if (x->ring)
		return t > x->newest;
	if (l < 1)
		return 0;
	int64_t more = cost(x, l + 1, k) - cost(x, l, k);
	if (k + 1 < x->most)
		return more > 0;
	if (k == 0 || l < t >> SPACING_BITS || l < x->most / SPACING_SHARE)
		return 0;
	struct neap__kept_state last = row(x, k, t);
	*evicted = last.first;
	return last.least + last.gain <= more;
}

int neap__placement_due(const struct neap__placement *x, int64_t t)
{
	int64_t evicted;
	return due(x, t, &evicted);
}

int64_t neap__placement_until(const struct neap__placement *x, int64_t t)
{
	int64_t evicted, low = t + 1, step = 1;
	if (due(x, low, &evicted))
		return low;
	for (int bits = 0; bits < AHEAD_BITS && !due(x, low + step, &evicted); bits++) {
		low += step;
		step *= 2;
	}
	while (step > 1) { /* not due at low; due at low + step, unless that is too far */
		int64_t half = step / 2;
		if (!due(x, low + half, &evicted))
			low += half;
		step -= half;
	}
	return low + 1;
}

int neap__placement_reserve(struct neap__placement *x, int64_t room)
{
	int rc = neap__grow(&x->kept, &x->room, room, sizeof *x->kept);
	return rc < 0 ? neap__fail(rc, "schedule: out of memory") : 0;
}

int64_t neap__placement_push(struct neap__placement *x, int64_t t)
{
	NEAP_TRY(neap__placement_reserve(x, x->count + 1));
	int64_t slot = x->count < x->slots ? x->kept[x->count].slot : x->slots++;
	x->kept[x->count++] = (struct neap__kept_state){.t = t, .slot = slot};
	return slot;
}

/* Entry i of the ring, counted from its head. */
static struct neap__kept_state *ring_entry(const struct neap__placement *x, int64_t i)
{
	int64_t base = x->full + 1, length = x->count - base;
	return &x->kept[base + (x->head + i) % length];
}

static void reverse(struct neap__kept_state *k, int64_t n)
{
	for (int64_t i = 0; i < n / 2; i++) {
		struct neap__kept_state swap = k[i];
		k[i] = k[n - 1 - i];
		k[n - 1 - i] = swap;
	}
}

/* Rotates the ring so that it begins at its first entry: three reversals. */
static void unroll_ring(struct neap__placement *x)
{
	int64_t base = x->full + 1, length = x->count - base;
	reverse(x->kept + base, x->head);
	reverse(x->kept + base + x->head, length - x->head);
	reverse(x->kept + base, length);
	x->head = 0;
}

/* Updates the sums of the entries from `from` on, except the last. */
static int update_rows(struct neap__placement *x, int64_t from)
{
	for (int64_t i = from; i + 1 < x->count; i++) {
		int64_t end = x->kept[i + 1].t;
		NEAP_TRY(neap__leaf_revolve_reach(x->costs, 3 * (end - x->kept[i].t), i));
		x->kept[i] = row(x, i, end);
	}
	return 0;
}

void neap__placement_settle(struct neap__placement *x)
{
	if (x->ring)
		unroll_ring(x);
	x->ring = 0;
}

/*
 * Replaces the first checkpoint of the ring by the state at t; its part is joined to the growing
 * part. When that part has its full length, the next part grows.
 */
static int keep_in_ring(struct neap__placement *x, int64_t t, struct neap__kept_state *evicted)
{
	struct neap__kept_state *first = ring_entry(x, 0);
	*evicted = *first;
	first->t = x->newest = t;
	x->head = (x->head + 1) % (x->count - x->full - 1);
	if (ring_entry(x, 0)->t - x->kept[x->full].t <= x->most - x->full)
		return 0;
	unroll_ring(x);
	x->full++;
	if (x->full + 1 < x->count)
		return 0;
	x->ring = 0;
	return update_rows(x, 0);
}

int neap__placement_forget_first(struct neap__placement *x)
{
	x->count--;
	memmove(x->kept, x->kept + 1, (size_t)x->count * sizeof *x->kept);
	return update_rows(x, 0);
}

int neap__placement_set_first(struct neap__placement *x, const struct neap__kept_state *first)
{
	x->kept[0].t = first->t;
	x->kept[0].slot = first->slot;
	return update_rows(x, 0);
}

int neap__placement_keep(struct neap__placement *x, int64_t t, struct neap__kept_state *evicted)
{
	int64_t at, from = x->count - 1;
	if (x->ring)
		return keep_in_ring(x, t, evicted);
	(void)due(x, t, &at);
	*evicted = (struct neap__kept_state){.slot = -1};
	if (at > 0) {
		*evicted = x->kept[at];
		x->count--;
		memmove(x->kept + at, x->kept + at + 1, (size_t)(x->count - at) * sizeof *x->kept);
		x->kept[x->count].slot = evicted->slot;
		from = at - 1;
	}
	int64_t slot = neap__placement_push(x, t);
	NEAP_TRY((int)(slot < 0 ? slot : 0));
	x->newest = t;
	if (at == 0 && !x->first_leaves && x->count == x->most && x->count > 1 &&
		neap__leaf_revolve_fit(x->costs, 0) == 1)
		x->ring = 1;
	return update_rows(x, from);
}
