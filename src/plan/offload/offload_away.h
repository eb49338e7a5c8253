/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offload_away.h: the plan of stages that needs the least memory and no search: all tapes, or all
 * states, leave for a tier and come back one by one, and every transfer is waited for.
 */
#ifndef NEAP_PLAN_OFFLOAD_OFFLOAD_AWAY_H
#define NEAP_PLAN_OFFLOAD_OFFLOAD_AWAY_H

#include "plan/core/action_list.h"

/*
 * Such a plan in as few bytes as it takes, which *least becomes. NEAP_EINFEASIBLE: no tier holds
 * what leaves; -ENOMEM.
 */
int neap__offload_away(
	struct neap__action_list *out, const struct neap_problem *problem, uint64_t *least);

#endif
