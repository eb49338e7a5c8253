/* SPDX-License-Identifier: Apache-2.0 */
/* tree_schedule.h: the actions of a chain that is taken apart as a tree says (chain_tree.h). */
#ifndef NEAP_PLAN_STAGES_TREE_SCHEDULE_H
#define NEAP_PLAN_STAGES_TREE_SCHEDULE_H

#include "plan/core/schedule.h"
#include "plan/stages/chain_tree.h"

/* As neap__strategy.open, where stages are grouped as `how` says. NEAP_EINFEASIBLE: no room. */
int neap__tree_schedule_open(struct neap_schedule *s, const struct neap__chain_grouping *how);

#endif
