/* SPDX-License-Identifier: Apache-2.0 */
/*
 * recompute_cost.h: what a pool of fast memory can do without a slow tier. Phi_t(p) is the
 * most that "t executions for each step" can save: the maximum, over lengths n and
 * schedules of n steps, of t n - (forward executions beyond one a step), from a
 * start that is live but not stored, in p bytes of slots and tapes:
 *
 *     Phi_0 = 0,   Phi_t(p) = max( t leaf(p), Phi_{t-1}(p) + Phi_t(p - S) while p - S >= A )
 *     leaf(p) = floor(p / A)
 *
 * so that n steps take at least max_t (t n - Phi_t(p)) further executions, a
 * convex hull of the optimum that is met at the lengths
 * L_t(p) = leaf(p) or L_{t-1}(p) + L_t(p - S). With leaf = 1 it is Revolve.
 *
 * The table holds p = pool - j S for j = 0..slots.
 */
#ifndef NEAP_PLAN_RECOMPUTE_RECOMPUTE_COST_H
#define NEAP_PLAN_RECOMPUTE_RECOMPUTE_COST_H

#include <neap/plan.h>

struct neap__recompute {
	int64_t steps, pool, state, tape, leaf_most;
	int64_t slots;	/* the most that leave room for a tape, at most steps - 1 */
	int64_t levels; /* rows t = 0..levels are there */
	int64_t reach;	/* the longest length, at most `steps`, that the rows cover */
	struct neap__recompute_cell {
		int64_t value, length; /* Phi_t and L_t, saturating */
	} * cells;
	int64_t room;
};

/*
 * The table for chains of up to `steps` >= 1 steps. leaf_most limits the tapes of
 * a leaf (0: no limit); a tape of 0 bytes has no other limit. At most 2^21 cells:
 * then, or where no slot fits, reach may be less than steps. Start from all zero;
 * may be made again; free with neap__recompute_free. 0 or -ENOMEM.
 */
int neap__recompute_make(struct neap__recompute *costs, int64_t steps, int64_t pool, int64_t state,
	int64_t tape, int64_t leaf_most);
void neap__recompute_free(struct neap__recompute *costs);

/* Tapes that fit beside j slots. */
int64_t neap__recompute_leaf(const struct neap__recompute *costs, int64_t j);
/* The hull: executions beyond one a step of l <= reach steps beside j slots. */
double neap__recompute_extra(const struct neap__recompute *costs, int64_t l, int64_t j);
/*
 * Where leaf(j) < l steps beside j < slots slots are to be cut: keep the start in
 * a slot, go y steps, reverse l - y steps beside j + 1 slots, then y beside j.
 */
int64_t neap__recompute_split(const struct neap__recompute *costs, int64_t l, int64_t j);

#endif
