/* SPDX-License-Identifier: Apache-2.0 */
/* level_bound.h: the lower bound of classic problems with several levels of memory. */
#ifndef NEAP_PLAN_BOUND_LEVEL_BOUND_H
#define NEAP_PLAN_BOUND_LEVEL_BOUND_H

#include <neap/plan.h>

/*
 * A lower bound on every schedule of a classic problem whose tiers are all
 * synchronous, 0 for other problems: the optimum (or its hull) of h-revolve, with
 * costs lowered to where both rise with the levels and a slot's write costs no more
 * than its read. There no copy past the live state pays, and exhaustive search on
 * tiny chains finds nothing below it.
 */
double neap__level_bound(const struct neap_problem *p);

#endif
