/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain_reach.h: how far a chain of up to 10^6 stages can be reversed in a budget, what that
 * costs, and where to keep the next state. Tables of all parts (chain_table.h) would be too
 * large for such a chain; this module computes only where the parts end that it needs.
 *
 *     [i,n)         a part: stages i to n - 1, or with the loss where n = steps + 1; the part
 *                   starts from x_i, which is kept
 *     p             bytes that the part has besides x_i
 *     a_j           bytes of x_j
 *     s             how often a stage of the part is executed before it is recorded, at most
 *     R_s(i,p)      where the longest part from i ends that keeps to s and p
 *     K_s(i,p)      seconds that reversing [i, R_s(i,p)) recomputes
 *     F_ij          seconds to advance from i to j
 *
 * A leaf is a part that records all its stages and reverses them: s = 0. Further,
 *
 *     R_s(i,p) = R_s(j, p - a_j),    j = R_{s-1}(i,p)
 *     K_s(i,p) = F_ij + K_{s-1}(i,p) + K_s(j, p - a_j)
 *
 * This is Revolve (Griewank and Walther, 2000) with leaves that grow as states are given up,
 * over the tapes as they are. A part that ends between R_{s-1} and R_s costs about K_{s-1}
 * and s times the advance of the rest, which is exact where all steps are the same.
 * O(n - i) time.
 */
#ifndef NEAP_PLAN_STAGES_CHAIN_REACH_H
#define NEAP_PLAN_STAGES_CHAIN_REACH_H

#include <neap/plan.h>

struct neap__chain_reach {
	const struct neap_chain *chain;
	int64_t steps;	    /* the loss is stage `steps` */
	int64_t *held;	    /* [steps + 1] bytes that a leaf keeps of a stage it recorded */
	int64_t *recording; /* [steps + 1] bytes of recording the stage, its input not counted */
	int64_t *before;    /* [steps + 1] bytes of its input, where it is not the leaf's first */
	int64_t *reversing; /* [steps + 1] bytes of its backward */
	int64_t *least;	    /* [steps + 1] bytes of a part that the stage is in but not first of */
	double *clock;	    /* [steps + 2] seconds to advance to stage i from 0 */
	int64_t scanned;    /* stages visited so far: the work done */
	void *block;
};

/*
 * Takes the chain's sizes and costs; with `worst`, every tape as large as the largest.
 * 56 bytes a stage. 0 or -ENOMEM; free in every case.
 */
int neap__chain_reach_init(struct neap__chain_reach *x, const struct neap_chain *chain, int worst);
void neap__chain_reach_free(struct neap__chain_reach *x);

/* Least bytes, x_0 included, in which all can be done: with x_0 kept, or with all tapes. */
uint64_t neap__chain_reach_least(const struct neap__chain_reach *x);

/* Does [i,n) fit p bytes as one leaf? */
int neap__chain_reach_leaf(struct neap__chain_reach *x, int64_t i, int64_t n, int64_t p);

/*
 * Returns j, i < j < n: the state to keep in [i,n) that is no leaf. [j,n) is done first, in
 * p - a_j bytes, then [i,j). `tries` places besides the furthest are compared. -1 where p is
 * too little for the last stage.
 */
int64_t neap__chain_reach_split(
	struct neap__chain_reach *x, int64_t i, int64_t n, int64_t p, int tries);
/* The same, at the start of the longest leaf that ends with n: possible wherever any split is. */
int64_t neap__chain_reach_last(struct neap__chain_reach *x, int64_t i, int64_t n, int64_t p);

#endif
