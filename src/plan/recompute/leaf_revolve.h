/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leaf_revolve.h: Revolve with leaves: binomial checkpointing in which a leaf (a part that is
 * recorded and reversed at once) has as many steps as there is free fast memory for tapes. Classic
 * Revolve records one step at a time; here leaves grow when slots become free, which saves
 * recomputation whenever a tape is smaller than half the pool.
 *
 *     P        bytes of fast memory for checkpoints and tapes (`pool`)
 *     S, A     bytes of a state and of a tape
 *     j        checkpoints (slots in use)
 *     l        steps of a part
 *     m_j      floor((P - j S) / A), the steps of the longest leaf with j checkpoints
 *     y        steps of the left part of a split
 *     C(l,j)   minimum number of advance steps of a part
 *     t        level
 *     L_t(j)   full length: a length at which C equals its convex hull
 *
 *     C(l,j) = 0 for l <= m_j, else min_y ( y + C(l-y, j+1) + C(y, j) )
 *     hull of C:   max_t ( t l - Phi_t(j) ),   Phi_t(j) = max( t m_j, Phi_{t-1}(j) + Phi_t(j+1) )
 *     L_t(j) = m_j or L_{t-1}(j) + L_t(j+1), as the maximum was reached
 *
 * A part longer than its leaf saves its first state, advances y steps, reverses the right part
 * with one more slot in use, then the left part. S = A = 1 byte is the problem in which a slot
 * holds a state or a tape; A > P/2 is classic Revolve. Our own method, which extends Griewank and
 * Walther (2000). recompute_cost.h has the same hull for the search of `auto`, without exact costs
 * of small parts and without the numbers of saves and loads.
 */
#ifndef NEAP_PLAN_RECOMPUTE_LEAF_REVOLVE_H
#define NEAP_PLAN_RECOMPUTE_LEAF_REVOLVE_H

#include <stdint.h>

/* Numbers of actions that reverse a part, without the save of its first state by the caller. */
struct neap__leaf_use {
	int64_t advances, saves, loads;
	int64_t peak;  /* largest number of bytes of states and tapes */
	int64_t slots; /* largest number of slots in use */
};

/*
 * A part of l steps with j slots in use, and how it is split. level > 0: the part is full,
 * l = L_level(j), and both of its parts are full. 0: split by the table of exact costs. -1 - i:
 * part number i on the path, whose parts are neither.
 */
struct neap__leaf_part {
	int64_t l, j, level;
};

/* A full part: its length L_t(j) and its actions. */
struct neap__leaf_vertex {
	int64_t l;
	struct neap__leaf_use use;
};

/* A split on the path, after y steps; one of its parts is full, with this level. */
struct neap__leaf_split {
	int64_t y, level;
	int full_left; /* 1: the left part is full; 0: the right part */
};

struct neap__leaf_revolve {
	int64_t steps, pool, state, tape;
	int64_t slots;			  /* limit of slots in use */
	int64_t levels, room;		  /* rows of `vertex`: filled, allocated */
	struct neap__leaf_vertex *vertex; /* [levels][slots + 1] */
	int64_t exact_most;		  /* the table has C(l,j) for l <= exact_most */
	int32_t *exact_cost;		  /* [slots + 1][exact_most + 1] */
	struct neap__leaf_split *path;
	int64_t splits;		     /* length of `path` */
	struct neap__leaf_part end;  /* the part at the end of the path */
	struct neap__leaf_part root; /* the whole chain */
	struct neap__leaf_use use;   /* of the whole chain */
};

/*
 * Finds a schedule that reverses `steps` >= 1 steps in `pool` bytes with at most `slots` slots;
 * tape must be at least 1. The schedule is optimal if the exact table covers `steps` (some
 * hundreds) or `steps` is a full length, otherwise within about 1% of the optimum. If the tables
 * would exceed 100 MB, fewer slots are used. Returns 0, -ENOMEM, or NEAP_EINFEASIBLE if the slots
 * do not suffice or the number of advance steps exceeds 63 bits. Call neap__leaf_revolve_free in
 * every case.
 */
int neap__leaf_revolve_plan(struct neap__leaf_revolve *x, int64_t steps, int64_t pool,
	int64_t state, int64_t tape, int64_t slots);
void neap__leaf_revolve_free(struct neap__leaf_revolve *x);

/* m_j; 0 if the pool is smaller than j states. */
static inline int64_t neap__leaf_revolve_fit(const struct neap__leaf_revolve *x, int64_t j)
{
	int64_t left = x->pool - j * x->state;
	return left < 0 ? 0 : left / x->tape;
}

/* Splits a part longer than its leaf: returns y and fills both parts. */
int64_t neap__leaf_revolve_split(const struct neap__leaf_revolve *x,
	const struct neap__leaf_part *part, struct neap__leaf_part *left,
	struct neap__leaf_part *right);

/*
 * For parts of any length that become known one by one: makes tables of at least
 * `levels` levels, without a limit of steps. neap__leaf_revolve_reach adds the levels that a part
 * of l steps with j slots in use needs. The tables grow to at most 8 MiB or 1 KiB per slot,
 * whichever is more. Both return 0 or -ENOMEM.
 */
int neap__leaf_revolve_open(struct neap__leaf_revolve *x, int64_t pool, int64_t state, int64_t tape,
	int64_t slots, int64_t levels);
int neap__leaf_revolve_reach(struct neap__leaf_revolve *x, int64_t l, int64_t j);
/*
 * Allocates the tables at their largest size for parts of at most `steps` steps (INT64_MAX: any);
 * reach allocates nothing afterwards. Returns 0 or -ENOMEM.
 */
int neap__leaf_revolve_reserve(struct neap__leaf_revolve *x, int64_t steps);
/*
 * The part of l steps with j slots in use. Its level is NEAP__LEAF_LOOSE if no table contains its
 * split; neap__leaf_revolve_split then compares all splits, which is optimal in a classic
 * problem.
 */
#define NEAP__LEAF_LOOSE INT64_MIN
struct neap__leaf_part neap__leaf_revolve_part(
	const struct neap__leaf_revolve *x, int64_t l, int64_t j);
/*
 * C(l,j) if it is known, otherwise its hull, rounded; NEAP__LEAF_NEVER if the part cannot be
 * reversed. Sums of a few such costs still fit in 63 bits.
 */
#define NEAP__LEAF_NEVER (INT64_MAX / 8)
int64_t neap__leaf_revolve_cost(const struct neap__leaf_revolve *x, int64_t l, int64_t j);
/* Numbers of actions of a part of any length. */
struct neap__leaf_use neap__leaf_revolve_measure(
	const struct neap__leaf_revolve *x, int64_t l, int64_t j);

#endif
