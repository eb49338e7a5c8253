/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_seeds.h: plans of blocks (block_program.h) from which a search starts, and what formulas
 * alone say of a plan.
 */
#ifndef NEAP_PLAN_BLOCKS_BLOCK_SEEDS_H
#define NEAP_PLAN_BLOCKS_BLOCK_SEEDS_H

#include <neap/plan.h>
#include "plan/recompute/recompute_cost.h"

#define NEAP__BLOCK_SEEDS 2400 /* the usual kinds make 625 at most, late ones 1275 */

/* A problem in numbers that the formulas use. */
struct neap__block_costs {
	const struct neap_problem *p;
	int tier;
	double capacity;			       /* of the tier, bytes */
	double f, r, b, state, tape, pool;	       /* seconds a step; bytes */
	double state_out, state_in, tape_out, tape_in; /* seconds each; states with the latency */
	double state_lost, tape_lost; /* transfer overhead, seconds each either way */
	struct neap__recompute extra; /* extra advances, with the whole pool */
};

/* A plan and its score in seconds; of a simulated plan, its makespan. */
struct neap__block_seed {
	struct neap_blocks b;
	double score;
};

struct neap__block_seeds {
	int64_t count;
	struct neap__block_seed row[NEAP__BLOCK_SEEDS];
};

/* Borrows `p`. *s is all zero. 0 or -ENOMEM; neap__block_costs_free in any case. */
int neap__block_costs_init(struct neap__block_costs *s, const struct neap_problem *p, int tier);
void neap__block_costs_free(struct neap__block_costs *s);
/* The two halves of it: all but the table `extra`, with this pool, and that table. */
void neap__block_costs_fill(
	struct neap__block_costs *s, const struct neap_problem *p, int tier, int64_t pool);
int neap__block_costs_tables(struct neap__block_costs *s);
/* Rounds down to a number of steps, bytes or tapes, 0 at least; absorbs rounding of quotients. */
int64_t neap__block_whole(double x);
/* Brings a plan into range, equal plans into equal numbers. Returns 0 where none is left. */
int neap__block_normalise(const struct neap__block_costs *s, struct neap_blocks *b);
/* Seeds, the best score first: the usual kinds, and late blocks. */
void neap__block_seeds_make(struct neap__block_seeds *seeds, const struct neap__block_costs *s);
void neap__block_seeds_late(struct neap__block_seeds *seeds, const struct neap__block_costs *s);
/* Order of seeds for qsort: the lower score first; of equal scores, some fixed order. */
int neap__block_by_score(const void *a, const void *b);
/* Whether the blocks write more than their channel carries beside them, up to the tail. */
int neap__block_late(const struct neap__block_costs *s, const struct neap_blocks *b);
/*
 * Seconds that the plan takes at least: blocks are reversed from the last to the first, and the
 * last one is written last. So all writes come before all reversals.
 */
double neap__block_floor(const struct neap__block_costs *s, const struct neap_blocks *b);

#endif
