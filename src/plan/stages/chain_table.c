/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain_table.c: the levels of a table, its arrays, and the choices found again. Sizes are
 * rounded up to levels, so every plan that a table calls possible is possible; part_costs.h
 * has the least bytes exactly, so no possible plan is refused. Choices are not stored but
 * found again on the way down, where bytes are counted exactly: a table of choices would
 * double the memory.
 */
#include "plan/stages/chain_table.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "plan/core/stage_sizes.h"

#define LEVELS 500	    /* where sizes do not divide the budget */
#define LEVELS_MOST 20000   /* where they do */
#define CELLS_MOST 64000000 /* floats in both tables: 256 MB */
#define WORK_MOST 3e9	    /* levels of splits, where sizes divide the budget */
#define ROWS_MOST 1000000   /* floats in both tables of rows that are kept: 4 MB */
#define SPARE 96	    /* levels of a row that CELLS_MOST counts in addition */
#define CHUNK NEAP__CHAIN_TABLE_CHUNK
#define GROUP NEAP__CHAIN_TABLE_GROUP

static int64_t tape_of(const struct neap_chain *c, int64_t i)
{
	return (int64_t)c->stages->tape[i];
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

/* Bytes of everything at once: a larger budget needs no further level. */
static int64_t all_bytes(const struct neap_chain *c)
{
	const struct neap_stages *s = c->stages;
	uint64_t all = 2 * c->adjoint;
	for (int64_t i = 0; i <= c->steps; i++)
		all += s->state[i] * 2 + (i < c->steps ? s->tape[i] : 0) +
		       (uint64_t)neap__stage_backward_tmp(s, i);
	for (int64_t i = 0; i < c->steps; i++)
		all += (uint64_t)(neap__stage_advance_tmp(s, i) + neap__stage_record_tmp(s, i));
	return (int64_t)all;
}

static void choose_levels(struct neap__chain_table *x, int64_t bytes)
{
	double n = (double)x->n + 1, pairs = n * (n + 1) / 2, d = (double)divisor(x->chain);
	double most = fmin(LEVELS_MOST, CELLS_MOST / (2 * pairs) - SPARE);
	double fine = fmin(most, fmax(LEVELS, WORK_MOST / (n * n * n * 2 / 3)));
	int64_t all = all_bytes(x->chain);
	bytes = bytes < all ? bytes : all;
	double exact = floor((double)bytes / d);
	if (exact <= fmax(fine, 8)) {
		x->levels = (int64_t)exact;
		x->unit = d;
	} else {
		x->levels = (int64_t)fmax(8, fmin(LEVELS, most));
		x->unit = (double)bytes / (double)x->levels;
	}
}

/* The level that so many bytes reach. */
static int64_t level_of(const struct neap__chain_table *x, int64_t bytes)
{
	return (int64_t)fmin((double)bytes / x->unit * (1 + 1e-14), (double)x->levels);
}

/* Whole chunks of levels. */
static void round_levels(struct neap__chain_table *x)
{
	x->levels = (x->levels / CHUNK + 1) * CHUNK - 1;
	x->per_byte = 1 / x->unit;
}

/* An array of `count` numbers, which are four bytes each; NULL stays NULL for good. */
static void *array(struct neap__chain_table *x, size_t count)
{
	if (x->narrays < 0)
		return NULL;
	void *block = calloc(count, 4);
	if (block)
		x->arrays[x->narrays++] = block;
	else
		x->narrays = -x->narrays - 1;
	return block;
}

/*
 * Levels that the row of a part j..t, t any, has to have below a chunk: as many as a split goes
 * down, if both its parts can have room then.
 */
static void choose_reach(struct neap__chain_table *x)
{
	const struct neap__part_costs *p = &x->parts;
	for (int64_t j = 1; j <= x->last; j++) {
		const int64_t takes[] = {
			(int64_t)x->chain->stages->state[j], neap__stage_resume(x->chain, j)};
		int64_t least = NEAP__NEVER;
		for (int64_t t = j; t <= x->last; t++) {
			int64_t at = neap__pair(j, t);
			int64_t d = t < x->n ? p->need_d[at] + tape_of(x->chain, t) : NEAP__NEVER;
			least = p->need_c[at] < least ? p->need_c[at] : least;
			least = d < least ? d : least;
		}
		for (int k = 0; k < 2; k++) {
			x->by[k][j] = (int32_t)neap__chain_table_up(x, takes[k]);
			/* A level more, as choices are made in bytes. */
			if (x->by[k][j] + neap__chain_table_up(x, least) <= x->levels + 2 &&
				x->by[k][j] > x->reach[j])
				x->reach[j] = x->by[k][j];
		}
	}
	x->row_at[1] = x->whole ? x->levels + 1 : 0; /* no split is at stage 0 */
	for (int64_t j = 1; j <= x->last; j++)
		x->row_at[j + 1] = x->row_at[j] + x->reach[j] + (x->whole ? x->levels + 1 : CHUNK);
}

static void make_rows(struct neap__chain_table *x)
{
	size_t n = (size_t)x->n + 1, size = 0;
	x->reach = array(x, n);
	x->row_at = array(x, 2 * (n + 1));
	x->column_at = array(x, 2 * n);
	for (int k = 0; k < 2; k++)
		x->by[k] = array(x, n);
	if (x->narrays < 0)
		return;
	choose_reach(x);
	for (int64_t t = 0; t <= x->last; t++) {
		x->column_at[t] = (int64_t)size;
		size += (size_t)x->row_at[t + 1];
	}
	for (int k = 0; k < 2; k++)
		x->rows[k] = array(x, size + 1);
}

static int allocate(struct neap__chain_table *x)
{
	size_t pairs = (size_t)neap__pair(0, x->n + 1), n = (size_t)x->n + 1;
	size_t levels = (size_t)x->levels + 1;
	for (int k = 0; k < 2; k++) {
		x->chunk[k] = array(x, pairs * CHUNK);
		x->cost[k] = array(x, pairs);
		x->way[k] = array(x, pairs);
		x->winners[k] = array(x, pairs);
		x->full[k] = array(x, pairs);
		x->values[k] = array(x, n);
		for (int l = 0; l < 2; l++) {
			x->left[k][l] = array(x, pairs);
			x->right[k][l][0] = array(x, pairs);
			x->right[k][l][1] = array(x, pairs);
		}
	}
	x->most = array(x, pairs);
	x->furthest = array(x, pairs);
	x->likely = array(x, 2 * n + GROUP);
	x->partly = array(x, 2 * n * sizeof *x->partly / 4);
	make_rows(x);
	if (!x->whole) {
		x->ends = array(x, n * levels);
		x->spine_first = array(x, n * levels + 1);
		x->found = array(x, 2 * n * CHUNK * sizeof *x->found / 4);
		x->found_at = array(x, 2 * n * CHUNK);
	}
	return x->narrays > 0 ? 0 : neap__fail(-ENOMEM, "plan: out of memory");
}

/* What only filling needs. */
static void free_scratch(struct neap__chain_table *x)
{
	void *scratch[] = {x->chunk[0], x->chunk[1], x->whole ? NULL : x->rows[0],
		x->whole ? NULL : x->rows[1]};
	for (size_t i = 0; i < sizeof scratch / sizeof scratch[0]; i++)
		for (int k = 0; k < x->narrays; k++)
			if (x->arrays[k] == scratch[i]) {
				free(x->arrays[k]);
				x->arrays[k] = x->arrays[--x->narrays];
			}
}

static int fill(struct neap__chain_table *x, const struct neap_chain *chain,
	const struct neap__chain_table_part *part, double rows_most)
{
	memset(x, 0, sizeof *x);
	x->chain = chain;
	x->n = chain->steps;
	x->last = part->last;
	x->taped = part->taped;
	NEAP_TRY(neap__part_costs_fill(&x->parts, chain));
	const int64_t *need = part->taped ? x->parts.need_d : x->parts.need_c;
	uint64_t least = chain->stages->state[0] + (uint64_t)need[neap__pair(0, part->last)];
	if (part->memory < least)
		return neap__fail(NEAP_EINFEASIBLE, "the stages need %llu bytes at least",
			(unsigned long long)least);
	uint64_t free_bytes = part->memory - chain->stages->state[0];
	free_bytes += part->taped ? chain->stages->tape[part->last] : 0;
	int64_t bytes = free_bytes < INT64_MAX ? (int64_t)free_bytes : INT64_MAX;
	if (part->unit > 0) {
		x->unit = part->unit;
		x->levels = LEVELS_MOST;
		x->levels = level_of(x, bytes);
	} else {
		choose_levels(x, bytes);
	}
	round_levels(x);
	double cells = 2.0 * (double)neap__pair(0, x->n + 1) * (double)x->levels;
	x->whole = cells <= rows_most;
	NEAP_TRY(allocate(x));
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2"))
		neap__chain_table_rows_avx2(x);
	else
#endif
		neap__chain_table_rows(x);
	free_scratch(x);
	return x->spine_room < 0 ? neap__fail(-ENOMEM, "plan: out of memory") : 0;
}

int neap__chain_table_fill_part(struct neap__chain_table *x, const struct neap_chain *chain,
	const struct neap__chain_table_part *part)
{
	return fill(x, chain, part, ROWS_MOST);
}

int neap__chain_table_fill(
	struct neap__chain_table *x, const struct neap_chain *chain, uint64_t memory)
{
	const struct neap__chain_table_part all = {.memory = memory, .last = chain->steps};
	return fill(x, chain, &all, INFINITY);
}

void neap__chain_table_free(struct neap__chain_table *x)
{
	neap__part_costs_free(&x->parts);
	int count = x->narrays < 0 ? -x->narrays - 1 : x->narrays;
	for (int k = 0; k < count; k++)
		free(x->arrays[k]);
	free(x->spine);
	memset(x, 0, sizeof *x);
}

uint64_t neap__chain_table_least(const struct neap_chain *chain)
{
	struct neap__part_costs parts = {0};
	uint64_t least = UINT64_MAX;
	if (chain->steps <= NEAP__CHAIN_TABLE_STAGES && neap__part_costs_fill(&parts, chain) == 0)
		least = chain->stages->state[0] +
			(uint64_t)parts.need_c[neap__pair(0, chain->steps)];
	neap__part_costs_free(&parts);
	return least;
}

/* What a row of a part holds for so many bytes. */
static double value(const struct neap__chain_table *x, const float *row, int taped, int64_t i,
	int64_t t, int64_t bytes)
{
	if (bytes < (taped ? x->parts.need_d : x->parts.need_c)[neap__pair(i, t)])
		return INFINITY;
	return row[level_of(x, bytes + (taped ? tape_of(x->chain, t) : 0))];
}

/* Seconds of a split of which both parts have the bytes they need; `left`, if it is known. */
static double split_value(const struct neap__chain_table *x, int taped, int64_t i, int64_t t,
	const struct neap__chain_table_choice *k, const float *left)
{
	const double *ways = k->record ? x->parts.record : x->parts.advance;
	const int64_t *need = k->record ? x->parts.need_d : x->parts.need_c;
	const float *right =
		left ? x->ends + k->j * (x->levels + 1) : neap__chain_table_row(x, taped, k->j, t);
	double first =
		ways[neap__row_pair(x->n, i, k->j - 1)] + value(x, right, taped, k->j, t, k->right);
	if (!left)
		return first + value(x, neap__chain_table_row(x, k->record, i, k->j - 1), k->record,
				       i, k->j - 1, k->left);
	return first + (k->left < need[neap__pair(i, k->j - 1)] ? (double)INFINITY : (double)*left);
}

struct neap__chain_table_choice neap__chain_table_choose(
	const struct neap__chain_table *x, int taped, int64_t i, int64_t t, int64_t bytes)
{
	const struct neap_chain *c = x->chain;
	const struct neap__chain_table_spine *at = NULL, *end = NULL;
	struct neap__chain_table_choice best = {0}, tight = {0};
	int64_t back = taped ? tape_of(c, t) : 0, least = NEAP__NEVER;
	double cost = INFINITY;
	if (!x->whole) {
		const uint32_t *first =
			x->spine_first + neap__spine_at(x, i, level_of(x, bytes + back));
		at = x->spine + first[0];
		end = x->spine + first[1];
	}
	for (int64_t both = 2 * (i + 1); both < 2 * (t + 1); both++) {
		struct neap__chain_table_choice k = {
			both / 2, (int)(both % 2), bytes, bytes + back};
		int64_t takes = neap__split_need(&x->parts, i, t, k.j, taped, k.record);
		k.right -= k.record ? neap__stage_resume(c, k.j) : (int64_t)c->stages->state[k.j];
		k.left -= k.record ? tape_of(c, k.j - 1) : 0;
		if (takes < least) {
			least = takes;
			tight = k;
		}
		while (at < end && at->split < both)
			at++;
		if (takes > bytes || (!x->whole && (at == end || at->split > both)))
			continue;
		double all = split_value(x, taped, i, t, &k, x->whole ? NULL : &at->left);
		if (all < cost) {
			cost = all;
			best = k;
		}
	}
	return cost < INFINITY ? best : tight;
}
