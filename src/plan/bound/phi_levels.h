/* SPDX-License-Identifier: Apache-2.0 */
/*
 * phi_levels.h: Phi_t of recompute_cost.h level by level, in one row that is overwritten: what a
 * bound needs of it. Sums have 128 bits, so that no level is too large.
 *
 * A row has at most T slots, since a schedule has at most T different states. It may have fewer:
 * if leaf(1) + ... + leaf(J) >= T, the row ends at slot J, and is marked as cut. Then
 * Phi_2(P) >= leaf(0) + T, in the cut row as well. The levels that a bound uses are unharmed:
 *
 *     Phi_0 and Phi_1 have no sums and are exact, for every slot of the row.
 *     t = 2: with Phi_2 in it, a row is 2 T - ... <= leaf(0) + T at best, which follows from
 *            level 1, T - ... <= leaf(0). Every other row of level 2 has Phi_1 only.
 *     t >= 3: not used, since all users stop at Phi_t(P) - Phi_{t-1}(P) >= T, which is true at 2.
 */
#ifndef NEAP_PLAN_BOUND_PHI_LEVELS_H
#define NEAP_PLAN_BOUND_PHI_LEVELS_H

#include <neap/plan.h>

#define NEAP__PHI_CELLS_MOST 4000000 /* entries of a row, and of all rows of one bound */

typedef __int128 neap__wide;

/* Level t of Phi: Phi_t in addition to j slots is value[j], j <= slots. cut: see above. */
struct neap__phi_levels {
	int cut;
	int64_t pool, state, tape, slots; /* tape 0: a leaf is one tape, which is free */
	int64_t t;
	neap__wide *value;
};

/* Level 0; the caller frees x->value. 0, or -1: too large, or out of memory (which is noted). */
int neap__phi_levels_init(struct neap__phi_levels *x, int64_t pool, const struct neap_chain *c);
void neap__phi_levels_next(struct neap__phi_levels *x);
/* The steps that are recorded at once beside j slots. */
static inline neap__wide neap__phi_levels_leaf(const struct neap__phi_levels *x, int64_t j)
{
	return x->tape ? (x->pool - j * x->state) / x->tape : 1;
}

#endif
