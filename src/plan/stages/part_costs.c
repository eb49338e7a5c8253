/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part_costs.c: seconds and bytes of the ways from i to j are running sums and maxima over the
 * stages between; the least bytes of a part are the least over its splits, shorter parts
 * first. No sum leaves 63 bits: all sizes together are at most 2^60.
 */
#include "plan/stages/part_costs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "base/fail.h"
#include "plan/core/stage_sizes.h"

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

int64_t neap__stage_resume(const struct neap_chain *c, int64_t j)
{
	const struct neap_stages *s = c->stages;
	return (int64_t)s->tape[j - 1] + (neap__tape_holds_output(s) ? 0 : (int64_t)s->state[j]);
}

int64_t neap__stage_after(const struct neap_chain *c, int64_t t)
{
	return t < c->steps ? neap__stage_gradient(c, t + 1) : 0;
}

int64_t neap__leaf_need(const struct neap_chain *c, int64_t i, int taped)
{
	const struct neap_stages *s = c->stages;
	int64_t g = neap__stage_gradient(c, i);
	if (i == c->steps)
		return g + neap__stage_backward_tmp(s, i);
	int64_t after = neap__stage_gradient(c, i + 1);
	int64_t tape = taped ? 0 : (int64_t)s->tape[i];
	int64_t back = g + after + tape + neap__stage_backward_tmp(s, i);
	if (!neap__tape_holds_output(s) && !neap__backward_needs_input(s))
		back -= (int64_t)s->state[i];
	if (taped)
		return larger(back, 0);
	int64_t output = neap__tape_holds_output(s) ? 0 : (int64_t)s->state[i + 1];
	return larger(after + tape + output + neap__stage_record_tmp(s, i), back);
}

double neap__leaf_cost(const struct neap_chain *c, int64_t i, int taped)
{
	const struct neap_stages *s = c->stages;
	return s->backward[i] + (taped || i == c->steps ? 0 : neap__stage_record(s, i));
}

int64_t neap__first_need(const struct neap__part_costs *x, int64_t i, int64_t t)
{
	const struct neap_chain *c = x->chain;
	int64_t back = neap__stage_gradient(c, t) + neap__stage_gradient(c, t + 1) +
		       neap__stage_backward_tmp(c->stages, t);
	return larger(back, x->need_c[neap__pair(i, t - 1)] - (int64_t)c->stages->tape[t]);
}

/* From i to every j. */
static void fill_ways(struct neap__part_costs *x, int64_t i)
{
	const struct neap_stages *s = x->chain->stages;
	int64_t row = neap__row_pair(x->n, i, 0), widest = 0;
	int holds = neap__tape_holds_output(s);
	double seconds = 0;
	for (int64_t k = i; k < x->n; k++) {
		int64_t kept = k > i ? (int64_t)s->state[k] : 0, output = (int64_t)s->state[k + 1];
		int64_t recorded = kept + (int64_t)s->tape[k] + (holds ? 0 : output) +
				   neap__stage_record_tmp(s, k);
		x->record_peak[row + k] = larger(widest, recorded);
		x->record[row + k] = seconds + neap__stage_record(s, k);
		widest = larger(widest, kept + output + neap__stage_advance_tmp(s, k));
		seconds += s->advance[k];
		x->advance_peak[row + k] = widest;
		x->advance[row + k] = seconds;
	}
}

static int64_t need(const struct neap__part_costs *x, int64_t i, int64_t t, int taped)
{
	const struct neap_chain *c = x->chain;
	int64_t least = NEAP__NEVER;
	if (i == t)
		return neap__leaf_need(c, i, taped);
	if (taped && !neap__backward_needs_input(c->stages))
		return neap__first_need(x, i, t);
	for (int64_t j = i + 1; j <= t; j++) {
		int64_t advance = neap__split_need(x, i, t, j, taped, 0);
		int64_t record = neap__split_need(x, i, t, j, taped, 1);
		least = advance < least ? advance : least;
		least = record < least ? record : least;
	}
	return larger(least, 0);
}

int neap__part_costs_fill(struct neap__part_costs *x, const struct neap_chain *chain)
{
	int64_t n = chain->steps;
	size_t pairs = (size_t)neap__pair(0, n + 1);
	memset(x, 0, sizeof *x);
	x->chain = chain;
	x->n = n;
	x->block = malloc(pairs * (6 * sizeof(int64_t) + 2 * sizeof(double)));
	if (!x->block)
		return neap__fail(-ENOMEM, "plan: out of memory");
	x->need_c = x->block;
	x->need_d = x->need_c + pairs;
	x->left_c = x->need_d + pairs;
	x->left_d = x->left_c + pairs;
	x->advance_peak = x->left_d + pairs;
	x->record_peak = x->advance_peak + pairs;
	x->advance = (double *)(x->record_peak + pairs);
	x->record = x->advance + pairs;
	for (int64_t i = 0; i <= n; i++)
		fill_ways(x, i);
	for (int64_t t = 0; t <= n; t++)
		for (int64_t i = t; i >= 0; i--) {
			int64_t at = neap__pair(i, t), left = neap__row_pair(n, i, t);
			x->need_c[at] = x->left_c[left] = need(x, i, t, 0);
			x->need_d[at] = x->left_d[left] = t < n ? need(x, i, t, 1) : NEAP__NEVER;
		}
	return 0;
}

void neap__part_costs_free(struct neap__part_costs *x)
{
	free(x->block);
	memset(x, 0, sizeof *x);
}
