/* SPDX-License-Identifier: Apache-2.0 */
/*
 * level_search.h: tries which tiers a plan of levels uses, and in which order they stand: the
 * variants of `h-revolve` and `disk-revolve`. H-Revolve is optimal for an order in which
 * neither writes nor reads get cheaper; tiers whose writes and reads disagree have no such
 * order, so that several are tried.
 *
 *     n          tiers of the problem
 *     variant    set * orders + order; a plan names its variant
 *     set        0: the slots and all tiers       1..n: the slots and one tier
 *                n+1: the slots alone             n+2: the slots alone, in Revolve's order
 *                n+3..2n+2: one tier alone, in Revolve's order
 *     order      levels by write seconds, by read seconds, by their sum
 */
#ifndef NEAP_PLAN_LEVELS_LEVEL_SEARCH_H
#define NEAP_PLAN_LEVELS_LEVEL_SEARCH_H

#include "plan/core/schedule.h"
#include "plan/levels/level_solver.h"

/*
 * Chains of up to this length get this much work of the dynamic program (neap__levels_solve) in
 * any case, since proving their optimum is cheap.
 */
#define NEAP__LEVELS_SHORT 512
#define NEAP__LEVELS_SHORT_WORK 20000000

/* Returns 1 where `a` stands below `b` in the order of write plus read seconds, else 0. */
int neap__level_search_lower(const struct neap__level *a, const struct neap__level *b);

/* Tries sets from..to; *plan becomes the fastest plan found that is faster than *plan. */
int neap__level_search_sets(struct neap_plan *plan, const struct neap_problem *problem,
	const struct neap_params *fixed, int from, int to);

/* Opens the schedule of the variant that the plan names (a strategy's `open`). */
int neap__level_search_open(struct neap_schedule *s);

#endif
