/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leaf_revolve.h: Revolve with leaves: binomial checkpointing whose leaves are as many steps
 * long as tapes fit into the fast memory that is free. Classic Revolve records one step at a
 * time; here a leaf grows as slots fall free, which saves recomputation wherever a tape is
 * smaller than half the pool.
 *
 *     P        bytes of fast memory for kept states and tapes (`pool`)
 *     S, A     bytes of a state and of a tape
 *     j        kept states (slots taken)
 *     l        steps of a part
 *     m_j      floor((P - j S) / A), the steps of the longest leaf beside j kept states
 *     y        steps of the left part of a split
 *     C(l,j)   least advance steps of a part
 *     t        level
 *     L_t(j)   full length: the lengths at which C meets its convex hull
 *
 *     C(l,j) = 0 for l <= m_j, else min_y ( y + C(l-y, j+1) + C(y, j) )
 *     hull of C:   max_t ( t l - Phi_t(j) ),   Phi_t(j) = max( t m_j, Phi_{t-1}(j) + Phi_t(j+1) )
 *     L_t(j) = m_j or L_{t-1}(j) + L_t(j+1), as the maximum was reached
 *
 * A part longer than its leaf keeps its first state, advances y steps, does the right part
 * with one slot more taken, then the left part. S = A = 1 byte is the problem of slots that
 * hold a state or a tape; A > P/2 is classic Revolve. The method is ours: it extends
 * Griewank and Walther (2000). recompute_cost.h has the same hull for the search of `auto`,
 * without the exact small parts and without counts of saves and loads.
 */
#ifndef NEAP_PLAN_RECOMPUTE_LEAF_REVOLVE_H
#define NEAP_PLAN_RECOMPUTE_LEAF_REVOLVE_H

#include <stdint.h>

/* The actions that reverse a part. The save of the part's first state is the caller's. */
struct neap__leaf_use {
	int64_t advances, saves, loads;
	int64_t peak;  /* bytes of states and tapes at most */
	int64_t slots; /* taken at most */
};

/*
 * A part of l steps with j slots taken, and the way in which it is split. level > 0: the part
 * is full, l = L_level(j), and so are both of its parts. 0: the table of exact costs splits
 * the part. -1 - i: the part is number i on the path of parts that are neither.
 */
struct neap__leaf_part {
	int64_t l, j, level;
};

/* A full part: its length L_t(j) and its actions. */
struct neap__leaf_vertex {
	int64_t l;
	struct neap__leaf_use use;
};

/* A split on the path: after y steps; one of its parts is full, at `level`. */
struct neap__leaf_split {
	int64_t y, level;
	int full_left; /* the left part is the full one */
};

struct neap__leaf_revolve {
	int64_t steps, pool, state, tape;
	int64_t slots;			  /* at most */
	int64_t levels, room;		  /* rows of `vertex`: filled, allocated */
	struct neap__leaf_vertex *vertex; /* [levels][slots + 1] */
	int64_t exact_most;		  /* C(l,j) is tabulated for l <= exact_most */
	int32_t *exact_cost;		  /* [slots + 1][exact_most + 1] */
	struct neap__leaf_split *path;
	int64_t splits;		     /* of the path */
	struct neap__leaf_part end;  /* the part that the path ends with */
	struct neap__leaf_part root; /* the whole chain */
	struct neap__leaf_use use;   /* of the whole chain */
};

/*
 * Finds a way to reverse `steps` >= 1 steps in `pool` bytes with `slots` slots at most; tape
 * must be 1 or more. The way is optimal where the exact table covers `steps` (some hundreds)
 * or where `steps` is a full length, and within about 1% of the optimum elsewhere. Slots stay
 * unused where the tables would exceed 100 MB. 0, -ENOMEM, or NEAP_EINFEASIBLE: too few
 * slots, or so few that the advance steps exceed 63 bits. The caller frees in every case.
 */
int neap__leaf_revolve_plan(struct neap__leaf_revolve *x, int64_t steps, int64_t pool,
	int64_t state, int64_t tape, int64_t slots);
void neap__leaf_revolve_free(struct neap__leaf_revolve *x);

/* m_j, 0 where the pool does not hold j states. */
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
 * For parts of any length that become known one by one (leaf_cost.c): makes tables of `levels`
 * levels at least, with no limit of steps. neap__leaf_revolve_reach adds the levels that a part
 * of l steps with j slots taken needs; the tables grow to 8 MiB at most, or to 1 KiB a slot
 * where that is more. 0 or -ENOMEM.
 */
int neap__leaf_revolve_open(struct neap__leaf_revolve *x, int64_t pool, int64_t state, int64_t tape,
	int64_t slots, int64_t levels);
int neap__leaf_revolve_reach(struct neap__leaf_revolve *x, int64_t l, int64_t j);
/* Allocates the tables at their largest for parts of at most so many steps, INT64_MAX: any;
 * reach allocates nothing from then on. 0 or -ENOMEM. */
int neap__leaf_revolve_reserve(struct neap__leaf_revolve *x, int64_t steps);
/*
 * The part of l steps with j slots taken. Its level is NEAP__LEAF_LOOSE where no table says
 * how to split the part; neap__leaf_revolve_split_loose then compares the splits one by one,
 * which is optimal in a classic problem.
 */
#define NEAP__LEAF_LOOSE INT64_MIN
struct neap__leaf_part neap__leaf_revolve_part(
	const struct neap__leaf_revolve *x, int64_t l, int64_t j);
/*
 * C(l,j) where it is known, else its hull, rounded; NEAP__LEAF_NEVER where the part cannot be
 * done. Sums of a few such costs still fit into 63 bits.
 */
#define NEAP__LEAF_NEVER (INT64_MAX / 8)
int64_t neap__leaf_revolve_cost(const struct neap__leaf_revolve *x, int64_t l, int64_t j);
/* The actions of a part of any length. */
struct neap__leaf_use neap__leaf_revolve_measure(
	const struct neap__leaf_revolve *x, int64_t l, int64_t j);
/* neap__leaf_revolve_split for a part of level NEAP__LEAF_LOOSE. */
int64_t neap__leaf_revolve_split_loose(const struct neap__leaf_revolve *x,
	const struct neap__leaf_part *part, struct neap__leaf_part *left,
	struct neap__leaf_part *right);

/* The rest is shared by leaf_revolve.c and leaf_cost.c only. */

/* Returns 1 where C(l,j) is known and fills *part and *cost; else 0. */
int neap__leaf_revolve_known(const struct neap__leaf_revolve *x, int64_t l, int64_t j,
	struct neap__leaf_part *part, int64_t *cost);
/* The first level t with L_t(j) >= l; levels + 1 where there is none. */
int64_t neap__leaf_revolve_level(const struct neap__leaf_revolve *x, int64_t l, int64_t j);
/* The hull of C at l: the chord between the full lengths around l, in advance steps. */
double neap__leaf_revolve_chord(const struct neap__leaf_revolve *x, int64_t l, int64_t j);
/* The actions of a part that is not loose. Recurses no deeper than slots and levels. */
struct neap__leaf_use neap__leaf_revolve_measure_known(
	const struct neap__leaf_revolve *x, struct neap__leaf_part part);
/*
 * The actions of a part of l > m_j steps with one slot left: leaves of m_{j+1} steps from the
 * end on, the first leaf of at most m_j. 0, or NEAP_EINFEASIBLE where advances exceed 63 bits.
 */
int neap__leaf_revolve_one_slot(
	const struct neap__leaf_revolve *x, int64_t l, int64_t j, struct neap__leaf_use *use);

/* The full part of a level (from 1) with j slots taken. */
static inline const struct neap__leaf_vertex *neap__leaf_vertex(
	const struct neap__leaf_revolve *x, int64_t level, int64_t j)
{
	return &x->vertex[(level - 1) * (x->slots + 1) + j];
}

#endif
