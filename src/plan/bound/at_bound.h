/* SPDX-License-Identifier: Apache-2.0 */
/* at_bound.h: when a search may end, since no plan is faster. */
#ifndef NEAP_PLAN_BOUND_AT_BOUND_H
#define NEAP_PLAN_BOUND_AT_BOUND_H

#define NEAP__AT_BOUND 1e-6 /* relative */

/*
 * 1 where a plan takes as long as the lower bound says. A plan that takes less shows that the bound
 * is too high (docs/measurements.md says where it can be), so that there may be faster ones.
 */
static inline int neap__at_bound(double makespan, double bound)
{
	return makespan <= bound * (1 + NEAP__AT_BOUND) && makespan >= bound * (1 - NEAP__AT_BOUND);
}

#endif
