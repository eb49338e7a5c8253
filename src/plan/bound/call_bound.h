/* SPDX-License-Identifier: Apache-2.0 */
/* call_bound.h: what calls cost at least, as a part of the steps' costs. */
#ifndef NEAP_PLAN_BOUND_CALL_BOUND_H
#define NEAP_PLAN_BOUND_CALL_BOUND_H

#include <neap/chain.h>

/*
 * 1 and a problem whose calls are free and whose steps cost that much more that no
 * schedule takes longer than it does in `problem`; 0 where calls are free.
 */
int neap__call_bound_spread(struct neap_problem *spread, const struct neap_problem *problem);

#endif
