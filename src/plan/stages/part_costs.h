/* SPDX-License-Identifier: Apache-2.0 */
/*
 * part_costs.h: seconds and bytes of the parts i..t of a chain of stages: of going from i to j,
 * and the least bytes that C(i,t,.) and D(i,t,.) of chain_table.h take; the letters are those of
 * chain_table.h. O(L^3) time and O(L^2) memory for L stages.
 */
#ifndef NEAP_PLAN_STAGES_PART_COSTS_H
#define NEAP_PLAN_STAGES_PART_COSTS_H

#include <neap/plan.h>

#define NEAP__NEVER (INT64_MAX / 4) /* bytes of what cannot be done */

struct neap__part_costs {
	const struct neap_chain *chain;
	int64_t n; /* stages; the loss is stage n */
	/* By neap__pair(i,t): least bytes of C(i,t,.) and D(i,t,.). */
	int64_t *need_c, *need_d;
	/* The same by neap__row_pair(i,t): what a left part i..j-1 asks, j running. */
	int64_t *left_c, *left_d;
	/* By neap__row_pair(i,j-1): going from i to j; bytes without g_{t+1}. */
	int64_t *advance_peak, *record_peak; /* P(i,j,t,0) and P(i,j,t,1) less g_{t+1} */
	double *advance, *record;	     /* seconds; record: the last stage leaves its tape */
	void *block;
};

/* Pairs i <= t in columns of t. */
static inline int64_t neap__pair(int64_t i, int64_t t)
{
	return t * (t + 1) / 2 + i;
}

/* Pairs i <= t in rows of i. */
static inline int64_t neap__row_pair(int64_t n, int64_t i, int64_t t)
{
	return i * (n + 1) - i * (i + 1) / 2 + t;
}

/* 0 or -ENOMEM; free in every case. */
int neap__part_costs_fill(struct neap__part_costs *x, const struct neap_chain *chain);
void neap__part_costs_free(struct neap__part_costs *x);

/* Bytes that keeping x_j takes once stage j - 1 is recorded: its tape, and x_j beside. */
int64_t neap__stage_resume(const struct neap_chain *c, int64_t j);
/* Bytes of the gradient that is there while parts that end with t are done. */
int64_t neap__stage_after(const struct neap_chain *c, int64_t t);
/* Stage i alone (taped: its tape is there and not counted): bytes, seconds. */
int64_t neap__leaf_need(const struct neap_chain *c, int64_t i, int taped);
double neap__leaf_cost(const struct neap_chain *c, int64_t i, int taped);
/* D(i,t,.) is the backward of t and then C(i,t-1,.): its bytes, i < t. */
int64_t neap__first_need(const struct neap__part_costs *x, int64_t i, int64_t t);

/* Least bytes of C (taped: D) of i..t by way of j, recording j - 1 or not. */
static inline int64_t neap__split_need(
	const struct neap__part_costs *x, int64_t i, int64_t t, int64_t j, int taped, int record)
{
	const struct neap_chain *c = x->chain;
	int64_t at = neap__row_pair(x->n, i, j - 1), after = neap__stage_after(c, t);
	int64_t back = taped ? (int64_t)c->stages->tape[t] : 0;
	int64_t right = (taped ? x->need_d : x->need_c)[neap__pair(j, t)];
	int64_t left = (record ? x->left_d : x->left_c)[at] - back;
	int64_t peak = after + (record ? x->record_peak : x->advance_peak)[at];
	right += record ? neap__stage_resume(c, j) : (int64_t)c->stages->state[j];
	left += record ? (int64_t)c->stages->tape[j - 1] : 0;
	int64_t most = right > left ? right : left;
	return peak > most ? peak : most;
}

#endif
