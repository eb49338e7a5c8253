/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offload_search.h: plans with offload for chains of at most 300 stages, found by trying
 * choices (offload_choice.h) and simulating each.
 */
#ifndef NEAP_PLAN_OFFLOAD_OFFLOAD_SEARCH_H
#define NEAP_PLAN_OFFLOAD_OFFLOAD_SEARCH_H

#include "plan/offload/offload_choice.h"

#define NEAP__OFFLOAD_SEARCH_STAGES 120 /* longer chains are searched in groups; chosen */

/* A search: what is tried, and the best so far. */
struct neap__offload_search {
	struct neap_problem bounded; /* its memory is below 2^61 */
	const struct neap_problem *problem;
	struct neap__offload fit;
	struct neap__action_list plain;
	struct neap__chain_table tables;	/* of the budget */
	const struct neap__chain_table *groups; /* them, or NULL: groups of one stage */
	struct neap__offload_choice now, trial, best;
	double makespan; /* of best; infinite: none */
	int64_t left;	 /* simulations */
};

/* 0 or a negative code; free in every case. */
int neap__offload_search_init(
	struct neap__offload_search *x, const struct neap_problem *problem, int64_t effort);
/* The same without tables: groups are of one stage. */
int neap__offload_search_init_bare(
	struct neap__offload_search *x, const struct neap_problem *problem, int64_t effort);
void neap__offload_search_fini(struct neap__offload_search *x);

/* Seconds of a choice, infinite where it does not fit; negative code. Best is kept. */
int neap__offload_search_try(struct neap__offload_search *x,
	const struct neap__offload_choice *choice, double *makespan);
/* The same after relieving it, which changes it. */
int neap__offload_search_relieve(
	struct neap__offload_search *x, struct neap__offload_choice *choice, double *makespan);

/* Everything recorded, or every state kept, relieved: what needs the least memory. */
int neap__offload_search_extremes(struct neap__offload_search *x);

/*
 * `chain` with offload added greedily: its plans for budgets from this one up to
 * all there is, each relieved until it fits.
 */
int neap__offload_search_greedy(struct neap__offload_search *x);

/* Local search from the best choice (offload_anneal.c), until `bound` seconds or no effort is left.
 */
int neap__offload_search_improve(struct neap__offload_search *x, double bound);

/* The best as a schedule with transfers. NEAP_EINFEASIBLE: there is none. */
int neap__offload_search_list(struct neap__offload_search *x, struct neap__action_list *out);

/*
 * auto: fills the plan where it finds one; opens it. `effort` 0: the default.
 */
int neap__offload_auto_solve(
	struct neap_plan *plan, const struct neap_problem *problem, int64_t effort);
int neap__offload_auto_open(struct neap_schedule *s);
/* The least budget for which it finds a plan, or `chain` has one. */
int neap__offload_auto_least(uint64_t *least, const struct neap_problem *problem, int64_t effort);

#endif
