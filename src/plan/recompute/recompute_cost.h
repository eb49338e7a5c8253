/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recompute_cost.h: the minimum recomputation with a pool of fast memory and without a slow tier.
 * The table gives a lower bound of the cost for every length, and the split of a part.
 *
 *     S, A       bytes of a state and of a tape
 *     p          bytes of fast memory for checkpoints and tapes
 *     j          checkpoints (slots in use); the table has p = pool - j S, j = 0..slots
 *     n          steps of a part whose first state is live, but not stored
 *     t          level: number of executions per step that are free
 *     leaf(p)    floor(p / A), the steps that can be recorded at once
 *     extra      forward executions in addition to one per step
 *     Phi_t(p)   max over n and over schedules of (t n - extra)
 *     L_t(p)     the longest length at which Phi_t(p) is reached
 *
 *     Phi_0 = 0,   Phi_t(p) = max( t leaf(p), Phi_{t-1}(p) + Phi_t(p - S) )
 *     extra(n, p) >= max_t ( t n - Phi_t(p) )
 *     L_t(p) = leaf(p) or L_{t-1}(p) + L_t(p - S), as the maximum was reached
 *
 * The second term of Phi_t exists only if p - S >= A. The maximum over t is the greatest convex
 * function below the true cost (its hull), and equals the cost at n = L_t(p). The recurrence is our
 * own; with leaf(p) = 1 it is Revolve (binomial.h), for which the hull is the cost.
 */
#ifndef NEAP_PLAN_RECOMPUTE_RECOMPUTE_COST_H
#define NEAP_PLAN_RECOMPUTE_RECOMPUTE_COST_H

#include <neap/plan.h>

struct neap__recompute {
	int64_t steps, pool, state, tape, leaf_most;
	int64_t slots;	/* largest number that leaves memory for a tape, at most steps - 1 */
	int64_t levels; /* rows t = 0..levels are filled */
	int64_t reach;	/* the largest length, at most `steps`, that the rows cover */
	struct neap__recompute_cell {
		int64_t value, length; /* Phi_t and L_t, limited to 2^62 */
	} * cells;		       /* [levels + 1][slots + 1] */
	int64_t room;		       /* cells allocated */
};

/*
 * Fills the table for parts of up to `steps` >= 1 steps. leaf_most limits the steps of a leaf (0:
 * no limit), which is the only limit if tapes have 0 bytes. `reach` is below `steps` if the table
 * would exceed 2^21 cells (chosen) or if no slot fits. *costs is all zero or was filled before;
 * neap__recompute_free frees the table. Returns 0 or -ENOMEM.
 */
int neap__recompute_make(struct neap__recompute *costs, int64_t steps, int64_t pool, int64_t state,
	int64_t tape, int64_t leaf_most);
void neap__recompute_free(struct neap__recompute *costs);

/* The steps of a leaf with j checkpoints. */
int64_t neap__recompute_leaf(const struct neap__recompute *costs, int64_t j);
/* L_t of the whole pool; for a level that is not filled, the value of the last one. */
int64_t neap__recompute_length(const struct neap__recompute *costs, int64_t t);
/* The hull of `extra` for l <= reach steps with j checkpoints, in steps. */
double neap__recompute_extra(const struct neap__recompute *costs, int64_t l, int64_t j);
/*
 * Returns y, the steps of the left part of l > leaf(j) steps with j < slots checkpoints: store the
 * first state, advance y steps, reverse the right part of l - y steps with j + 1 checkpoints, then
 * the left part of y steps with j. 0: no split is possible.
 */
int64_t neap__recompute_split(const struct neap__recompute *costs, int64_t l, int64_t j);

#endif
