/* SPDX-License-Identifier: Apache-2.0 */
/*
 * call_bound.h: spreads the price of calls over the steps, so that a lower bound needs to know
 * steps only. A call of n steps costs call + n f seconds, that is at least n (f + call / m)
 * where no call has more than m steps.
 */
#ifndef NEAP_PLAN_BOUND_CALL_BOUND_H
#define NEAP_PLAN_BOUND_CALL_BOUND_H

#include <neap/chain.h>

/*
 * Returns 1 and sets *spread to a problem whose calls are free and whose steps cost more, such
 * that no schedule takes longer there than in `problem`. Returns 0 and leaves *spread alone
 * where calls are free already, or for unequal stages.
 */
int neap__call_bound_spread(struct neap_problem *spread, const struct neap_problem *problem);

#endif
