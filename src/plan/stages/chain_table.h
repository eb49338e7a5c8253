/* SPDX-License-Identifier: Apache-2.0 */
/*
 * chain_table.h: the least seconds of every part of a chain of at most 350 stages in every
 * budget, by dynamic programming, and the choices that lead there.
 *
 *     i, t          a part: stages i..t, t = n with the loss; x_i is kept
 *     m             bytes of the part, x_i not counted, the gradient of x_{t+1} counted
 *     j             where the part is split: x_j is kept while j..t is done, then i..j-1
 *     C(i,t,m)      seconds to do the part and reverse it
 *     D(i,t,m)      the same where the tape of t is already there, not counted in m and
 *                   freed by its backward
 *     P(i,j,t,k)    bytes on the way from i to j, k = 1 where stage j - 1 is recorded
 *     g_i, a_i      bytes of the gradient of x_i and of x_i
 *     A_j           bytes of the tape of stage j - 1
 *     B_j           A_j + [!h] a_j
 *     f_i, r_i, b_i seconds to advance, record and reverse stage i
 *     h             tapes hold the output of their stage; [h] is 1 where they do, else 0
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
 * Where backward needs no input, D(i,t,m) is b_t and then C(i,t-1,m + A_{t+1}), and without h
 * either x_i is given up before the backward of C(i,i). After Beaumont et al. 2019 (rotor),
 * whose program prunes feasible plans and exceeds its budget. O(L^3 M) time for L stages and
 * M levels of memory, of which a few in a hundred are computed: 200 stages with 500 levels
 * take 0.3 to 0.5 s.
 */
#ifndef NEAP_PLAN_STAGES_CHAIN_TABLE_H
#define NEAP_PLAN_STAGES_CHAIN_TABLE_H

#include <neap/plan.h>
#include "plan/stages/part_costs.h"

#define NEAP__CHAIN_TABLE_STAGES 350 /* at most, all in 500 levels; longer: long_chain.h */
#define NEAP__CHAIN_TABLE_CHUNK 48   /* levels filled together, whole vectors of any width */
#define NEAP__CHAIN_TABLE_GROUP 4    /* splits done together */

/* A split for whose way only the upper levels of a chunk have room. */
struct neap__chain_table_partly {
	int32_t split, from; /* no room below this level of it */
	float low, high;     /* its values at the ends of both halves */
};

/* A split that may be the best one of a part that ends where the table ends. */
struct neap__chain_table_spine {
	int32_t split;
	float left; /* seconds of its left part */
};

struct neap__chain_table {
	const struct neap_chain *chain;
	int64_t n;	 /* stages */
	int64_t last;	 /* the stage with which the longest part ends, */
	int taped;	 /* and whether its tape is there: then D, not C, of `last` is needed */
	int64_t levels;	 /* 0..levels of memory, whole chunks of them */
	double unit;	 /* bytes a level */
	double per_byte; /* 1 / unit */
	struct neap__part_costs parts;
	/*
	 * C, D: a row for each part, in columns of t, with the levels below 0 that splits at i
	 * look at in front; levels of D count the tape of t. whole 0: only the levels of the
	 * chunk being filled and as many below it, and what follows.
	 */
	float *rows[2];
	int whole;
	int64_t *column_at; /* [n + 1] where the column of t begins, */
	int64_t *row_at;    /* [n + 2] and in it the row of i */
	int32_t *reach;	    /* [n + 1] levels in front of the row of i */
	/* Of the parts i..last, C or D: all levels by i; the splits, ascending, that may be the
	   best in a level: those of [first, next). */
	float *ends;
	uint32_t *spine_first; /* by neap__spine_at */
	struct neap__chain_table_spine *spine;
	int64_t spines, spine_room; /* negative: there was no memory */

	/* Two of each: a split advances, or records the last stage on its way to j. */
	int32_t *by[2];	   /* [n + 1] levels that a_j and B_j take */
	float *cost[2];	   /* as parts.advance and parts.record */
	float *way[2];	   /* levels of the way from i to j; */
	float *most;	   /* the most up to j, either kind, */
	int32_t *furthest; /* and the most of `by` */
	int32_t *full[2];  /* C, D: the level from which on nothing is recomputed */

	/*
	 * The chunk of levels being filled, C and D, in rows of i; the last levels of both its
	 * halves, and of those as far below as either kind of split goes, in columns of t; the
	 * best splits at its end.
	 */
	float *chunk[2], *left[2][2], *right[2][2][2];
	int32_t *winners[2];
	float *values[2]; /* of splits at these levels */
	int32_t *likely;  /* a list of splits */
	struct neap__chain_table_partly *partly;
	struct neap__chain_table_spine *found; /* of one i and chunk, and their levels there */
	uint32_t *found_at;
	void *arrays[40]; /* all of them */
	int narrays;	  /* negative: there was no memory */
};

/* Levels that hold so many bytes; levels + 1: more than there are. */
static inline int64_t neap__chain_table_up(const struct neap__chain_table *x, int64_t bytes)
{
	double exact = (double)bytes * x->per_byte;
	if (exact > (double)x->levels)
		return (double)bytes > (double)x->levels * x->unit ? x->levels + 1 : x->levels;
	int64_t levels = (int64_t)exact;
	levels -= levels > 0 && (double)(levels - 1) * x->unit >= (double)bytes;
	return levels + ((double)levels * x->unit < (double)bytes);
}

/* Where the splits of i..last at a level are listed: chunk by chunk, as they are found. */
static inline int64_t neap__spine_at(const struct neap__chain_table *x, int64_t i, int64_t level)
{
	const int64_t chunk = NEAP__CHAIN_TABLE_CHUNK;
	return (level / chunk * (x->last + 1) + i) * chunk + level % chunk;
}

/* C or D of a pair, from level 0 on; whole 0: from the first level of the chunk on. */
static inline float *neap__chain_table_row(
	const struct neap__chain_table *x, int taped, int64_t i, int64_t t)
{
	return x->rows[taped] + x->column_at[t] + x->row_at[i] + x->reach[i];
}

/* Fills the rows from the arrays that neap__chain_table_fill made; the same bits with any vectors.
 */
#ifndef NEAP__CHAIN_TABLE_ROWS
#define NEAP__CHAIN_TABLE_ROWS neap__chain_table_rows
#endif
void NEAP__CHAIN_TABLE_ROWS(struct neap__chain_table *x);
void neap__chain_table_rows_avx2(struct neap__chain_table *x);

struct neap__chain_table_choice {
	int64_t j;	     /* 0: none, a leaf */
	int record;	     /* the tape of j - 1 is kept */
	int64_t right, left; /* bytes the two parts have */
};

/*
 * Fills the tables for `memory` bytes, all of them, x_0's included. 0, -ENOMEM, or
 * NEAP_EINFEASIBLE where neap__chain_table_least is more; free in every case. The
 * tables take 110 MB for 200 stages in 500 levels, 350 MB at most.
 */
int neap__chain_table_fill(
	struct neap__chain_table *x, const struct neap_chain *chain, uint64_t memory);

struct neap__chain_table_part {
	uint64_t memory; /* bytes of the part 0..last, x_0's included */
	int64_t last;
	int taped;
	double unit; /* bytes a level; 0: chosen */
};

/*
 * The same for a part, taped: D of it. Rows of more than 4 MB are not kept:
 * neap__chain_table_knows is then 1 for the parts i..last only, and others are to be filled by
 * themselves, with the same unit, which gives the same choices. Then 300 stages take 50 MB.
 */
int neap__chain_table_fill_part(struct neap__chain_table *x, const struct neap_chain *chain,
	const struct neap__chain_table_part *part);
/* Is the choice for this part known? */
static inline int neap__chain_table_knows(const struct neap__chain_table *x, int taped, int64_t t)
{
	return x->whole || (t == x->last && taped == x->taped);
}
void neap__chain_table_free(struct neap__chain_table *x);

/* Least bytes of a whole plan, x_0 included; UINT64_MAX: too many stages. */
uint64_t neap__chain_table_least(const struct neap_chain *chain);

/* The best way to do a part (taped: D) in `bytes`, in whole bytes. i < t. */
struct neap__chain_table_choice neap__chain_table_choose(
	const struct neap__chain_table *x, int taped, int64_t i, int64_t t, int64_t bytes);

#endif
