/* SPDX-License-Identifier: Apache-2.0 */
/*
 * level_bound.h: the lower bound of classic problems whose tiers are all synchronous: the optimum
 * of H-Revolve (level_solver.h), or the hull of its cost where the optimum is not proved.
 */
#ifndef NEAP_PLAN_BOUND_LEVEL_BOUND_H
#define NEAP_PLAN_BOUND_LEVEL_BOUND_H

#include <neap/plan.h>

/*
 * Seconds that no schedule of the problem beats; 0 for problems of another kind. Costs are
 * lowered until writes and reads both rise with the levels and the write of a slot costs no
 * more than its read. H-Revolve is optimal for such costs (Herrmann and Pallez 2020).
 * Their theorem is not proved here; it is confirmed by exhaustive search on tiny chains.
 */
double neap__level_bound(const struct neap_problem *p);

#endif
