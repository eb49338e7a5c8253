/* SPDX-License-Identifier: Apache-2.0 */
/*
 * online_placement.h: chooses the checkpoints while a chain of unknown length advances (Wang, Moin
 * and Iaccarino 2009; Stumm and Walther 2010). When the chain ends, each part between two
 * checkpoints is reversed by Revolve with leaves (leaf_revolve.h), the last part first.
 *
 *     k        index of the last checkpoint; there are k + 1
 *     p_i      step of checkpoint i; 0 = p_0 < p_1 < ... < p_k
 *     l_i      steps of part i, from p_i to p_{i+1}; the last part ends at the live state
 *     C(l,i)   advance steps that reverse l steps with i slots in use
 *     c        slots
 *     D_i      cost of dropping checkpoint i: parts i - 1 and i become one part, and each later
 *              part has one more slot
 *
 *     D_i = C(l_{i-1} + l_i, i-1) - C(l_{i-1}, i-1) - C(l_i, i)
 *           + sum_{j > i} ( C(l_j, j-1) - C(l_j, j) )
 *
 * The live state becomes a checkpoint, in a free slot or in the slot of the checkpoint with the
 * smallest D_i, as soon as this costs no more than another step without it. If several D_i are
 * equal the first checkpoint is dropped, or the last if there are many slots. With c slots and
 * leaves of one step this is optimal up to (c+1)(c+2)/2 + 1 steps: part i grows to its c - i + 1
 * steps, one part after the other, while the checkpoints after it are one step apart, in a ring. In
 * longer chains new checkpoints are at least c/32 steps apart, and at least 2^-16 of the steps so
 * far, so 10^6 of them suffice for any chain. Sums over the parts before a change remain valid, so
 * a change does not need a pass over all parts.
 */
#ifndef NEAP_PLAN_ONLINE_ONLINE_PLACEMENT_H
#define NEAP_PLAN_ONLINE_ONLINE_PLACEMENT_H

#include "plan/recompute/leaf_revolve.h"

/* Checkpoint i and its part. Fields `here` to `first` are not set for the last checkpoint. */
struct neap__kept_state {
	int64_t t, slot; /* p_i and its slot */
	int64_t here;	 /* C(l_i, i) */
	int64_t before;	 /* C(l_i, i-1) */
	int64_t gain;	 /* sum over 1..i of before - here, at most 0 */
	int64_t least;	 /* min over 1..i of D, without the gain of later parts */
	int64_t first;	 /* index of the checkpoint with this minimum; 0: none */
	int64_t level;	 /* level of the part (leaf_revolve.h), in the backward pass */
};

struct neap__placement {
	struct neap__leaf_revolve *costs; /* borrowed */
	struct neap__kept_state *kept;
	int64_t count, room;
	int64_t most;  /* limit of checkpoints */
	int64_t slots; /* slots used so far */
	int64_t newest;
	int ring;	  /* 1: in the optimal range, with all slots in use */
	int64_t full;	  /* ring: number of parts with their full length; the next part grows */
	int64_t head;	  /* ring: its first entry, relative to entry full + 1 */
	int first_leaves; /* neap__placement_forget_first will be called: there is no ring */
};

/* Starts with x_0 in slot 0; costs->slots must be at least 1. Returns 0 or -ENOMEM. */
int neap__placement_open(struct neap__placement *x, struct neap__leaf_revolve *costs);
/* Allocates `room` rows. Returns 0 or -ENOMEM. */
int neap__placement_reserve(struct neap__placement *x, int64_t room);
/* Returns 1 if the live state, at step t, must become a checkpoint now, otherwise 0. */
int neap__placement_due(const struct neap__placement *x, int64_t t);
/* The next step after t at which a checkpoint is due, or a step about 2^40 ahead. */
int64_t neap__placement_until(const struct neap__placement *x, int64_t t);
/*
 * Adds the live state, at step t, to the end of the list. Sets *evicted to the checkpoint that is
 * dropped for it and whose slot it uses; evicted->slot = -1: none. Returns 0 or -ENOMEM.
 */
int neap__placement_keep(struct neap__placement *x, int64_t t, struct neap__kept_state *evicted);
/* Removes p_0 from the list because it is stored elsewhere: p_1 becomes p_0. 0 or -ENOMEM. */
int neap__placement_forget_first(struct neap__placement *x);
/* Sets step and slot of p_0 to those of `first`. Returns 0 or -ENOMEM. */
int neap__placement_set_first(struct neap__placement *x, const struct neap__kept_state *first);
/* Ends the ring and sorts the list. */
void neap__placement_settle(struct neap__placement *x);
/*
 * Adds a checkpoint at step t to the list without considering costs; entries after the end of the
 * list keep their slots. Returns its slot, or -ENOMEM.
 */
int64_t neap__placement_push(struct neap__placement *x, int64_t t);
void neap__placement_free(struct neap__placement *x);

#endif
