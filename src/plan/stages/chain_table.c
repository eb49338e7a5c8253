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
	double most = fmin(LEVELS_MOST, CELLS_MOST / (2 * pairs) - 2 * CHUNK);
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
	x->levels = (x->levels / CHUNK + 1) * CHUNK - 1;
	x->stride = x->levels + 1 + CHUNK / 2; /* rows that do not lie on the same cache lines */
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

static int allocate(struct neap__chain_table *x)
{
	size_t pairs = (size_t)neap__pair(0, x->n + 1), n = (size_t)x->n + 1;
	for (int k = 0; k < 2; k++) {
		x->rows[k] = array(x, pairs * (size_t)x->stride);
		x->chunk[k] = array(x, pairs * CHUNK);
		x->cost[k] = array(x, pairs);
		x->way[k] = array(x, pairs);
		x->winners[k] = array(x, pairs);
		x->full[k] = array(x, pairs);
		x->by[k] = array(x, n);
		x->values[k] = array(x, n);
		for (int l = 0; l < 2; l++) {
			x->shifted[k][l] = array(x, pairs * CHUNK);
			x->left[k][l] = array(x, pairs);
			x->right[k][l][0] = array(x, pairs);
			x->right[k][l][1] = array(x, pairs);
		}
	}
	x->most = array(x, pairs);
	x->furthest = array(x, pairs);
	x->likely = array(x, 2 * n + GROUP);
	x->partly = array(x, 2 * n * sizeof *x->partly / 4);
	return x->narrays > 0 ? 0 : neap__fail(-ENOMEM, "plan: out of memory");
}

/* What only filling needs. */
static void free_scratch(struct neap__chain_table *x)
{
	void *scratch[] = {x->chunk[0], x->chunk[1], x->shifted[0][0], x->shifted[0][1],
		x->shifted[1][0], x->shifted[1][1]};
	for (size_t i = 0; i < sizeof scratch / sizeof scratch[0]; i++)
		for (int k = 0; k < x->narrays; k++)
			if (x->arrays[k] == scratch[i]) {
				free(x->arrays[k]);
				x->arrays[k] = x->arrays[--x->narrays];
			}
}

int neap__chain_table_fill_part(struct neap__chain_table *x, const struct neap_chain *chain,
	uint64_t memory, int64_t last, int taped)
{
	memset(x, 0, sizeof *x);
	x->chain = chain;
	x->n = chain->steps;
	NEAP_TRY(neap__part_costs_fill(&x->parts, chain));
	const int64_t *need = taped ? x->parts.need_d : x->parts.need_c;
	uint64_t least = chain->stages->state[0] + (uint64_t)need[neap__pair(0, last)];
	if (memory < least)
		return neap__fail(NEAP_EINFEASIBLE, "the stages need %llu bytes at least",
			(unsigned long long)least);
	uint64_t free_bytes = memory - chain->stages->state[0];
	free_bytes += taped ? chain->stages->tape[last] : 0;
	choose_levels(x, free_bytes < INT64_MAX ? (int64_t)free_bytes : INT64_MAX);
	NEAP_TRY(allocate(x));
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2"))
		neap__chain_table_rows_avx2(x);
	else
#endif
		neap__chain_table_rows(x);
	free_scratch(x);
	return 0;
}

int neap__chain_table_fill(
	struct neap__chain_table *x, const struct neap_chain *chain, uint64_t memory)
{
	return neap__chain_table_fill_part(x, chain, memory, chain->steps, 0);
}

void neap__chain_table_free(struct neap__chain_table *x)
{
	neap__part_costs_free(&x->parts);
	int count = x->narrays < 0 ? -x->narrays - 1 : x->narrays;
	for (int k = 0; k < count; k++)
		free(x->arrays[k]);
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

/* What the tables say of a part in so many bytes. */
static double value(
	const struct neap__chain_table *x, int taped, int64_t i, int64_t t, int64_t bytes)
{
	int64_t all = bytes + (taped ? tape_of(x->chain, t) : 0);
	int64_t level = (int64_t)fmin((double)all / x->unit * (1 + 1e-14), (double)x->levels);
	if (bytes < (taped ? x->parts.need_d : x->parts.need_c)[neap__pair(i, t)])
		return INFINITY;
	return neap__chain_table_row(x, taped, i, t)[level];
}

/* Seconds of a split of which both parts have the bytes they need. */
static double split_value(const struct neap__chain_table *x, int taped, int64_t i, int64_t t,
	const struct neap__chain_table_choice *k)
{
	const double *ways = k->record ? x->parts.record : x->parts.advance;
	return ways[neap__row_pair(x->n, i, k->j - 1)] + value(x, taped, k->j, t, k->right) +
	       value(x, k->record, i, k->j - 1, k->left);
}

struct neap__chain_table_choice neap__chain_table_choose(
	const struct neap__chain_table *x, int taped, int64_t i, int64_t t, int64_t bytes)
{
	const struct neap_chain *c = x->chain;
	struct neap__chain_table_choice best = {0}, tight = {0};
	int64_t back = taped ? tape_of(c, t) : 0, least = NEAP__NEVER;
	double cost = INFINITY;
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
		if (takes > bytes)
			continue;
		double all = split_value(x, taped, i, t, &k);
		if (all < cost) {
			cost = all;
			best = k;
		}
	}
	return cost < INFINITY ? best : tight;
}
