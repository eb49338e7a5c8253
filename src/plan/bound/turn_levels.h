/* SPDX-License-Identifier: Apache-2.0 */
/*
 * turn_levels.h: the counting rows of a pool, level by level: which of them a point violates most.
 *
 *     P            bytes of fast memory for states and tapes
 *     S, A         bytes of a state and of a tape
 *     nm, nk       tapes and states in fast memory at the turn
 *     l            late states, l <= nk and l <= the states written after the turn
 *     Phi_t(p)     recompute_cost.h; 0 if 0 <= p < A
 *     q_k          Phi_{t-1}(P - k S), what one more kept state saves in addition to k states
 *     B_k          q_0 + ... + q_{k-1}
 *     lambda       what a late state saves: q_0 - Phi_{t-2}(P) if reads are counted (form 0), q_0
 *                  if writes are (form 1)
 *
 * What the states and tapes that are held at the turn save is at most U, for every k:
 *
 *     U = t nm + B_k + (nk - k) q_k + l max(0, lambda - q_k)
 *     U = Phi_t(P) + l max(0, lambda - d)
 *     d = min over 0 <= k < j <= P/S of (Phi_t(P) - t floor((P - j S)/A) - B_k) / (j - k)
 *
 * docs/lower-bound.md has the proof.
 */
#ifndef NEAP_PLAN_BOUND_TURN_LEVELS_H
#define NEAP_PLAN_BOUND_TURN_LEVELS_H

#include "plan/bound/phi_levels.h"

enum { NEAP__COUNT_READS, NEAP__COUNT_WRITES, NEAP__COUNT_FORMS };

/* A level. q and sums have slots + 2 entries, the last of q is 0. */
struct neap__turn_level {
	double t, phi;		/* Phi_t(P) */
	double before;		/* Phi_{t-2}(P) */
	double sum, sum_before; /* of Phi_j(P) for j < t, and for j < t - 1 */
	double d;		/* of neap__turn_level_d; below 0: not computed yet */
	int64_t last;		/* rows exist for k = 0..last */
	double *q, *sums;	/* q_k and B_k */
};

struct neap__turn_levels {
	double state, tape, pool, steps; /* tape 0: a leaf is one tape, which is free */
	int count, room;
	struct neap__turn_level *level;
};

/* A row of a level: U = constant + nm_factor nm + nk_factor nk + late l, times 1 state or tape. */
struct neap__turn_row {
	double constant, nm, nk, late;
};

/*
 * The levels of a pool: all of the first ones, then some, until Phi grows by T from one level to
 * the next. Returns 0, or -1 if there is no memory or Phi is too large; neap__turn_levels_free
 * frees the levels after either.
 */
int neap__turn_levels_make(struct neap__turn_levels *x, int64_t pool, const struct neap_chain *c);
void neap__turn_levels_free(struct neap__turn_levels *x);

/* lambda of a form. */
static inline double neap__turn_level_lambda(const struct neap__turn_level *v, int form)
{
	return form == NEAP__COUNT_READS ? v->q[0] - v->before : v->q[0];
}

/*
 * The rows of a level: k = 0..last, and -1 for the row with Phi_t(P). `late` 0 leaves the term of
 * late states out, which is not a valid row then (neap__turn_program_estimate).
 */
struct neap__turn_row neap__turn_level_row(
	struct neap__turn_levels *x, struct neap__turn_level *v, int form, int64_t k, int late);

/* The k whose U is least for nk and l. */
int64_t neap__turn_level_tightest(const struct neap__turn_level *v, int form, double nk, double l);

#endif
