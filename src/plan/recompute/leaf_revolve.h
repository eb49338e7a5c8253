/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leaf_revolve.h: Revolve whose leaves are many tapes long. Where a pool of P bytes has
 * j states of S bytes in it, a part of m_j = floor((P - j S)/A) steps is recorded
 * at once; a longer one keeps its first state, advances y steps, does the right
 * part with j + 1 slots taken and then the left part with j taken again. Its
 * advance steps
 *
 *     C(l,j) = 0 for l <= m_j, else min_y ( y + C(l-y, j+1) + C(y, j) )
 *
 * have the hull max_t ( t l - Phi_t(j) ) with Phi_t(j) = max( t m_j,
 * Phi_{t-1}(j) + Phi_t(j+1) ), met at the full lengths L_t(j) = m_j or
 * L_{t-1}(j) + L_t(j+1). S = A = 1 byte is the problem of slots that hold a state
 * or a tape; A > P/2 is classic Revolve.
 */
#ifndef NEAP_PLAN_RECOMPUTE_LEAF_REVOLVE_H
#define NEAP_PLAN_RECOMPUTE_LEAF_REVOLVE_H

#include <stdint.h>

/* What doing a part takes; its first save is the caller's. */
struct neap__leaf_use {
	int64_t advances, saves, loads;
	int64_t peak; /* bytes of states and tapes */
	int64_t slots;
};

/*
 * A part of l steps with j slots taken. level > 0: it is full, l = L_level(j);
 * 0: short, from the exact table; -1 - i: number i on the path of parts that are
 * neither.
 */
struct neap__leaf_part {
	int64_t l, j, level;
};

struct neap__leaf_vertex {
	int64_t l;
	struct neap__leaf_use use;
};

struct neap__leaf_split { /* a split on the path: one side is full, of that level */
	int64_t y, level;
	int full_left;
};

struct neap__leaf_revolve {
	int64_t steps, pool, state, tape;
	int64_t slots; /* at most */
	int64_t levels, room;
	struct neap__leaf_vertex *vertex; /* [levels][slots + 1] */
	int64_t exact_most;		  /* C(l,j) is known for l <= exact */
	int32_t *exact_cost;		  /* [slots + 1][exact + 1] */
	struct neap__leaf_split *path;
	int64_t splits;
	struct neap__leaf_part end; /* of the path */
	struct neap__leaf_part root;
	struct neap__leaf_use use; /* of the whole */
};

/*
 * Finds a way to do `steps` steps in `pool` bytes with `slots` slots at most,
 * steps and tape at least 1, optimal where steps are few (some hundreds) or meet
 * the hull, within some 1% elsewhere. Slots are left unused where the tables would
 * not stay below 100 MB. 0, -ENOMEM, or NEAP_EINFEASIBLE: too few slots, or too
 * few for a count of advance steps below 2^63. Free in every case.
 */
int neap__leaf_revolve_plan(struct neap__leaf_revolve *x, int64_t steps, int64_t pool,
	int64_t state, int64_t tape, int64_t slots);
void neap__leaf_revolve_free(struct neap__leaf_revolve *x);

/* m_j, or 0. */
static inline int64_t neap__leaf_revolve_fit(const struct neap__leaf_revolve *x, int64_t j)
{
	int64_t left = x->pool - j * x->state;
	return left < 0 ? 0 : left / x->tape;
}

/* Left length of a part longer than its leaf, and what to do with the two sides. */
int64_t neap__leaf_revolve_split(const struct neap__leaf_revolve *x,
	const struct neap__leaf_part *part, struct neap__leaf_part *left,
	struct neap__leaf_part *right);

/*
 * Parts of any length (leaf_cost.c), found one by one and not planned in advance:
 * `steps` is no limit. Tables for `levels` levels at least; neap__leaf_revolve_reach adds
 * those that a part of l steps with j slots taken has use for, up to 8 MiB (1 KiB a slot, if that
 * is more). 0 or -ENOMEM.
 */
int neap__leaf_revolve_open(struct neap__leaf_revolve *x, int64_t pool, int64_t state, int64_t tape,
	int64_t slots, int64_t levels);
int neap__leaf_revolve_reach(struct neap__leaf_revolve *x, int64_t l, int64_t j);
/* Room for all that. */
int neap__leaf_revolve_reserve(struct neap__leaf_revolve *x);
/*
 * A part whose split is known, or of level NEAP__LEAF_LOOSE, which is split by
 * looking one split ahead: optimal in a classic problem.
 */
#define NEAP__LEAF_LOOSE INT64_MIN
struct neap__leaf_part neap__leaf_revolve_part(
	const struct neap__leaf_revolve *x, int64_t l, int64_t j);
/* Its advance steps where they are known, else the hull's; NEAP__LEAF_NEVER: it cannot be done. */
#define NEAP__LEAF_NEVER (INT64_MAX / 8)
int64_t neap__leaf_revolve_cost(const struct neap__leaf_revolve *x, int64_t l, int64_t j);
/* What doing a part of any length takes. */
struct neap__leaf_use neap__leaf_revolve_measure(
	const struct neap__leaf_revolve *x, int64_t l, int64_t j);
/* neap__leaf_revolve_split for a part of level NEAP__LEAF_LOOSE. */
int64_t neap__leaf_revolve_split_loose(const struct neap__leaf_revolve *x,
	const struct neap__leaf_part *part, struct neap__leaf_part *left,
	struct neap__leaf_part *right);

/* Between leaf_revolve.c and leaf_cost.c. */
/* Is the part's cost known? Then which, and how it is told. */
int neap__leaf_revolve_known(const struct neap__leaf_revolve *x, int64_t l, int64_t j,
	struct neap__leaf_part *part, int64_t *cost);
/* The first level whose full length is l or more; levels + 1 if there is none. */
int64_t neap__leaf_revolve_level(const struct neap__leaf_revolve *x, int64_t l, int64_t j);
/* Chord between the full lengths around l. */
double neap__leaf_revolve_chord(const struct neap__leaf_revolve *x, int64_t l, int64_t j);
/* What a part that is not loose takes; recursion is no deeper than slots and levels. */
struct neap__leaf_use neap__leaf_revolve_measure_known(
	const struct neap__leaf_revolve *x, struct neap__leaf_part part);
/* One slot left, l > m_j: leaves of m_{j+1} steps from the end, the first of at most m_j. */
int neap__leaf_revolve_one_slot(
	const struct neap__leaf_revolve *x, int64_t l, int64_t j, struct neap__leaf_use *use);

/* A full part; level from 1. */
static inline const struct neap__leaf_vertex *neap__leaf_vertex(
	const struct neap__leaf_revolve *x, int64_t level, int64_t j)
{
	return &x->vertex[(level - 1) * (x->slots + 1) + j];
}

#endif
