/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offload_exact.h: the fastest schedule of a chain of at most 8 stages and at most one tier,
 * recomputation and transfers together. It is A* search (Hart, Nilsson and Raphael, 1968) over
 * memory contents; the number of contents grows exponentially with the stages, which is why
 * longer chains are searched by choices (offload_search.h) only. A reference for the
 * planners that neap has.
 */
#ifndef NEAP_TESTS_PLAN_OFFLOAD_EXACT_H
#define NEAP_TESTS_PLAN_OFFLOAD_EXACT_H

#include "plan/core/action_list.h"

#define NEAP__OFFLOAD_EXACT_STAGES 8 /* at most */

/*
 * Searches at most `nodes` nodes for a schedule that takes less than `above` seconds. 1 and
 * the schedule, the fastest there is where *proved becomes 1; 0 where there is none or the
 * nodes did not do; or a negative code.
 */
int neap__offload_exact(struct neap__action_list *out, const struct neap_problem *problem,
	int64_t nodes, double above, int *proved);

#endif
