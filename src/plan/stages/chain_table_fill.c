/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain_table_fill.c: fills the tables of chain_table.h. The work goes up in chunks of levels,
 * since a chunk needs only the same or lower chunks of shorter parts. The values of a row fall
 * with memory, so a split whose value at the last level of half a chunk is not below the best
 * value known at its first cannot be better in that half. The splits that were best for
 * neighbouring parts are tried first; the splits that are left are done four at a time. Where
 * all tapes have room, no split can be better than recording everything. Compiled once for
 * each kind of vectors.
 */
#include "plan/stages/chain_table.h"

#include <float.h>
#include <math.h>
#include <string.h>
#include "base/grow.h"
#include "plan/core/stage_sizes.h"

#define CHUNK NEAP__CHAIN_TABLE_CHUNK
#define GROUP NEAP__CHAIN_TABLE_GROUP
#define HALF (CHUNK / 2)
#define TILE 2 /* columns done together: they share their left parts */

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t tape_of(const struct neap_chain *c, int64_t i)
{
	return (int64_t)c->stages->tape[i];
}

/* The tape of t is there and backward needs nothing else. */
static int reverses_first(const struct neap_chain *c, int taped)
{
	return taped && !neap__backward_needs_input(c->stages);
}

/* A chunk of a row being filled; a split is 2 j + record. */
struct filling {
	struct neap__chain_table *x;
	int64_t i, t, m;     /* its first level */
	int64_t after, tape; /* bytes of g_{t+1}; levels of the tape of t, where that is there */
	int taped;
	int32_t winner; /* the split that is best at the last level */
	float last;	/* its value there */
	float *best;
	int64_t full;	/* the level from which on nothing is recomputed */
	float room;	/* levels that a way has for sure */
	int all_fit;	/* every split has room for its way at all levels */
	int32_t first;	/* the level of the chunk from which on there is a way at all */
	int64_t partly; /* splits listed that have room at the upper levels only */
};

static float *left_chunk(const struct neap__chain_table *x, int taped, int64_t i, int64_t t)
{
	return x->chunk[taped] + neap__row_pair(x->n, i, t) * CHUNK;
}

/* A chunk of a row, from its first level m on. */
static float *row_chunk(
	const struct neap__chain_table *x, int taped, int64_t j, int64_t t, int64_t m)
{
	return neap__chain_table_row(x, taped, j, t) + (x->whole ? m : 0);
}

static const float *right_of(const struct filling *f, int32_t split)
{
	return row_chunk(f->x, f->taped, split / 2, f->t, f->m) - f->x->by[split % 2][split / 2];
}

static const float *left_of(const struct filling *f, int32_t split)
{
	return left_chunk(f->x, split % 2, f->i, split / 2 - 1);
}

static float cost_of(const struct filling *f, int32_t split)
{
	return f->x->cost[split % 2][neap__row_pair(f->x->n, f->i, split / 2 - 1)];
}

/* The level from which on there is room for a split's way to j. */
static int64_t split_from(const struct filling *f, int32_t split)
{
	const struct neap__part_costs *p = &f->x->parts;
	int64_t at = neap__row_pair(f->x->n, f->i, split / 2 - 1);
	int64_t peak = (split % 2 ? p->record_peak : p->advance_peak)[at];
	return larger(f->x->by[split % 2][split / 2],
		neap__chain_table_up(f->x, peak + f->after) + f->tape);
}

/* One split, from a level of the chunk on. */
static void relax_from(struct filling *f, int32_t split, int64_t from)
{
	const float *right = right_of(f, split), *left = left_of(f, split);
	float cost = cost_of(f, split);
	for (int64_t m = from; m < CHUNK; m++) {
		float value = cost + right[m] + left[m];
		f->best[m] = value < f->best[m] ? value : f->best[m];
	}
	if (f->best[CHUNK - 1] < f->last) {
		f->last = f->best[CHUNK - 1];
		f->winner = split;
	}
}

/* One split, at the levels that have room for its way. */
static void relax_one(struct filling *f, int32_t split)
{
	relax_from(f, split, larger(split_from(f, split) - f->m, f->first));
}

/* GROUP splits with room at all levels. */
static void relax_group(struct filling *f, const int32_t *splits)
{
	const float *restrict r0 = right_of(f, splits[0]), *restrict r1 = right_of(f, splits[1]);
	const float *restrict r2 = right_of(f, splits[2]), *restrict r3 = right_of(f, splits[3]);
	const float *restrict l0 = left_of(f, splits[0]), *restrict l1 = left_of(f, splits[1]);
	const float *restrict l2 = left_of(f, splits[2]), *restrict l3 = left_of(f, splits[3]);
	float c0 = cost_of(f, splits[0]), c1 = cost_of(f, splits[1]);
	float c2 = cost_of(f, splits[2]), c3 = cost_of(f, splits[3]);
	float *restrict best = f->best;
	for (int m = 0; m < CHUNK; m++) {
		float v0 = c0 + r0[m] + l0[m], v1 = c1 + r1[m] + l1[m];
		float v2 = c2 + r2[m] + l2[m], v3 = c3 + r3[m] + l3[m];
		v0 = v1 < v0 ? v1 : v0;
		v2 = v3 < v2 ? v3 : v2;
		v0 = v2 < v0 ? v2 : v0;
		best[m] = v0 < best[m] ? v0 : best[m];
	}
}

/* Values of all splits of a kind at one level. */
static void split_values(float *restrict value, const float *restrict cost,
	const float *restrict right, const float *restrict left, int64_t n)
{
	for (int64_t k = 0; k < n; k++)
		value[k] = cost[k] + right[k] + left[k];
}

/* What is known at the first level of either half of a chunk, or the first possible one. */
struct known {
	float low, high;
};

/*
 * Adds the splits that may be better somewhere in the chunk to the list; all have
 * room for their way. low and high: their values at the last level of either half.
 */
static int64_t list_fitting(struct filling *f, int32_t split, struct known known, int64_t count)
{
	const float *restrict low = f->x->values[0], *restrict high = f->x->values[1];
	int32_t *restrict list = f->x->likely + count;
	int32_t *end = list;
	int64_t n = f->t - f->i, winner = -1;
	float last = f->last;
	for (int64_t k = 0; k < n; k++) {
		if (high[k] < last) {
			last = high[k];
			winner = k;
		}
		*end = split + 2 * (int32_t)k;
		end += (low[k] < known.low) | (high[k] < known.high);
	}
	if (winner >= 0) {
		f->last = last;
		f->winner = split + 2 * (int32_t)winner;
	}
	return count + (end - list);
}

/* The same where some have room at the upper levels only: those get a list of their own. */
static int64_t list_others(struct filling *f, int record, struct known known, int64_t count)
{
	struct neap__chain_table *x = f->x;
	const float *way = x->way[record] + neap__row_pair(x->n, f->i, f->i);
	const int32_t *by = x->by[record] + f->i + 1;
	const float *low = x->values[0], *high = x->values[1];
	for (int64_t k = 0; k < f->t - f->i; k++) {
		int32_t split = (int32_t)(2 * (f->i + 1 + k)) + record;
		if (way[k] > f->room || by[k] > f->m) {
			float above = way[k] - f->room;
			if (!(high[k] < known.low) || above > CHUNK + 2)
				continue;
			int32_t from =
				above + 2 < (float)f->first && by[k] <= f->m + f->first
					? f->first
					: (int32_t)larger(split_from(f, split) - f->m, f->first);
			x->partly[f->partly++] =
				(struct neap__chain_table_partly){split, from, low[k], high[k]};
			continue;
		}
		if (high[k] < f->last) {
			f->last = high[k];
			f->winner = split;
		}
		x->likely[count] = split;
		count += low[k] < known.low || high[k] < known.high;
	}
	return count;
}

static int64_t list_splits(struct filling *f, int record, struct known known, int64_t count)
{
	struct neap__chain_table *x = f->x;
	int64_t row = neap__row_pair(x->n, f->i, f->i), right = neap__pair(f->i + 1, f->t);
	for (int half = 0; half < 2; half++)
		split_values(x->values[half], x->cost[record] + row,
			x->right[half][record][f->taped] + right, x->left[half][record] + row,
			f->t - f->i);
	if (f->all_fit)
		return list_fitting(f, (int32_t)(2 * (f->i + 1)) + record, known, count);
	return list_others(f, record, known, count);
}

/* First of all, what was best in the neighbourhood. */
static void relax_likely(struct filling *f)
{
	const int32_t *winners = f->x->winners[f->taped];
	int64_t at = neap__pair(f->i, f->t), i = f->i + 1;
	int32_t splits[GROUP] = {winners[at], winners[at + 1],
		i < f->t ? winners[neap__pair(i, f->t - 1)] : 0,
		f->i < f->t - 1 ? winners[neap__pair(f->i, f->t - 1)] : 0};
	int count = 0;
	for (int k = 0; k < GROUP; k++) {
		if (splits[k] / 2 <= f->i)
			continue;
		if (!f->all_fit)
			relax_one(f, splits[k]);
		else
			splits[count++] = splits[k];
	}
	for (int k = count; count && k < GROUP; k++)
		splits[k] = splits[0];
	if (count)
		relax_group(f, splits);
}

/* A part of several stages. */
static void fill_splits(struct filling *f)
{
	const struct neap__chain_table *x = f->x;
	int64_t need = (f->taped ? x->parts.need_d : x->parts.need_c)[neap__pair(f->i, f->t)];
	int64_t first = neap__chain_table_up(x, need) + f->tape - f->m;
	if (first >= CHUNK)
		return;
	int64_t at = neap__row_pair(x->n, f->i, f->t - 1);
	double room = (double)(f->m - f->tape) - (double)f->after * x->per_byte;
	f->room = (float)room * (1 - 1e-6f);
	f->all_fit = x->most[at] <= f->room && x->furthest[at] <= f->m;
	f->first = (int32_t)larger(first, 0);
	relax_likely(f);
	struct known known = {f->best[f->first], f->best[larger(first, HALF)]};
	int64_t count = list_splits(f, 1, known, 0);
	count = list_splits(f, 0, known, count);
	for (int k = 1; count && k < GROUP; k++)
		x->likely[count + k - 1] = x->likely[count - 1];
	for (int64_t k = 0; k < count; k += GROUP)
		relax_group(f, x->likely + k);
	for (int64_t k = 0; k < f->partly; k++) {
		const struct neap__chain_table_partly *p = &x->partly[k];
		if (p->from < HALF ? p->low < f->best[p->from] || p->high < f->best[HALF]
				   : p->from < CHUNK && p->high < f->best[p->from])
			relax_from(f, p->split, p->from);
	}
}

/* A chunk of a row, those of shorter parts being there. */
static void fill_chunk(struct filling *f)
{
	const struct neap__chain_table *x = f->x;
	const struct neap_chain *c = x->chain;
	for (int m = 0; m < CHUNK; m++)
		f->best[m] = INFINITY;
	if (f->i < f->t && !reverses_first(c, f->taped)) {
		fill_splits(f);
		return;
	}
	int64_t need = f->i == f->t ? neap__leaf_need(c, f->i, f->taped)
				    : neap__first_need(&x->parts, f->i, f->t);
	const float *left = f->i == f->t ? NULL : left_chunk(x, 0, f->i, f->t - 1);
	float cost = (float)(left ? c->stages->backward[f->t] : neap__leaf_cost(c, f->i, f->taped));
	for (int64_t m = larger(neap__chain_table_up(x, need) + f->tape - f->m, 0); m < CHUNK; m++)
		f->best[m] = cost + (left ? left[m] : 0);
}

/* The last levels of the halves of a row as far below the chunk as a split goes. */
static void set_right(const struct filling *f)
{
	struct neap__chain_table *x = f->x;
	int64_t at = neap__pair(f->i, f->t);
	for (int record = 0; record < 2; record++) {
		int64_t by = x->by[record][f->i];
		if (by > x->reach[f->i])
			continue; /* for good without room */
		const float *right = row_chunk(x, f->taped, f->i, f->t, f->m) - by;
		x->right[1][record][f->taped][at] = right[CHUNK - 1];
		x->right[0][record][f->taped][at] = right[HALF - 1];
	}
}

/* Appends the chunk, or its first value alone, to its row, where the levels below move down. */
static void append(const struct filling *f, int repeat)
{
	const struct neap__chain_table *x = f->x;
	float *row = row_chunk(x, f->taped, f->i, f->t, f->m);
	int64_t reach = x->reach[f->i];
	int ends = !x->whole && f->t == x->last && f->taped == x->taped;
	if (!x->whole && f->i == 0)
		return; /* no split is at stage 0 */
	if (!x->whole && !ends && repeat && f->m - 3 * CHUNK - reach >= f->full)
		return; /* all of the row has one value */
	if (!x->whole)
		memmove(row - reach, row - reach + CHUNK, (size_t)reach * sizeof *row);
	for (int m = 0; m < CHUNK; m++)
		row[m] = f->best[repeat ? 0 : m];
	if (ends)
		memcpy(x->ends + f->i * (x->levels + 1) + f->m, row, CHUNK * sizeof *row);
	set_right(f);
}

/* Puts a chunk where the longer parts look for it. */
static void keep_chunk(const struct filling *f)
{
	struct neap__chain_table *x = f->x;
	int64_t at = neap__pair(f->i, f->t), row = neap__row_pair(x->n, f->i, f->t);
	x->left[1][f->taped][row] = f->best[CHUNK - 1];
	x->left[0][f->taped][row] = f->best[HALF - 1];
	append(f, 0);
	x->winners[f->taped][at] = f->winner;
}

static void fill_pair(struct neap__chain_table *x, int64_t m, int64_t i, int64_t t, int taped)
{
	struct filling f = {.x = x, .i = i, .t = t, .m = m, .taped = taped, .last = INFINITY};
	int64_t at = neap__pair(i, t);
	f.after = neap__stage_after(x->chain, t);
	f.tape = taped ? neap__chain_table_up(x, tape_of(x->chain, t)) : 0;
	f.best = left_chunk(x, taped, i, t);
	f.full = x->full[taped][at];
	if (m - CHUNK >= f.full) {
		append(&f, 1);
		return;
	}
	fill_chunk(&f);
	keep_chunk(&f);
}

static void fill_chunks(struct neap__chain_table *x, int64_t m)
{
	for (int64_t first = 0; first <= x->last; first += TILE) {
		int64_t last = first + TILE - 1 < x->last ? first + TILE - 1 : x->last;
		for (int64_t i = last; i >= 0; i--)
			for (int64_t t = larger(i, first); t <= last; t++) {
				fill_pair(x, m, i, t, 0);
				if (t < x->n)
					fill_pair(x, m, i, t, 1);
			}
	}
}

/* A split of i..last at the levels of a chunk. */
struct spine_split {
	float cost, left[CHUNK];
	/* A choice is made in bytes, so that the right part may have a level more. */
	const float *right, *above;
};

/* 0 where the split has room at no level. */
static int read_split(struct spine_split *s, const struct filling *f, int32_t split)
{
	const struct neap__chain_table *x = f->x;
	int record = split % 2;
	int64_t j = split / 2, by = x->by[record][j];
	if (by > x->reach[j])
		return 0;
	const float *left = left_of(f, split);
	/* As in the row, where a chunk that is repeated has one value. */
	int repeated = f->m - CHUNK >= x->full[record][neap__pair(f->i, j - 1)];
	for (int k = 0; k < CHUNK; k++)
		s->left[k] = left[repeated ? 0 : k];
	s->cost = cost_of(f, split);
	s->right = right_of(f, split);
	s->above = s->right + (by > 0);
	return 1;
}

/*
 * Seconds that the best choice in a level, made in bytes, takes at most. MARGIN is more than the
 * rounding of floats: derived, three roundings of 2^-24 each.
 */
#define MARGIN 1e-6f
static void spine_bounds(const struct filling *f, float *restrict bound)
{
	struct spine_split s;
	for (int k = 0; k < CHUNK; k++)
		bound[k] = INFINITY;
	for (int32_t split = (int32_t)(2 * (f->i + 1)); split < 2 * (f->t + 1); split++) {
		if (!read_split(&s, f, split))
			continue;
		for (int64_t k = larger(split_from(f, split) - f->m, 0); k < CHUNK; k++) {
			float right = s.above[k] > s.right[k] ? s.above[k] : s.right[k];
			float value = s.cost + right + s.left[k];
			bound[k] = value < bound[k] ? value : bound[k];
		}
	}
	for (int k = 0; k < CHUNK; k++)
		bound[k] = bound[k] < INFINITY ? bound[k] * (1 + MARGIN) : FLT_MAX;
}

/*
 * Lists the splits of i..last that neap__chain_table_choose may find to be the best in a number of
 * bytes of each level of the chunk.
 */
static void list_spine(struct neap__chain_table *x, int64_t m, int64_t i)
{
	struct filling f = {.x = x, .i = i, .t = x->last, .m = m, .taped = x->taped};
	struct spine_split s;
	float bound[CHUNK];
	int64_t count[CHUNK + 1] = {0}, n = 0, at = neap__spine_at(x, i, m);
	f.after = neap__stage_after(x->chain, f.t);
	f.tape = f.taped ? neap__chain_table_up(x, tape_of(x->chain, f.t)) : 0;
	spine_bounds(&f, bound);
	for (int32_t split = (int32_t)(2 * (i + 1)); split < 2 * (f.t + 1); split++) {
		if (!read_split(&s, &f, split))
			continue;
		for (int k = 0; k < CHUNK; k++) {
			float right = s.above[k] < s.right[k] ? s.above[k] : s.right[k];
			if (!(s.cost + right + s.left[k] <= bound[k]))
				continue;
			x->found_at[n] = (uint32_t)k;
			x->found[n++] = (struct neap__chain_table_spine){split, s.left[k]};
			count[k + 1]++;
		}
	}
	if (x->spine_room < 0 ||
		neap__grow(&x->spine, &x->spine_room, x->spines + n, sizeof *x->spine) < 0) {
		x->spine_room = -1;
		return;
	}
	/* By level, in each by split. */
	for (int k = 0; k < CHUNK; k++) {
		count[k + 1] += count[k];
		x->spine_first[at + k + 1] = (uint32_t)(x->spines + count[k + 1]);
	}
	for (int64_t k = 0; k < n; k++)
		x->spine[x->spines + count[x->found_at[k]]++] = x->found[k];
	x->spines += n;
}

/* Ways from i: what they take at most up to each j. */
static void prepare_ways(struct neap__chain_table *x, int64_t i)
{
	const struct neap__part_costs *p = &x->parts;
	float most = 0;
	int32_t furthest = 0;
	for (int64_t j = i + 1; j <= x->n; j++) {
		int64_t at = neap__row_pair(x->n, i, j - 1);
		const int64_t peaks[] = {p->advance_peak[at], p->record_peak[at]};
		x->cost[0][at] = (float)p->advance[at];
		x->cost[1][at] = (float)p->record[at];
		for (int k = 0; k < 2; k++) {
			/* A little more: what does not pass for sure is looked at exactly. */
			x->way[k][at] = (float)((double)peaks[k] * x->per_byte) * (1 + 1e-6f);
			most = fmaxf(most, x->way[k][at]);
			furthest = (int32_t)larger(furthest, x->by[k][j]);
		}
		x->most[at] = most;
		x->furthest[at] = furthest;
	}
}

/* Where all is recorded at once and kept. */
static void prepare_full(struct neap__chain_table *x, int64_t i, int64_t t, int taped)
{
	const struct neap_chain *c = x->chain;
	struct filling f = {.x = x, .i = i, .t = t, .taped = taped};
	int64_t at = neap__pair(i, t), full;
	f.after = neap__stage_after(c, t);
	f.tape = taped ? neap__chain_table_up(x, tape_of(c, t)) : 0;
	if (i == t) {
		full = neap__chain_table_up(x, neap__leaf_need(c, i, taped)) + f.tape;
	} else if (reverses_first(c, taped)) {
		full = larger(neap__chain_table_up(x, neap__first_need(&x->parts, i, t)) + f.tape,
			x->full[0][neap__pair(i, t - 1)]);
	} else {
		full = x->full[taped][neap__pair(i + 1, t)] + x->by[1][i + 1];
		full = larger(full, split_from(&f, (int32_t)(2 * (i + 1) + 1)));
		full = larger(full, x->full[1][neap__pair(i, i)]);
	}
	x->full[taped][at] = (int32_t)(full < INT32_MAX / 2 ? full : INT32_MAX / 2);
}

void NEAP__CHAIN_TABLE_ROWS(struct neap__chain_table *x)
{
	for (int64_t i = 0; i < x->n; i++)
		prepare_ways(x, i);
	for (int64_t t = 0; t <= x->n; t++)
		for (int64_t i = t; i >= 0; i--) {
			prepare_full(x, i, t, 0);
			if (t < x->n)
				prepare_full(x, i, t, 1);
		}
	for (int k = 0; k < 2; k++)
		for (int64_t t = 0; t <= x->last; t++)
			for (int64_t j = 1; j <= t; j++) {
				float *row = neap__chain_table_row(x, k, j, t);
				for (int64_t m = 1; m <= x->reach[j]; m++)
					row[-m] = INFINITY;
				for (int64_t half = 0; half < 4; half++)
					x->right[half % 2][half / 2][k][neap__pair(j, t)] =
						INFINITY;
			}
	for (int64_t m = 0; m <= x->levels; m += CHUNK) {
		fill_chunks(x, m);
		for (int64_t i = 0; i <= x->last && !x->whole; i++)
			list_spine(x, m, i);
	}
}
