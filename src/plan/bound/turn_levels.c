/* SPDX-License-Identifier: Apache-2.0 */
/* turn_levels.c: tables of q_k and B_k per level, and the search for the tightest row. */
#include "plan/bound/turn_levels.h"

#include <math.h>
#include <stdlib.h>
#include "plan/bound/bound_memory.h"
#include "plan/bound/stage_bound.h"

/*
 * CELLS_MOST: entries of Phi that are computed, and that are stored: one search of `auto` asks for
 * several bounds. LEVELS_SINGLE, LEVELS_FACTOR: the levels beyond LEVELS_SINGLE are stored with
 * indices that grow by LEVELS_FACTOR. All chosen. With all levels, no bound of the settings in
 * bench/bound/gaps.py differs by more than 1e-8.
 */
#define CELLS_MOST 400000
#define LEVELS_SINGLE 40
#define LEVELS_FACTOR 1.02

/* Steps that are recorded at once in addition to j states. */
static double leaf(const struct neap__turn_levels *x, double j)
{
	return x->tape > 0 ? fmax(floor((x->pool - j * x->state) / x->tape), 0) : 1;
}

/* A new level with room for slots + 2 entries of q and of B; NULL: no memory, which is noted. */
static struct neap__turn_level *new_level(struct neap__turn_levels *x, int64_t slots)
{
	if (x->count == x->room) {
		int room = 2 * x->room + 64;
		void *more = realloc(x->level, (size_t)room * sizeof *x->level);
		if (more) {
			x->level = more;
			x->room = room;
		}
	}
	double *q = x->count < x->room ? calloc(2 * (size_t)slots + 4, sizeof *q) : NULL;
	if (!q) {
		neap__bound_note_memory();
		return NULL;
	}
	struct neap__turn_level *v = &x->level[x->count++];
	*v = (struct neap__turn_level){.d = -1, .last = slots + 1, .q = q, .sums = q + slots + 2};
	return v;
}

/*
 * Adds level t = phi->t + 1 or, without slots, any t, with all but `phi` filled in from level
 * t - 1. A cut phi has no q of slots + 1.
 */
static struct neap__turn_level *add_level(
	struct neap__turn_levels *x, const struct neap__phi_levels *phi, double t)
{
	struct neap__turn_level *v = new_level(x, phi->slots);
	if (!v)
		return NULL;
	v->t = t;
	v->last -= phi->cut;
	if (phi->cut)
		v->d = INFINITY; /* phi_levels.h: the row with Phi_t holds without late states */
	for (int64_t k = 0; k <= phi->slots; k++)
		v->q[k] = phi->slots ? (double)phi->value[k] : (t - 1) * leaf(x, 0);
	for (int64_t k = 0; k <= phi->slots; k++)
		v->sums[k + 1] = v->sums[k] + v->q[k];
	return v;
}

/* Levels without slots: Phi_t = t leaf. */
static int fill_flat(struct neap__turn_levels *x, const struct neap__phi_levels *phi)
{
	double one = leaf(x, 0);
	for (double t = 1; t <= x->steps; t = t < LEVELS_SINGLE ? t + 1 : ceil(t * LEVELS_FACTOR)) {
		struct neap__turn_level *v = add_level(x, phi, t);
		if (!v)
			return -1;
		v->phi = t * one;
		v->before = fmax(t - 2, 0) * one;
		v->sum = t * (t - 1) / 2 * one;
		v->sum_before = (t - 1) * (t - 2) / 2 * one;
		if (one >= x->steps)
			break;
	}
	return 0;
}

static int fill(struct neap__turn_levels *x, struct neap__phi_levels *phi)
{
	double next = 1, last = 0, before = 0, sum = 0;
	int64_t computed = 0, stored = 0;
	if (phi->slots == 0)
		return fill_flat(x, phi);
	while (computed < CELLS_MOST && stored < CELLS_MOST) {
		double t = (double)phi->t + 1;
		struct neap__turn_level *v = t >= next ? add_level(x, phi, t) : NULL;
		if (t >= next && !v)
			return -1;
		neap__phi_levels_next(phi);
		double now = (double)phi->value[0];
		if (v) {
			v->phi = now;
			v->before = before;
			v->sum = sum + last;
			v->sum_before = sum;
			stored += phi->slots + 1;
			next = t < LEVELS_SINGLE ? t + 1 : ceil(t * LEVELS_FACTOR);
		}
		if (now - last >= x->steps)
			break;
		before = last;
		sum += last;
		last = now;
		computed += phi->slots + 1;
	}
	return 0;
}

int neap__turn_levels_make(struct neap__turn_levels *x, int64_t pool, const struct neap_chain *c)
{
	struct neap__phi_levels phi;
	*x = (struct neap__turn_levels){.state = (double)c->state,
		.tape = (double)c->tape,
		.pool = (double)pool,
		.steps = (double)c->steps};
	if (neap__phi_levels_init(&phi, pool, c) < 0)
		return -1;
	int rc = fill(x, &phi);
	free(phi.value);
	return rc;
}

void neap__turn_levels_free(struct neap__turn_levels *x)
{
	for (int i = 0; i < x->count; i++)
		free(x->level[i].q);
	free(x->level);
}

/*
 * d for fixed j, the least (Y - B_k) / (j - k) over k < j with Y = Phi_t(P) - t leaf(j). B is
 * concave, so the quotient falls as long as it is below q_k and rises from there on.
 */
static double d_beside(
	const struct neap__turn_levels *x, const struct neap__turn_level *v, int64_t j)
{
	double y = v->phi - v->t * leaf(x, (double)j);
	int64_t low = 0, high = j - 1 < v->last ? j - 1 : v->last;
	while (low < high) {
		int64_t k = low + (high - low) / 2;
		if (y - v->sums[k] >= v->q[k] * (double)(j - k))
			high = k;
		else
			low = k + 1;
	}
	return (y - v->sums[low]) / (double)(j - low);
}

/* d of a level. Beyond the last k no tape fits, so only the largest j counts. */
static double level_d(const struct neap__turn_levels *x, const struct neap__turn_level *v)
{
	double d = INFINITY, most = fmin(floor(x->pool / x->state), x->steps);
	for (int64_t j = 1; j <= v->last && (double)j <= most; j++)
		d = fmin(d, d_beside(x, v, j));
	if (most > (double)v->last)
		d = fmin(d, d_beside(x, v, (int64_t)most));
	return fmax(d, 0);
}

struct neap__turn_row neap__turn_level_row(
	struct neap__turn_levels *x, struct neap__turn_level *v, int form, int64_t k, int late)
{
	double lambda = neap__turn_level_lambda(v, form);
	struct neap__turn_row row = {.constant = v->phi};
	if (k >= 0) {
		row.nm = v->t;
		row.nk = v->q[k];
		row.constant = v->sums[k] - (double)k * v->q[k];
	} else if (late && v->d < 0) {
		v->d = level_d(x, v);
	}
	row.late = late ? fmax(lambda - (k >= 0 ? row.nk : v->d), 0) : 0;
	return row;
}

/* The first k whose q_k is below lambda; last + 1: none. */
static int64_t first_below(const struct neap__turn_level *v, double lambda)
{
	int64_t low = 0, high = v->last + 1;
	while (low < high) {
		int64_t k = low + (high - low) / 2;
		if (v->q[k] < lambda)
			high = k;
		else
			low = k + 1;
	}
	return low;
}

static double held(const struct neap__turn_level *v, double lambda, int64_t k, double nk, double l)
{
	return v->sums[k] + (nk - (double)k) * v->q[k] + l * fmax(lambda - v->q[k], 0);
}

int64_t neap__turn_level_tightest(const struct neap__turn_level *v, int form, double nk, double l)
{
	double lambda = neap__turn_level_lambda(v, form), last = (double)v->last;
	int64_t first = first_below(v, lambda);
	/*
	 * From k to k + 1, U changes by (q_{k+1} - q_k) (nk - k - 1 - l), without l while
	 * q_{k+1} >= lambda. So U is least at nk - l or, below `first`, at nk.
	 */
	int64_t a = (int64_t)fmax(fmin(floor(nk), fmin((double)first - 1, last)), 0);
	int64_t b = (int64_t)fmin(fmax(floor(nk - l), (double)first), last);
	return held(v, lambda, a, nk, l) <= held(v, lambda, b, nk, l) ? a : b;
}
