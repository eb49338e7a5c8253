/* SPDX-License-Identifier: Apache-2.0 */
/*
 * online_placement.h: where to keep states while a chain goes on and nobody knows for how
 * long (Wang, Moin and Iaccarino 2009; Stumm and Walther 2010). States are kept at
 * p_0 = 0 < p_1 < ... < p_k; part i, from p_i to p_{i+1} (the last one to the live
 * state), will be reversed with i states before it and costs C(l_i, i) advance steps
 * (leaf_revolve.h). Taking state i away merges two parts and leaves one slot more to each
 * later part:
 *
 *     D_i = C(l_{i-1} + l_i, i-1) - C(l_{i-1}, i-1) - C(l_i, i)
 *           + sum_{j > i} ( C(l_j, j-1) - C(l_j, j) )
 *
 * The live state is kept, in a free slot or in place of the state with the least
 * D_i (of equal ones
 * the first, or the last where there are many), as soon as that costs no more than another step
 * without. With c slots and one tape that is optimal up to (c+1)(c+2)/2 + 1 steps:
 * part after part grows to its c - i + 1 steps, the states behind it lie one step
 * apart, in a ring. Otherwise new states lie at least c/32 steps and 2^-16 of the
 * way so far apart, so that 10^6 of them last for any chain; all that is known of
 * the parts before a change is kept.
 */
#ifndef NEAP_PLAN_ONLINE_ONLINE_PLACEMENT_H
#define NEAP_PLAN_ONLINE_ONLINE_PLACEMENT_H

#include "plan/recompute/leaf_revolve.h"

struct neap__kept_state {
	int64_t t, slot;
	int64_t here;	/* C(l_i, i); these five not of the last one */
	int64_t before; /* C(l_i, i-1) */
	int64_t gain;	/* sum over 1..i of before - here, at most 0 */
	int64_t least;	/* min over 1..i of D less the later parts' gain */
	int64_t first;	/* the first that has it; 0: none */
	int64_t level;	/* of the part, once the chain is being reversed */
};

struct neap__placement {
	struct neap__leaf_revolve *costs; /* borrowed */
	struct neap__kept_state *kept;
	int64_t count, room;
	int64_t most;  /* states that may be kept */
	int64_t slots; /* used so far */
	int64_t newest;
	int ring;     /* in the optimal range, all slots taken: */
	int64_t full; /* parts as long as they may be; the next one grows */
	int64_t head; /* entries from full + 1 on are a ring, which begins there */
};

/* x_0 is kept in slot 0. costs->slots at least 1. 0 or -ENOMEM. */
int neap__placement_open(struct neap__placement *x, struct neap__leaf_revolve *costs);
/* Room for so many. */
int neap__placement_reserve(struct neap__placement *x, int64_t room);
/* Is it time to keep the live state, at t? */
int neap__placement_due(const struct neap__placement *x, int64_t t);
/* The next such t, or one 2^40 steps ahead. */
int64_t neap__placement_until(const struct neap__placement *x, int64_t t);
/*
 * Keeps the live state, at t, at the end of the list. *evicted is the state that makes
 * room for it, its slot is the new one's; evicted->slot = -1: none has to. 0 or -ENOMEM.
 */
int neap__placement_keep(struct neap__placement *x, int64_t t, struct neap__kept_state *evicted);
/* Ends the ring: the list is in order. */
void neap__placement_settle(struct neap__placement *x);
/* Adds t and no more to the list; entries above its end keep their slots. Its slot, or -ENOMEM. */
int64_t neap__placement_push(struct neap__placement *x, int64_t t);
void neap__placement_free(struct neap__placement *x);

#endif
