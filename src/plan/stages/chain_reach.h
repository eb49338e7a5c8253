/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain_reach.h: how far a chain of very many stages can be reversed, and what it costs.
 * A part [i,n) starts from x_i, which is kept, and has p bytes besides. A leaf records
 * all its stages and reverses them. R_0(i,p) is where the longest leaf from i ends,
 *
 *     R_s(i,p) = R_s(j, p - a_j),    j = R_{s-1}(i,p)
 *
 * where a part ends of which no stage is executed more than s times before it is
 * recorded: Revolve (Griewank, Walther 2000) with leaves that grow as states are given
 * up, over the tapes as they are. With F_ij the seconds to advance from i to j,
 *
 *     K_s(i,p) = F_ij + K_{s-1}(i,p) + K_s(j, p - a_j)
 *
 * is what that recomputes; a part that ends between R_{s-1} and R_s costs about
 * K_{s-1} and s times the advance of the rest, which is exact where all steps are the
 * same. O(n - i) time.
 */
#ifndef NEAP_PLAN_STAGES_CHAIN_REACH_H
#define NEAP_PLAN_STAGES_CHAIN_REACH_H

#include <neap/plan.h>

struct neap__chain_reach {
	const struct neap_chain *chain;
	int64_t steps;	    /* the loss is stage `steps` */
	int64_t *kept;	    /* [steps + 1] bytes a leaf keeps of a stage that is done */
	int64_t *recording; /* what recording it takes besides, */
	int64_t *before;    /* its input, unless it is the leaf's first */
	int64_t *reversing; /* and what its backward takes */
	int64_t *least;	    /* [steps + 1] bytes of a part it is in, but not the first of */
	double *clock;	    /* [steps + 2] seconds to advance to stage i from 0 */
	int64_t scanned;    /* stages looked at so far: the work done */
	void *block;
};

/*
 * Takes the chain's sizes and costs; with `worst`, every tape as large as the largest.
 * 56 bytes a stage. 0 or -ENOMEM; free in every case.
 */
int neap__chain_reach_init(struct neap__chain_reach *x, const struct neap_chain *chain, int worst);
void neap__chain_reach_free(struct neap__chain_reach *x);

/* Bytes, x_0 included, with which [0,steps] can be done: x_0 kept, or all tapes. */
uint64_t neap__chain_reach_least(const struct neap__chain_reach *x);

/* Does [i,n) fit p bytes as one leaf? */
int neap__chain_reach_leaf(struct neap__chain_reach *x, int64_t i, int64_t n, int64_t p);

/*
 * Where to keep a state in [i,n) that is no leaf: i < j < n; the part [j,n) is done
 * first, with p - a_j, then [i,j). `tries`: other places than the furthest to look at.
 * -1: p is too little for the last stage.
 */
int64_t neap__chain_reach_split(
	struct neap__chain_reach *x, int64_t i, int64_t n, int64_t p, int tries);
/* The same where the longest leaf that ends with n begins: what always goes. */
int64_t neap__chain_reach_last(struct neap__chain_reach *x, int64_t i, int64_t n, int64_t p);

#endif
