/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offload_search.h: plans with offload for chains whose steps differ, found by trying
 * outlines (offload_choice.h).
 */
#ifndef NEAP_PLAN_STAGEAUTO_H
#define NEAP_PLAN_STAGEAUTO_H

#include "plan/offload/offload_choice.h"

#define NEAP__STAGESEARCH_STAGES 300 /* at most; longer chains: the named strategies */

/* A search: what is tried, and the best so far. */
struct neap__stagesearch {
	struct neap_problem bounded; /* its memory is below 2^61 */
	const struct neap_problem *problem;
	struct neap__offload fit;
	struct neap__script plain;
	struct neap__twotable tables;	     /* of the budget */
	const struct neap__twotable *groups; /* them, or NULL: groups of one stage */
	struct neap__outline now, trial, best;
	double makespan; /* of best; infinite: none */
	int64_t left;	 /* simulations */
};

/* 0 or a negative code; free in every case. */
int neap__stagesearch_init(
	struct neap__stagesearch *x, const struct neap_problem *problem, int64_t effort);
void neap__stagesearch_fini(struct neap__stagesearch *x);

/* Seconds of an outline, infinite where it does not fit; negative code. Best is kept. */
int neap__stagesearch_try(
	struct neap__stagesearch *x, const struct neap__outline *outline, double *makespan);
/* The same after relieving it, which changes it. */
int neap__stagesearch_relieve(
	struct neap__stagesearch *x, struct neap__outline *outline, double *makespan);

/* Everything recorded, or every state kept, relieved: what needs the least memory. */
int neap__stagesearch_extremes(struct neap__stagesearch *x);
/*
 * A budget in which these fit, or `chain` without tiers: the least one found; the
 * latter alone for more stages than are searched.
 */
int neap__stagesearch_least(uint64_t *least, const struct neap_problem *problem);

/*
 * `chain` with offload added greedily: its plans for budgets from this one up to
 * all there is, each relieved until it fits.
 */
int neap__stagesearch_greedy(struct neap__stagesearch *x);

/* The plan that this alone finds: a baseline to compare with. */
NEAP_API int neap__chain_offload(struct neap_plan *plan, const struct neap_problem *problem);

/* The plan of `chain`, if it fits. */
int neap__stagesearch_chain(struct neap__stagesearch *x);

/* Moves, better ones taken, then worse ones less and less often. */
int neap__stagesearch_improve(struct neap__stagesearch *x, double bound);

/* The best as a schedule with transfers. NEAP_EINFEASIBLE: there is none. */
int neap__stagesearch_script(struct neap__stagesearch *x, struct neap__script *out);

/*
 * auto: fills the plan where it finds one; opens it. `effort` 0: the default.
 */
int neap__stageauto_solve(
	struct neap_plan *plan, const struct neap_problem *problem, int64_t effort);
int neap__stageauto_open(struct neap_schedule *s);

#endif
