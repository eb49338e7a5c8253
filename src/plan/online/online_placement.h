/* SPDX-License-Identifier: Apache-2.0 */
/*
 * online_placement.h: chooses the states to keep while a chain of unknown length advances
 * (Wang, Moin and Iaccarino 2009; Stumm and Walther 2010). When the chain ends, each part
 * between two kept states is reversed by Revolve with leaves (leaf_revolve.h), the last first.
 *
 *     k        the last kept state's number; k + 1 states are kept
 *     p_i      step of kept state i; 0 = p_0 < p_1 < ... < p_k
 *     l_i      steps of part i, from p_i to p_{i+1}; the last part ends at the live state
 *     C(l,i)   advance steps that reverse l steps with i slots taken
 *     c        slots
 *     D_i      what dropping kept state i costs: parts i - 1 and i become one part, and each
 *              later part has a slot more
 *
 *     D_i = C(l_{i-1} + l_i, i-1) - C(l_{i-1}, i-1) - C(l_i, i)
 *           + sum_{j > i} ( C(l_j, j-1) - C(l_j, j) )
 *
 * The live state is kept, in a free slot or in place of the state with the least D_i, as soon
 * as that costs no more than another step without. Of equal D_i the first state goes, or the
 * last where there are many slots. With c slots and leaves of one step this is optimal up to
 * (c+1)(c+2)/2 + 1 steps: part i grows to its c - i + 1 steps, one part after the other, while
 * the states behind it lie one step apart in a ring. In longer chains new states lie at least
 * c/32 steps apart, and 2^-16 of the way so far, so that 10^6 of them suffice for any chain.
 * The sums over the parts before a change stay valid, so a change costs no pass over all.
 */
#ifndef NEAP_PLAN_ONLINE_ONLINE_PLACEMENT_H
#define NEAP_PLAN_ONLINE_ONLINE_PLACEMENT_H

#include "plan/recompute/leaf_revolve.h"

/* Kept state i and its part. Fields `here` to `first` are not set for the last state. */
struct neap__kept_state {
	int64_t t, slot; /* p_i and its slot */
	int64_t here;	 /* C(l_i, i) */
	int64_t before;	 /* C(l_i, i-1) */
	int64_t gain;	 /* sum over 1..i of before - here, at most 0 */
	int64_t least;	 /* min over 1..i of D, without the gain of later parts */
	int64_t first;	 /* the state that has it; 0: none */
	int64_t level;	 /* of the part (leaf_revolve.h), while the chain is reversed */
};

struct neap__placement {
	struct neap__leaf_revolve *costs; /* borrowed */
	struct neap__kept_state *kept;
	int64_t count, room;
	int64_t most;  /* states that may be kept */
	int64_t slots; /* used so far */
	int64_t newest;
	int ring;	  /* in the optimal range, with all slots taken */
	int64_t full;	  /* in the ring: parts at their full length; the next part grows */
	int64_t head;	  /* in the ring: where it begins among the entries full + 1, ... */
	int first_leaves; /* neap__placement_forget_first will be called: there is no ring */
};

/* Begins with x_0 kept in slot 0; costs->slots must be 1 or more. 0 or -ENOMEM. */
int neap__placement_open(struct neap__placement *x, struct neap__leaf_revolve *costs);
/* Allocates room for `room` kept states. 0 or -ENOMEM. */
int neap__placement_reserve(struct neap__placement *x, int64_t room);
/* Returns 1 where the live state, at step t, is to be kept now, else 0. */
int neap__placement_due(const struct neap__placement *x, int64_t t);
/* The next step beyond t at which the live state is to be kept, or a step about 2^40 ahead. */
int64_t neap__placement_until(const struct neap__placement *x, int64_t t);
/*
 * Adds the live state, at step t, to the end of the list. *evicted gets the state that is
 * dropped for it, whose slot it takes; evicted->slot = -1: no state is. 0 or -ENOMEM.
 */
int neap__placement_keep(struct neap__placement *x, int64_t t, struct neap__kept_state *evicted);
/* Takes p_0 off the list, since it lies elsewhere: p_1 becomes p_0. 0 or -ENOMEM. */
int neap__placement_forget_first(struct neap__placement *x);
/* Makes the state and the slot of `first` p_0's. 0 or -ENOMEM. */
int neap__placement_set_first(struct neap__placement *x, const struct neap__kept_state *first);
/* Ends the ring: puts the list in order. */
void neap__placement_settle(struct neap__placement *x);
/*
 * Adds a state at step t to the list without a look at costs; entries above the end of the
 * list keep their slots. Returns its slot, or -ENOMEM.
 */
int64_t neap__placement_push(struct neap__placement *x, int64_t t);
void neap__placement_free(struct neap__placement *x);

#endif
