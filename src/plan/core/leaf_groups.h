/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leaf_groups.h: plans that record and reverse groups of g steps together, of rows whose leaves
 * are single steps (leaf_steps of strategy.h). A group is a step of a shorter chain: the row plans
 * that chain, and the steps of its schedule are multiplied by g. The last group may be shorter; it
 * is recorded the first time it is reached, so that no step is advanced through it.
 *
 *     T, n     steps of the chain; n = ceil(T/g) groups
 *     s        slots that remain beside g tapes
 *
 * A plan of single steps makes about 3 T calls of the model, one of groups 3 n, with more advance
 * steps if fewer slots remain. So groups can be faster only if a call has a cost (chain.call); the
 * row's own guarantee then holds for chains of groups. Our own method.
 */
#ifndef NEAP_PLAN_CORE_LEAF_GROUPS_H
#define NEAP_PLAN_CORE_LEAF_GROUPS_H

#include "plan/core/strategy.h"

/* If groups make the feasible plan of the row faster, replaces it. 0 or a negative code. */
int neap__leaf_groups_improve(struct neap_plan *plan, const struct neap__strategy *row,
	const struct neap_problem *problem, const struct neap_params *fixed);

#endif
