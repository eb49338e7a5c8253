/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offload_groups.h: plans with offload for chains of more stages than can be searched: one for a
 * chain of groups of stages (stages/stage_groups.h), whose actions are then those on the stages.
 */
#ifndef NEAP_PLAN_OFFLOAD_OFFLOAD_GROUPS_H
#define NEAP_PLAN_OFFLOAD_OFFLOAD_GROUPS_H

#include "plan/offload/offload_least.h"

/* As `make`, for the chain of so many groups. NEAP_EINFEASIBLE: no plan of groups fits. */
int neap__offload_grouped(struct neap__action_list *out, const struct neap_problem *problem,
	neap__offload_make *make, int64_t effort, int any, int64_t groups);

#endif
