/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recompute_cost.h: the least recomputation that a pool of fast memory allows, with no slow
 * tier. The table bounds the cost from below for every length and tells where to split a part.
 *
 *     S, A       bytes of a state and of a tape
 *     p          bytes of fast memory for kept states and tapes
 *     j          kept states (slots taken); the table holds p = pool - j S, j = 0..slots
 *     n          steps of a part whose first state is live, but not kept
 *     t          level: executions of a step that are counted as given
 *     leaf(p)    floor(p / A), the steps that are recorded at once
 *     extra      forward executions beyond one a step
 *     Phi_t(p)   max over n and over schedules of (t n - extra)
 *     L_t(p)     the longest length at which Phi_t(p) is reached
 *
 *     Phi_0 = 0,   Phi_t(p) = max( t leaf(p), Phi_{t-1}(p) + Phi_t(p - S) )
 *     extra(n, p) >= max_t ( t n - Phi_t(p) )
 *     L_t(p) = leaf(p) or L_{t-1}(p) + L_t(p - S), as the maximum was reached
 *
 * The second term of Phi_t holds only while p - S >= A. The maximum over t is the greatest
 * convex function below the true cost (its hull), and equals the cost at n = L_t(p). The
 * recurrence is ours; with leaf(p) = 1 it is Revolve (binomial.h), where the hull is the cost.
 */
#ifndef NEAP_PLAN_RECOMPUTE_RECOMPUTE_COST_H
#define NEAP_PLAN_RECOMPUTE_RECOMPUTE_COST_H

#include <neap/plan.h>

struct neap__recompute {
	int64_t steps, pool, state, tape, leaf_most;
	int64_t slots;	/* the most that leave room for a tape, at most steps - 1 */
	int64_t levels; /* the rows t = 0..levels are filled */
	int64_t reach;	/* the longest length, at most `steps`, that the rows cover */
	struct neap__recompute_cell {
		int64_t value, length; /* Phi_t and L_t, 2^62 where they are larger */
	} * cells;		       /* [levels + 1][slots + 1] */
	int64_t room;		       /* cells allocated */
};

/*
 * Fills the table for parts of up to `steps` >= 1 steps. leaf_most limits the steps of a leaf
 * (0: no limit); nothing else limits a leaf of tapes of 0 bytes. `reach` stays below `steps`
 * where the table would exceed 2^21 cells or where no slot fits. *costs is all zero or was
 * filled before; neap__recompute_free frees the table. 0 or -ENOMEM.
 */
int neap__recompute_make(struct neap__recompute *costs, int64_t steps, int64_t pool, int64_t state,
	int64_t tape, int64_t leaf_most);
void neap__recompute_free(struct neap__recompute *costs);

/* The steps of a leaf beside j kept states. */
int64_t neap__recompute_leaf(const struct neap__recompute *costs, int64_t j);
/* L_t of the whole pool; of a level that is not filled, that of the last one. */
int64_t neap__recompute_length(const struct neap__recompute *costs, int64_t t);
/* The hull of `extra` for l <= reach steps beside j kept states, in steps. */
double neap__recompute_extra(const struct neap__recompute *costs, int64_t l, int64_t j);
/*
 * Returns y, the steps of the left part of l > leaf(j) steps beside j < slots kept states:
 * keep the first state, advance y steps, reverse the right part of l - y steps beside j + 1
 * kept states, then the left part of y steps beside j. 0: no split is possible.
 */
int64_t neap__recompute_split(const struct neap__recompute *costs, int64_t l, int64_t j);

#endif
