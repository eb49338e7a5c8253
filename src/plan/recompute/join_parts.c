/* SPDX-License-Identifier: Apache-2.0 */
/*
 * join_parts.c: the parts have c = M - 1, ..., M - u slots and hold a and b steps, in any order
 * of the two chains; u is the most that may be, since one part more never costs more.
 *
 *     beta(c,t)   C(c+t, c), the steps that a part with c slots holds at level t; each of its
 *                 steps beyond beta(c,t-1) costs t advances (binomial.h)
 *
 * So once each part is assigned to a chain, the best lengths bring all parts of the chain to
 * the same level. All assignments of the smallest parts are tried. Where there are more
 * parts, each larger one goes to the chain that lacks most steps. If the result costs more
 * than all parts would in one pool (a lower bound), the recurrence G is searched in full by
 * divide and conquer, unless the chains are too long for that. The method is ours.
 */
#include "plan/recompute/join_parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include "base/fail.h"
#include "base/grow.h"
#include "plan/recompute/binomial.h"
#include "plan/core/sizing.h"

#define NEVER (INT64_MAX / 4)	 /* a cost: cannot be done; two of them still add up */
#define WORK_MOST 2e9		 /* sums of the full search */
#define SUMS_A_CELL 16		 /* of the full search: about 2 log2 of a line */
#define CHOICES_MOST 1e8	 /* cells of two bytes: 200 MB */
#define SECOND 0x8000		 /* the bit of a choice that names the second chain */
#define LEVELS_MOST 4096	 /* a part with 3 slots then holds 1.1e10 steps */
#define LEVEL_CELLS_MOST 4000000 /* cells of 16 bytes: 64 MB */
#define SMALL_PARTS 16		 /* parts of which all assignments are tried: 2^16 */
#define ASSIGNMENTS_MOST 4000000 /* assignments times parts */

typedef __int128 wide;

/* beta(c,t), at most `most`. */
static int64_t beta(int64_t c, int64_t t, int64_t most)
{
	wide n = 1;
	for (int64_t i = 1; i <= t; i++) {
		n = n * (c + i) / i;
		if (n >= most)
			return most;
	}
	return (int64_t)n;
}

/* Part i at level t: beta(c,t) steps with c = slots - 1 - i, and their advances. */
struct level {
	int64_t steps, advances;
};

struct part_assignment {
	int64_t u, slots, length[2];
	int64_t small; /* the last parts, of which all assignments are tried */
	int64_t levels;
	struct level *level; /* [levels + 1][u]; level 0: one step each */
	double best;
	uint32_t second; /* the small parts of the second chain, a bit each, in the best one */
};

static const struct level *level_of(const struct part_assignment *d, int64_t t, int64_t i)
{
	return &d->level[t * d->u + i];
}

/* Fills levels until every part alone holds the longer chain, or up to the limits. */
static int make_levels(struct part_assignment *d)
{
	int64_t longest = d->length[d->length[1] > d->length[0]], room = 0;
	int enough = 0;
	for (int64_t t = 0; !enough && t <= LEVELS_MOST && t * d->u < LEVEL_CELLS_MOST; t++) {
		if (neap__grow(&d->level, &room, t + 1, (size_t)d->u * sizeof *d->level) < 0)
			return neap__fail(-ENOMEM, "plan: out of memory");
		struct level *row = d->level + t * d->u;
		enough = 1;
		for (int64_t i = 0; i < d->u; i++) {
			row[i].steps = beta(d->slots - 1 - i, t, 2 * longest);
			row[i].advances = neap__revolve_extra(row[i].steps, d->slots - 1 - i);
			enough &= row[i].steps >= longest;
		}
		d->levels = t;
	}
	return 0;
}

/* Steps and advances of each chain's parts at a level. */
struct join_sums {
	int64_t steps[2], advances[2];
};

static void sum(const struct part_assignment *d, int64_t t, const struct neap__join_part *part,
	struct join_sums *out)
{
	*out = (struct join_sums){{0, 0}, {0, 0}};
	for (int64_t i = 0; i < d->u; i++) {
		const struct level *x = level_of(d, t, i);
		int side = part[i].second;
		out->steps[side] += x->steps;
		out->advances[side] += x->advances;
	}
}

/* The first level at which the parts of chain `side` hold it, or levels + 1. */
static int64_t level_that_holds(
	const struct part_assignment *d, const struct neap__join_part *part, int side)
{
	int64_t low = 0, high = d->levels + 1;
	struct join_sums s;
	while (low < high) {
		int64_t middle = (low + high) / 2;
		sum(d, middle, part, &s);
		if (s.steps[side] >= d->length[side])
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

/* Advance steps of an assignment whose parts are at even levels; INFINITY: it cannot be. */
static double evaluate(const struct part_assignment *d, const struct neap__join_part *part)
{
	double all = 0;
	struct join_sums s;
	for (int side = 0; side < 2; side++) {
		int64_t t = level_that_holds(d, part, side);
		if (t > d->levels)
			return INFINITY;
		sum(d, t > 0 ? t - 1 : 0, part, &s);
		if (s.steps[side] > d->length[side]) /* more parts than steps */
			return INFINITY;
		all += (double)s.advances[side] +
		       (double)t * (double)(d->length[side] - s.steps[side]);
	}
	return all;
}

/* Sets the lengths of the parts that evaluate() counted. */
static void set_lengths(const struct part_assignment *d, struct neap__join_part *part)
{
	struct join_sums s;
	for (int side = 0; side < 2; side++) {
		int64_t t = level_that_holds(d, part, side), before = t > 0 ? t - 1 : 0;
		sum(d, before, part, &s);
		int64_t left = d->length[side] - s.steps[side];
		for (int64_t i = 0; i < d->u; i++) {
			if (part[i].second != side)
				continue;
			int64_t least = level_of(d, before, i)->steps;
			int64_t more = level_of(d, t, i)->steps - least;
			more = more < left ? more : left;
			part[i].l = least + more;
			left -= more;
		}
	}
}

/* Assigns the small parts: bit i of `second` puts part i of them into the second chain. */
static void assign_small(
	const struct part_assignment *d, struct neap__join_part *part, uint32_t second)
{
	for (int64_t i = 0; i < d->small; i++)
		part[d->u - d->small + i].second = (int)(second >> i & 1);
}

/* Advance steps if all parts held one chain of a + b steps: no assignment takes fewer. */
static double pooled_bound(const struct part_assignment *d)
{
	double length = (double)d->length[0] + (double)d->length[1], before = 0, advances = 0;
	for (int64_t t = 0; t <= d->levels; t++) {
		double steps = 0, more = 0;
		for (int64_t i = 0; i < d->u; i++) {
			steps += (double)level_of(d, t, i)->steps;
			more += (double)level_of(d, t, i)->advances;
		}
		if (steps >= length)
			return advances + (double)t * (length - before);
		before = steps;
		advances = more;
	}
	return 0;
}

/* Assigns each part, the largest first, to the chain that lacks most steps. */
static void assign_large(const struct part_assignment *d, struct neap__join_part *part)
{
	double lack[2] = {(double)d->length[0], (double)d->length[1]}, all = 0;
	int64_t t = 0;
	for (; t <= d->levels; t++) {
		all = 0;
		for (int64_t i = 0; i < d->u; i++)
			all += (double)level_of(d, t, i)->steps;
		if (all >= lack[0] + lack[1])
			break;
	}
	double share = (lack[0] + lack[1]) / all;
	for (int64_t i = 0; i < d->u; i++) {
		int side = lack[1] > lack[0];
		part[i].second = side;
		lack[side] -= share * (double)level_of(d, t < d->levels ? t : d->levels, i)->steps;
	}
}

enum found {
	NONE,
	FOUND, /* an assignment; a search may find a better one */
	BEST,  /* the optimum: all parts are small, or the assignment meets the lower bound */
};

/* Tries all assignments of the small parts, and sets the parts to the best one. enum found. */
static int enumerate(struct part_assignment *d, struct neap__join_part *part)
{
	double least = pooled_bound(d);
	d->best = INFINITY;
	assign_large(d, part);
	for (uint32_t second = 0; second >> d->small == 0; second++) {
		assign_small(d, part, second);
		double advances = evaluate(d, part);
		if (advances < d->best) {
			d->best = advances;
			d->second = second;
		}
		if (d->best <= least)
			break;
	}
	if (d->best == INFINITY)
		return NONE;
	assign_small(d, part, d->second);
	set_lengths(d, part);
	return d->u > d->small && d->best > least ? FOUND : BEST;
}

/* enum found, or a negative code. */
static int assign(struct neap__join_part *part, int64_t u, int64_t a, int64_t b, int64_t slots)
{
	struct part_assignment d = {.u = u,
		.slots = slots,
		.length = {a, b},
		.small = u < SMALL_PARTS ? u : SMALL_PARTS};
	while (d.small > 0 && u << d.small > ASSIGNMENTS_MOST)
		d.small--;
	int rc = make_levels(&d);
	if (rc == 0)
		rc = enumerate(&d, part);
	free(d.level);
	return rc;
}

/* A row or column of G for one u: every `stride`-th entry, and the choices that led to them. */
struct join_line {
	const int64_t *from;
	int64_t *into;
	uint16_t *choice;
	const int64_t *cost; /* R(y,M-u) */
	int64_t stride;
	uint16_t mark;
};

/*
 * into[n] = min(into[n], cost[n-k] + from[k]) for n in [first, last], k in [low, high]. The best
 * k does not fall when n rises, since R(y,c) is convex in y: divide and conquer.
 */
static void convolve(
	const struct join_line *x, int64_t first, int64_t last, int64_t low, int64_t high)
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
	if (best < x->into[n * x->stride]) {
		x->into[n * x->stride] = best;
		x->choice[n * x->stride] = (uint16_t)((n - at) | x->mark);
	}
	convolve(x, first, n - 1, low, at < 0 ? high : at);
	convolve(x, n + 1, last, at < 0 ? low : at, high);
}

/* One part more: G(.,.,u) from G(.,.,u-1). */
static void keep_one_more(int64_t *into, uint16_t *choice, const int64_t *from, const int64_t *cost,
	int64_t a, int64_t b)
{
	int64_t width = b + 1;
	for (int64_t i = 0; i < (a + 1) * width; i++)
		into[i] = NEVER;
	for (int64_t q = 0; q <= b; q++) {
		struct join_line x = {from + q, into + q, choice + q, cost, width, 0};
		convolve(&x, 1, a, 0, a - 1);
	}
	for (int64_t p = 0; p <= a; p++) {
		int64_t at = p * width;
		struct join_line x = {from + at, into + at, choice + at, cost, 1, SECOND};
		convolve(&x, 1, b, 0, b - 1);
	}
}

/* G of the present and of the next u; R(y, M-u); the choices for all u. */
struct tables {
	int64_t *g, *next, *cost;
	uint16_t *choice; /* [u][a + 1][b + 1] */
};

static int make(struct tables *t, int64_t a, int64_t b, int64_t u)
{
	size_t cells = (size_t)(a + 1) * (size_t)(b + 1);
	int64_t longest = a > b ? a : b;
	t->g = malloc(cells * sizeof *t->g);
	t->next = malloc(cells * sizeof *t->next);
	t->cost = malloc((size_t)(longest + 1) * sizeof *t->cost);
	t->choice = malloc(cells * (size_t)u * sizeof *t->choice);
	return t->g && t->next && t->cost && t->choice ? 0
						       : neap__fail(-ENOMEM, "plan: out of memory");
}

/* Fills the choices for u = 1..most; returns the best u, 0 where there is none. */
static int64_t fill(struct tables *t, int64_t a, int64_t b, int64_t slots, int64_t most)
{
	size_t cells = (size_t)(a + 1) * (size_t)(b + 1);
	int64_t longest = a > b ? a : b, best = NEVER, best_u = 0;
	for (size_t i = 0; i < cells; i++)
		t->g[i] = i ? NEVER : 0;
	for (int64_t u = 1; u <= most; u++) {
		for (int64_t y = 1; y <= longest; y++) {
			int64_t extra = neap__revolve_extra(y, slots - u);
			t->cost[y] = extra < 0 || extra > NEVER ? NEVER : extra;
		}
		keep_one_more(t->next, t->choice + (size_t)(u - 1) * cells, t->g, t->cost, a, b);
		int64_t *old = t->g;
		t->g = t->next;
		t->next = old;
		if (t->g[cells - 1] < best) {
			best = t->g[cells - 1];
			best_u = u;
		}
	}
	return best_u;
}

static int search(struct neap__join_part *part, int64_t *count, int64_t a, int64_t b, int64_t slots,
	int64_t most)
{
	double cells = (double)(a + 1) * (double)(b + 1) * (double)most;
	struct tables t;
	if (cells * SUMS_A_CELL > WORK_MOST || cells > CHOICES_MOST || a >= SECOND || b >= SECOND)
		return NEAP_EINFEASIBLE;
	int rc = make(&t, a, b, most);
	int64_t u = rc == 0 ? fill(&t, a, b, slots, most) : 0;
	*count = u;
	for (int64_t p = a, q = b; u > 0; u--) {
		uint16_t choice = t.choice[((u - 1) * (a + 1) + p) * (b + 1) + q];
		part[u - 1].l = choice & ~SECOND;
		part[u - 1].second = (choice & SECOND) != 0;
		*(part[u - 1].second ? &q : &p) -= part[u - 1].l;
	}
	free(t.g);
	free(t.next);
	free(t.cost);
	free(t.choice);
	return rc == 0 && *count == 0 ? NEAP_EINFEASIBLE : rc;
}

int neap__join_parts(struct neap__join_part **out, int64_t *count, int64_t *advances, int64_t a,
	int64_t b, int64_t slots, int64_t most)
{
	struct neap__join_part *part = malloc((size_t)most * sizeof *part);
	if (!part)
		return neap__fail(-ENOMEM, "plan: out of memory");
	*count = most;
	int rc = assign(part, most, a, b, slots), found = rc;
	if (rc == NONE || rc == FOUND)
		rc = search(part, count, a, b, slots, most);
	if (rc == BEST || (rc == NEAP_EINFEASIBLE && found == FOUND))
		rc = 0;
	*advances = 0;
	for (int64_t i = 0; rc == 0 && i < *count; i++) {
		int64_t extra = neap__revolve_extra(part[i].l, slots - 1 - i);
		*advances =
			extra < 0 || extra > NEVER || *advances > NEVER ? NEVER : *advances + extra;
	}
	if (rc < 0) {
		free(part);
		return rc;
	}
	*out = part;
	return 0;
}
