/* SPDX-License-Identifier: Apache-2.0 */
/*
 * online_records.c: records on the tier that are given up, and which states are read, once the
 * length is known. Going forward states are written as the tier has time, the first ones of a chain
 * close to each other. A part that is reversed faster than the state below it is read waits for it.
 * Then it may be faster to leave that state out, and to reverse both parts as one, with more
 * recomputation.
 *
 *     s_0 < s_1 < ...   states on the tier, s_0 = 0; B: the first state that is in memory
 *     C(l)      seconds to reverse l steps from their first state (leaf_revolve.h)
 *     tau       seconds to read a state
 *     g_j       least seconds to reverse all steps below s_j
 *
 *     g_0 = 0,   g_j = min_{i < j} ( max( C(s_j - s_i), tau if i > 0 ) + g_i )
 *
 * s_i is looked for among the LOOK_BACK states below s_j. Ours.
 */
#include <math.h>
#include <string.h>
#include "base/fail.h"
#include "plan/online/online_tier.h"

/* Chosen: the work grows with LOOK_BACK for each state on the tier. */
#define LOOK_BACK 24
#define KNOWN 64 /* costs that are remembered, a power of two: most states are as far apart */

static void forget_tapes(struct neap_schedule *s, int64_t t, int64_t place)
{
	neap__emit(s, &(struct neap_action){.kind = NEAP_FORGET,
			      .payload = NEAP_TAPE,
			      .tier = (uint16_t)s->plan.tier,
			      .t0 = t,
			      .place = place});
}

void neap__online_give_up(
	struct neap__online_tier *x, struct neap_schedule *s, const struct neap__online_record *r)
{
	if (r->t0 == r->t1) {
		neap__forget(s, r->t0, r->place);
		x->free_places[x->places_free++] = (int32_t)r->place;
	} else {
		forget_tapes(s, r->t0, r->place);
	}
}

void neap__online_forget(struct neap__online_tier *x, struct neap_schedule *s, int64_t i)
{
	neap__online_give_up(x, s, &x->records[i]);
	x->nrecords--;
	memmove(&x->records[i], &x->records[i + 1], (size_t)(x->nrecords - i) * sizeof *x->records);
}

/* What is chosen for, and costs that were asked for before. */
struct choice {
	struct neap__online_tier *x;
	int64_t length[KNOWN];
	double seconds[KNOWN];
};

/* C(l). */
static double reversal(struct choice *c, int64_t l)
{
	const struct neap_chain *chain = c->x->chain;
	int64_t i = l & (KNOWN - 1);
	if (c->length[i] != l) {
		c->length[i] = l;
		c->seconds[i] =
			(double)l * (chain->record + chain->backward) +
			(double)neap__leaf_revolve_cost(&c->x->costs, l, 0) * chain->advance;
	}
	return c->seconds[i];
}

/* g of a boundary at step t above records [0, n), and the record that is read for it. */
static double below(struct choice *c, int64_t t, int64_t n, int64_t *from)
{
	const struct neap__online_record *r = c->x->records;
	double least = INFINITY;
	for (int64_t i = n - 1; i >= 0 && i >= n - LOOK_BACK; i--) {
		double part = fmax(reversal(c, t - r[i].t0), i > 0 ? c->x->sizes.read_state : 0);
		double all = part + (i > 0 ? r[i].end : 0);
		if (all < least) {
			least = all;
			*from = i;
		}
	}
	return least;
}

/* The first step that needs no state of the tier but those that lie below it and are written. */
static int64_t boundary(struct neap__online_tier *x, int64_t *n)
{
	const struct neap__placement *list = &x->placement;
	int64_t t = x->steps;
	for (int64_t i = x->ring_count - 1; i >= 0 && neap__online_ring(x, i)->t1 == t; i--)
		t = neap__online_ring(x, i)->t0;
	for (int64_t i = list->count - 1; i >= 0; i--)
		if (list->kept[i].slot >= 0 && list->kept[i].t < t)
			t = list->kept[i].t;
	*n = 0;
	while (*n < x->nrecords && x->records[*n].t0 < t && x->records[*n].ticket < 0)
		++*n;
	return *n < x->nrecords && x->records[*n].t0 < t ? x->records[*n].t0 : t;
}

/* Tapes lie below step t, on the tier or in memory: then parts are shorter than between states. */
static int some_tapes(struct neap__online_tier *x, int64_t t, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		if (x->records[i].t0 < x->records[i].t1)
			return 1;
	for (int64_t i = 0; i < x->ring_count; i++)
		if (neap__online_ring(x, i)->send >= 0 && neap__online_ring(x, i)->t0 < t)
			return 1;
	return 0;
}

/* Some part is reversed faster than the state below it is read. */
static int some_wait(struct choice *c, int64_t t, int64_t n)
{
	const struct neap__online_record *r = c->x->records;
	for (int64_t i = n - 1; i > 0; i--)
		if (reversal(c, (i + 1 < n ? r[i + 1].t0 : t) - r[i].t0) < c->x->sizes.read_state)
			return 1;
	return 0;
}

int neap__online_choose_records(struct neap__online_tier *x, struct neap_schedule *s)
{
	struct choice c = {.x = x};
	struct neap__online_record *r = x->records;
	int64_t n, chosen, left, t = boundary(x, &n);
	if (n < 2 || some_tapes(x, t, n))
		return 0;
	NEAP_TRY(neap__leaf_revolve_reach(&x->costs, t, 0));
	if (!some_wait(&c, t, n))
		return 0;
	for (int64_t j = 1; j < n; j++)
		r[j].end = below(&c, r[j].t0, j, &r[j].slot);
	below(&c, t, n, &chosen);
	left = n;
	for (int64_t i = n - 1; i >= 0; i--) {
		int64_t next = r[i].slot;
		r[i].slot = -1;
		r[i].end = 0;
		if (i == chosen) {
			r[--left] = r[i];
			chosen = next;
		} else {
			neap__online_give_up(x, s, &r[i]);
		}
	}
	for (int64_t i = left; i < x->nrecords; i++)
		r[i - left] = r[i];
	x->nrecords -= left;
	return 0;
}
