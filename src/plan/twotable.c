/* SPDX-License-Identifier: Apache-2.0 */
/*
 * twotable: sizes are rounded up to levels, so whatever a table calls possible is;
 * `need` has the least bytes exactly, so that nothing possible is refused. Choices
 * are not stored but found again on the way down, where bytes are counted exactly.
 * Most splits are worse at every level than what is known, which a few looks tell.
 */
#include "twotable.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "stages.h"

#define LEVELS 500	    /* where sizes do not divide the budget */
#define LEVELS_MOST 20000   /* where they do */
#define CELLS_MOST 30000000 /* floats in both tables */
#define WORK_MOST 3e9
#define TILE 8 /* columns done together: they share the rows of their left parts */
#define NEVER (INT64_MAX / 4)

/* Pairs i <= t in columns of t. */
static int64_t pair(int64_t i, int64_t t)
{
	return t * (t + 1) / 2 + i;
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

/* The sizes of a split at j; running over j, which only grows. */
struct split {
	const struct neap_chain *c;
	int64_t i, t, j;
	int64_t advance_peak, record_peak; /* P(i,j,t,0) and P(i,j,t,1) */
	double advance, record;		   /* seconds up to j */
	double before;			   /* f_i + .. + f_{j-1} */
	int64_t widest;
};

static struct split split_start(const struct neap_chain *c, int64_t i, int64_t t)
{
	return (struct split){.c = c, .i = i, .t = t, .j = i};
}

static void split_next(struct split *x)
{
	const struct neap_stages *s = x->c->stages;
	int64_t k = x->j++, kept = k > x->i ? (int64_t)s->state[k] : 0;
	int64_t output = (int64_t)s->state[k + 1], tape = (int64_t)s->tape[k];
	int64_t g = x->t < x->c->steps ? neap__stage_gradient(x->c, x->t + 1) : 0;
	int64_t beside = neap__tape_holds_output(s) ? 0 : output;
	x->record_peak = g + larger(x->widest, kept + tape + beside + neap__stage_record_tmp(s, k));
	x->widest = larger(x->widest, kept + output + neap__stage_advance_tmp(s, k));
	x->advance_peak = g + x->widest;
	x->record = x->before + neap__stage_record(s, k);
	x->before += s->advance[k];
	x->advance = x->before;
}

static int64_t tape_of(const struct neap_chain *c, int64_t i)
{
	return (int64_t)c->stages->tape[i];
}

/* A_j, and B_j = what keeping it and x_j takes. */
static int64_t resume_bytes(const struct neap_chain *c, int64_t j)
{
	const struct neap_stages *s = c->stages;
	return tape_of(c, j - 1) + (neap__tape_holds_output(s) ? 0 : (int64_t)s->state[j]);
}

static int64_t leaf_need(const struct neap_chain *c, int64_t i, int taped)
{
	const struct neap_stages *s = c->stages;
	int64_t g = neap__stage_gradient(c, i);
	if (i == c->steps)
		return g + neap__stage_backward_tmp(s, i);
	int64_t after = neap__stage_gradient(c, i + 1);
	int64_t tape = taped ? 0 : tape_of(c, i);
	int64_t back = g + after + tape + neap__stage_backward_tmp(s, i);
	if (!neap__tape_holds_output(s) && !neap__backward_needs_input(s))
		back -= (int64_t)s->state[i];
	if (taped)
		return larger(back, 0);
	int64_t output = neap__tape_holds_output(s) ? 0 : (int64_t)s->state[i + 1];
	return larger(after + tape + output + neap__stage_record_tmp(s, i), back);
}

static double leaf_cost(const struct neap_chain *c, int64_t i, int taped)
{
	const struct neap_stages *s = c->stages;
	return s->backward[i] + (taped || i == c->steps ? 0 : neap__stage_record(s, i));
}

/* The tape of t is there and backward needs nothing else. */
static int reverses_first(const struct neap_chain *c, int taped)
{
	return taped && !neap__backward_needs_input(c->stages);
}

/* Least bytes of D(i,t,.) then, i < t. */
static int64_t first_need(const struct neap__twotable *x, int64_t i, int64_t t)
{
	const struct neap_chain *c = x->chain;
	int64_t back = neap__stage_gradient(c, t) + neap__stage_gradient(c, t + 1) +
		       neap__stage_backward_tmp(c->stages, t);
	return larger(back, x->need_c[pair(i, t - 1)] - tape_of(c, t));
}

/* Least bytes of a split at x->j. */
static int64_t split_need(
	const struct neap__twotable *x, const struct split *s, int taped, int record)
{
	const struct neap_chain *c = x->chain;
	int64_t j = s->j, right = (taped ? x->need_d : x->need_c)[pair(j, s->t)];
	int64_t left = (record ? x->need_d : x->need_c)[pair(s->i, j - 1)];
	int64_t back = taped ? tape_of(c, s->t) : 0;
	if (!record)
		return larger(
			s->advance_peak, larger(right + (int64_t)c->stages->state[j], left - back));
	return larger(s->record_peak,
		larger(right + resume_bytes(c, j), left + tape_of(c, j - 1) - back));
}

static int64_t need(const struct neap__twotable *x, int64_t i, int64_t t, int taped)
{
	int64_t least = NEVER;
	if (i == t)
		return leaf_need(x->chain, i, taped);
	if (reverses_first(x->chain, taped))
		return first_need(x, i, t);
	for (struct split s = split_start(x->chain, i, t); s.j < t;) {
		split_next(&s);
		for (int record = 0; record < 2; record++) {
			int64_t bytes = split_need(x, &s, taped, record);
			least = bytes < least ? bytes : least;
		}
	}
	return larger(least, 0);
}

static int fill_need(struct neap__twotable *x)
{
	size_t pairs = (size_t)pair(0, x->n + 1);
	x->need_c = malloc(pairs * sizeof *x->need_c);
	x->need_d = malloc(pairs * sizeof *x->need_d);
	if (!x->need_c || !x->need_d)
		return neap__fail(-ENOMEM, "plan: out of memory");
	for (int64_t t = 0; t <= x->n; t++)
		for (int64_t i = t; i >= 0; i--) {
			x->need_c[pair(i, t)] = need(x, i, t, 0);
			x->need_d[pair(i, t)] = t < x->n ? need(x, i, t, 1) : NEVER;
		}
	return 0;
}

/* Levels that hold so many bytes; levels + 1: more than there are. */
static int64_t up(const struct neap__twotable *x, int64_t bytes)
{
	double exact = (double)bytes * x->per_byte;
	if (exact > (double)x->levels)
		return (double)bytes > (double)x->levels * x->unit ? x->levels + 1 : x->levels;
	int64_t levels = (int64_t)exact;
	levels -= levels > 0 && (double)(levels - 1) * x->unit >= (double)bytes;
	return levels + ((double)levels * x->unit < (double)bytes);
}

/* C or D of a pair. */
static float *row_of(const struct neap__twotable *x, int taped, int64_t i, int64_t t)
{
	return x->rows + (2 * pair(i, t) + taped) * (x->levels + 1);
}

/* best[m] = min(best[m], cost + right[m] + left[m]) */
static void relax(float *restrict best, const float *restrict right, const float *restrict left,
	int64_t from, int64_t to, float cost)
{
	for (int64_t m = from; m <= to; m++) {
		float value = cost + right[m] + left[m];
		best[m] = value < best[m] ? value : best[m];
	}
}

/*
 * The last level at which a split may be better than what is known: both fall with
 * memory, so where best[m] is not above the split's seconds at a higher level, m is
 * out. Below `from` if there is none.
 */
static int64_t last_better(const float *best, const float *right, const float *left, int64_t from,
	int64_t to, float cost)
{
	while (to >= from) {
		float reached = cost + right[to] + left[to];
		if (best[to] > reached)
			break;
		int64_t low = from, high = to; /* best is above it below low, not from high on */
		while (low < high) {
			int64_t middle = (low + high) / 2;
			if (best[middle] > reached)
				low = middle + 1;
			else
				high = middle;
		}
		to = low - 1;
	}
	return to;
}

/* One split, advancing or recording up to j. */
static void relax_split(struct neap__twotable *x, const struct split *s, int taped, int record,
	int64_t tape, float *best)
{
	int64_t by = record ? x->by_tape[s->j] : x->by_state[s->j];
	int64_t from = larger(by, up(x, record ? s->record_peak : s->advance_peak) + tape);
	const float *right = row_of(x, taped, s->j, s->t) - by;
	const float *left = row_of(x, record, s->i, s->j - 1);
	float cost = (float)(record ? s->record : s->advance);
	relax(best, right, left, from, last_better(best, right, left, from, x->levels, cost), cost);
}

/* A row, those of shorter parts being there. */
static void fill_row(struct neap__twotable *x, int64_t i, int64_t t, int taped)
{
	const struct neap_chain *c = x->chain;
	float *best = row_of(x, taped, i, t);
	int64_t tape = taped ? up(x, tape_of(c, t)) : 0;
	for (int64_t m = 0; m <= x->levels; m++)
		best[m] = INFINITY;
	if (i == t) {
		for (int64_t m = up(x, leaf_need(c, i, taped)) + tape; m <= x->levels; m++)
			best[m] = (float)leaf_cost(c, i, taped);
		return;
	}
	if (reverses_first(c, taped)) {
		const float *left = row_of(x, 0, i, t - 1);
		for (int64_t m = up(x, first_need(x, i, t)) + tape; m <= x->levels; m++)
			best[m] = (float)c->stages->backward[t] + left[m];
		return;
	}
	for (struct split s = split_start(c, i, t); s.j < t;) {
		split_next(&s);
		relax_split(x, &s, taped, 1, tape, best);
		relax_split(x, &s, taped, 0, tape, best);
	}
}

/* The greatest common divisor of all sizes. */
static uint64_t divisor(const struct neap_chain *c)
{
	const struct neap_stages *s = c->stages;
	const uint64_t *lists[] = {
		s->state, s->tape, s->advance_tmp, s->record_tmp, s->backward_tmp};
	const int64_t lengths[] = {c->steps + 1, c->steps, c->steps, c->steps, c->steps + 1};
	uint64_t d = c->adjoint;
	for (int k = 0; k < 5; k++)
		for (int64_t i = 0; lists[k] && i < lengths[k]; i++)
			for (uint64_t b = lists[k][i]; b;) {
				uint64_t rest = d % b;
				d = b;
				b = rest;
			}
	return d ? d : 1;
}

static void choose_levels(struct neap__twotable *x, int64_t bytes)
{
	double n = (double)x->n + 1, pairs = n * (n + 1) / 2, exact;
	double most = fmin(LEVELS_MOST, CELLS_MOST / (2 * pairs) - 1);
	most = fmin(most, WORK_MOST / (n * n * n * 2 / 3));
	uint64_t all = 0, d = divisor(x->chain);
	const struct neap_stages *s = x->chain->stages;
	for (int64_t i = 0; i <= x->n; i++) /* more than all there is needs no level */
		all += s->state[i] * 2 + (i < x->n ? s->tape[i] : 0) +
		       (uint64_t)neap__stage_backward_tmp(s, i);
	for (int64_t i = 0; i < x->n; i++)
		all += (uint64_t)(neap__stage_advance_tmp(s, i) + neap__stage_record_tmp(s, i));
	all += 2 * x->chain->adjoint;
	if ((uint64_t)bytes > all)
		bytes = (int64_t)all;
	exact = floor((double)bytes / (double)d);
	if (exact <= fmax(most, 8)) {
		x->levels = (int64_t)exact;
		x->unit = (double)d;
		return;
	}
	x->levels = (int64_t)fmax(8, fmin(LEVELS, most));
	x->unit = (double)bytes / (double)x->levels;
}

int neap__twotable_fill(struct neap__twotable *x, const struct neap_chain *chain, uint64_t memory)
{
	memset(x, 0, sizeof *x);
	x->chain = chain;
	x->n = chain->steps;
	NEAP_TRY(fill_need(x));
	choose_levels(x, (int64_t)(memory - chain->stages->state[0]));
	x->per_byte = 1 / x->unit;
	size_t cells = (size_t)pair(0, x->n + 1) * (size_t)(x->levels + 1);
	x->rows = malloc(2 * cells * sizeof *x->rows);
	x->by_state = malloc((size_t)(x->n + 1) * sizeof *x->by_state);
	x->by_tape = malloc((size_t)(x->n + 1) * sizeof *x->by_tape);
	if (!x->rows || !x->by_state || !x->by_tape)
		return neap__fail(-ENOMEM, "plan: out of memory");
	for (int64_t j = 1; j <= x->n; j++) {
		x->by_state[j] = up(x, (int64_t)chain->stages->state[j]);
		x->by_tape[j] = up(x, resume_bytes(chain, j));
	}
	for (int64_t first = 0; first <= x->n; first += TILE) {
		int64_t last = first + TILE - 1 < x->n ? first + TILE - 1 : x->n;
		for (int64_t i = last; i >= 0; i--)
			for (int64_t t = larger(i, first); t <= last; t++) {
				fill_row(x, i, t, 0);
				if (t < x->n)
					fill_row(x, i, t, 1);
			}
	}
	return 0;
}

void neap__twotable_free(struct neap__twotable *x)
{
	free(x->need_c);
	free(x->need_d);
	free(x->by_state);
	free(x->by_tape);
	free(x->rows);
	memset(x, 0, sizeof *x);
}

uint64_t neap__twotable_least(const struct neap_chain *chain)
{
	struct neap__twotable x = {.chain = chain, .n = chain->steps};
	uint64_t least = UINT64_MAX;
	if (x.n <= NEAP__TWOTABLE_STAGES && fill_need(&x) == 0)
		least = chain->stages->state[0] + (uint64_t)x.need_c[pair(0, x.n)];
	neap__twotable_free(&x);
	return least;
}

/* What the tables say of a part in so many bytes. */
static double value(const struct neap__twotable *x, int taped, int64_t i, int64_t t, int64_t bytes)
{
	int64_t all = bytes + (taped ? tape_of(x->chain, t) : 0);
	int64_t level = (int64_t)((double)all / x->unit * (1 + 1e-14));
	if (bytes < (taped ? x->need_d : x->need_c)[pair(i, t)])
		return INFINITY;
	return row_of(x, taped, i, t)[level > x->levels ? x->levels : level];
}

struct neap__twotable_choice neap__twotable_choose(
	const struct neap__twotable *x, int taped, int64_t i, int64_t t, int64_t bytes)
{
	const struct neap_chain *c = x->chain;
	struct neap__twotable_choice best = {0}, tight = {0};
	int64_t back = taped ? tape_of(c, t) : 0, least = NEVER;
	double cost = INFINITY;
	for (struct split s = split_start(c, i, t); s.j < t;) {
		split_next(&s);
		for (int record = 0; record < 2; record++) {
			struct neap__twotable_choice k = {s.j, record, bytes, bytes + back};
			int64_t takes = split_need(x, &s, taped, record);
			k.right -= record ? resume_bytes(c, s.j) : (int64_t)c->stages->state[s.j];
			k.left -= record ? tape_of(c, s.j - 1) : 0;
			if (takes < least) {
				least = takes;
				tight = k;
			}
			if (takes > bytes)
				continue;
			double all = (record ? s.record : s.advance) +
				     value(x, taped, s.j, t, k.right) +
				     value(x, record, i, s.j - 1, k.left);
			if (all < cost) {
				cost = all;
				best = k;
			}
		}
	}
	return cost < INFINITY ? best : tight;
}
