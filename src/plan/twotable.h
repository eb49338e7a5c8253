/* SPDX-License-Identifier: Apache-2.0 */
/*
 * twotable.h: the dynamic program for chains whose stages differ. C(i,t,m): seconds
 * to do stages i..t and reverse them, x_i kept and not counted in m, the gradient
 * of x_{t+1} counted. D(i,t,m): the same where the tape of t is already there, not
 * counted in m and freed by its backward. g gradients, a states, A_j the tape of
 * stage j - 1, f, r, b seconds, h: tapes hold their stage's output.
 *
 *     P(i,j,t,0) = g_{t+1} + max_{i<=k<j} ( [k>i] a_k + a_{k+1} + advance_tmp_k )
 *     P(i,j,t,1) = the same, but ( [k>i] a_k + A_j + [!h] a_j + record_tmp_k ), k = j-1
 *     C(i,i,m) = r_i + b_i where g_{i+1} + A + [!h] a_{i+1} + record_tmp and
 *                g_i + g_{i+1} + A + backward_tmp fit m
 *     D(i,i,m) = b_i where g_i + g_{i+1} + backward_tmp fits
 *     C(i,t,m) = min over i < j <= t of
 *                f_i + .. + f_{j-1} + C(j,t,m-a_j) + C(i,j-1,m), P(i,j,t,0) fits
 *                f_i + .. + r_{j-1} + C(j,t,m-B_j) + D(i,j-1,m-A_j), P(i,j,t,1) fits
 *     D(i,t,m) = the same with D(j,t,..) in place of C(j,t,..), the last term's
 *                memory larger by the tape of t
 *
 * B_j = A_j + [!h] a_j. Where backward needs no input, D(i,t,m) is b_t and then
 * C(i,t-1,m + A_{t+1}), and without h either x_i is given up before the backward of
 * C(i,i). After Beaumont et al. (rotor), which prunes feasible plans and exceeds its
 * limit; O(L^3 M) for L stages and M levels of memory.
 */
#ifndef NEAP_PLAN_TWOTABLE_H
#define NEAP_PLAN_TWOTABLE_H

#include <neap/plan.h>

#define NEAP__TWOTABLE_STAGES 2000 /* at most */

struct neap__twotable {
	const struct neap_chain *chain;
	int64_t n;		     /* stages */
	int64_t levels;		     /* 0..levels of memory */
	double unit;		     /* bytes a level */
	double per_byte;	     /* 1 / unit */
	int64_t *by_state, *by_tape; /* [n + 1] levels that a_j and B_j take */
	int64_t *need_c;	     /* least bytes that C(i,t,.), D(i,t,.) take, by pair */
	int64_t *need_d;
	float *rows; /* [pairs][C, D][levels + 1]; levels of D count the tape of t */
};

struct neap__twotable_choice {
	int64_t j;	     /* 0: none, a leaf */
	int record;	     /* the tape of j - 1 is kept */
	int64_t right, left; /* bytes the two parts have */
};

/*
 * Fills the tables for `memory` bytes, all of them, x_0's included. 0 or -ENOMEM;
 * free in every case. The tables take some 100 MB at most.
 */
int neap__twotable_fill(struct neap__twotable *x, const struct neap_chain *chain, uint64_t memory);
void neap__twotable_free(struct neap__twotable *x);

/* Least bytes of a whole plan, x_0 included; UINT64_MAX: too many stages. */
uint64_t neap__twotable_least(const struct neap_chain *chain);

/* The best way to do a part (taped: D) in `bytes`, in whole bytes. i < t. */
struct neap__twotable_choice neap__twotable_choose(
	const struct neap__twotable *x, int taped, int64_t i, int64_t t, int64_t bytes);

#endif
