/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offload_exact.h: the fastest schedule of a chain of a few unequal stages and at most
 * one tier, recomputation and transfers together, by best-first search.
 */
#ifndef NEAP_PLAN_OFFLOAD_OFFLOAD_EXACT_H
#define NEAP_PLAN_OFFLOAD_OFFLOAD_EXACT_H

#include "plan/core/action_list.h"

#define NEAP__STAGEEXACT_STAGES 8 /* at most */

/*
 * 1 and a schedule, which no other beats where `proved`; 0 where there is none, or
 * none was found among `nodes` states; or a negative code. A schedule that takes
 * `above` seconds or more is not looked for.
 */
int neap__offload_exact(struct neap__action_list *out, const struct neap_problem *problem,
	int64_t nodes, double above, int *proved);

#endif
