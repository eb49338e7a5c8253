/* SPDX-License-Identifier: Apache-2.0 */
/* at_bound.h: when a search may end, since no plan is faster. */
#ifndef NEAP_PLAN_BOUND_AT_BOUND_H
#define NEAP_PLAN_BOUND_AT_BOUND_H

#define NEAP__AT_BOUND 1e-6 /* relative; PROGRAM_ROUNDING of lower_bound.c */

/* 1 if a plan takes as long as the lower bound, but for what rounding can have taken from it. */
static inline int neap__at_bound(double makespan, double bound)
{
	return makespan <= bound * (1 + NEAP__AT_BOUND);
}

#endif
