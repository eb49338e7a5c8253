/* SPDX-License-Identifier: Apache-2.0 */
/*
 * multiread.h: the best splits inside a block whose first state lies on the slow tier and may be
 * read again as often as that pays. For blocks of few steps and few slots, where a read hidden
 * behind the computation is cheaper than a slot.
 *
 *     l          steps of a part of the block
 *     C, c       slots of the block; slots that are free
 *     P, S, A    bytes of fast memory, of a state and of a tape
 *     f          seconds of an advance
 *     y          steps of the left part
 *     rho        price in seconds of a read or write of a state: 0 where transfers are hidden
 *     m_c        floor((P - (C - c) S) / A), steps that are recorded at once
 *     V1, V0     least seconds besides recording and reversal of each step; the first state is
 *                live and on the tier (V1), or live only (V0)
 *
 *     V1(l,c) = 0 if l <= m_c, else min_y of   y f + V0(l-y,c) + rho + V1(y,c)   read again
 *                                              y f + V0(l-y,c-1) + V1(y,c)       kept in a slot
 *     V0(l,c) = 0 if l <= m_c, else min_y of   y f + V0(l-y,c-1) + V0(y,c)       kept in a slot
 *                                         or   rho + V1(l,c)                     written
 *
 * Ours; O(l^2 C) operations.
 */
#ifndef NEAP_PLAN_BLOCKS_MULTIREAD_H
#define NEAP_PLAN_BLOCKS_MULTIREAD_H

#include <neap/plan.h>

/* The splits of all parts of up to `steps` steps. */
struct neap__multiread {
	int64_t steps, slots;
	struct neap__multiread_row {
		int32_t split; /* y; 0: a leaf */
		int32_t how;   /* enum neap__multiread_how */
	} * stored, *fresh;    /* [slots + 1][steps + 1]: of V1, of V0 */
	double *cost;	       /* V0, then V1 */
	int64_t room;	       /* cells allocated of each */
};
enum neap__multiread_how { NEAP__MULTIREAD_KEEP, NEAP__MULTIREAD_AGAIN, NEAP__MULTIREAD_WRITE };

/*
 * Fills the splits; `price` is rho. 0, -ENOMEM, or NEAP_EINFEASIBLE: the block cannot be done,
 * or has more than 4096 steps. *m is all zero or was filled before.
 */
int neap__multiread_make(struct neap__multiread *m, const struct neap_chain *chain, int64_t steps,
	int64_t pool, double price);
void neap__multiread_free(struct neap__multiread *m);
/* The split of a part of l steps with c free slots; rows: m->stored for V1, m->fresh for V0. */
static inline const struct neap__multiread_row *neap__multiread_at(const struct neap__multiread *m,
	const struct neap__multiread_row *rows, int64_t l, int64_t c)
{
	return &rows[c * (m->steps + 1) + l];
}
/* V1 with all slots: the cost of a block of l steps, in seconds. */
static inline double neap__multiread_cost(const struct neap__multiread *m, int64_t l)
{
	return m->cost[m->room + m->slots * (m->steps + 1) + l];
}

#endif
