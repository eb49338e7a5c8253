/* SPDX-License-Identifier: Apache-2.0 */
/*
 * level_search.h: which tiers a plan of levels uses, and in which order they stand: the
 * variants of `h-revolve` and `disk-revolve`, tried one after the other.
 *
 * Variants: set * ORDERS + order. With n tiers, set 0 is all of them, 1..n each alone
 * beside the slots, n+1 the slots alone; n+2 the slots alone in Revolve's order, beyond
 * that each tier alone, without the slots, in that order.
 */
#ifndef NEAP_PLAN_LEVELS_LEVEL_SEARCH_H
#define NEAP_PLAN_LEVELS_LEVEL_SEARCH_H

#include "plan/core/schedule.h"
#include "plan/levels/level_solver.h"

/* Work of the exact tables (neap__levels_solve) that chains of few steps get in any case. */
#define NEAP__LEVELS_SHORT 512
#define NEAP__LEVELS_SHORT_WORK 20000000

/* Is `a` to stand below `b` when levels are ordered by the sum of write and read? */
int neap__level_search_lower(const struct neap__level *a, const struct neap__level *b);

/* Tries sets from..to and keeps in `plan` what is better than what is there. */
int neap__level_search_sets(struct neap_plan *plan, const struct neap_problem *problem,
	const struct neap_params *fixed, int from, int to);

/* Opens the schedule of the variant that the plan names. */
int neap__level_search_open(struct neap_schedule *s);

#endif
