/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_seeds.h: block plans (block_program.h) from which a search starts, and closed-form
 * estimates of a plan.
 */
#ifndef NEAP_PLAN_BLOCKS_BLOCK_SEEDS_H
#define NEAP_PLAN_BLOCKS_BLOCK_SEEDS_H

#include <neap/plan.h>
#include "plan/recompute/recompute_cost.h"

#define NEAP__BLOCK_SEEDS 2400 /* derived: usual kinds at most 625, late ones at most 1275 */

/* The values of a problem that the formulas use. */
struct neap__block_costs {
	const struct neap_problem *p;
	int tier;
	double capacity;			       /* of the tier, bytes */
	double f, r, b, state, tape, pool;	       /* seconds per step; bytes */
	double state_out, state_in, tape_out, tape_in; /* seconds each; states with the latency */
	double state_lost, tape_lost; /* transfer overhead, seconds each either way */
	struct neap__recompute extra; /* extra advances, with the whole pool */
};

/* A plan and its score in seconds; after a simulation, its makespan. */
struct neap__block_seed {
	struct neap_blocks b;
	double score;
};

struct neap__block_seeds {
	int64_t count;
	struct neap__block_seed row[NEAP__BLOCK_SEEDS];
};

/* Borrows `p`; *s is all zero. Returns 0 or -ENOMEM; call neap__block_costs_free in any case. */
int neap__block_costs_init(struct neap__block_costs *s, const struct neap_problem *p, int tier);
void neap__block_costs_free(struct neap__block_costs *s);
/* Its two halves: everything except the table `extra`, for a given pool; and the table. */
void neap__block_costs_fill(
	struct neap__block_costs *s, const struct neap_problem *p, int tier, int64_t pool);
int neap__block_costs_tables(struct neap__block_costs *s);
/* Rounds down to a number of steps, bytes or tapes, at least 0; tolerates rounding of quotients. */
int64_t neap__block_whole(double x);
/* Limits the numbers of a plan, and makes equal plans equal in all fields. Returns 0 if invalid. */
int neap__block_normalise(const struct neap__block_costs *s, struct neap_blocks *b);
/* Make seeds, sorted by score: the usual kinds, or late blocks. */
void neap__block_seeds_make(struct neap__block_seeds *seeds, const struct neap__block_costs *s);
void neap__block_seeds_late(struct neap__block_seeds *seeds, const struct neap__block_costs *s);
/*
 * Makes seeds with two lengths of blocks (at most 24), if fast memory holds few states and blocks
 * are short. Returns 0 or -ENOMEM.
 */
int neap__block_seeds_pairs(struct neap__block_seeds *seeds, const struct neap__block_costs *s);
/* Order of seeds for qsort: the lower score first; equal scores in some fixed order. */
int neap__block_by_score(const void *a, const void *b);
/* Returns whether blocks write more than their channel can transfer while they are computed. */
int neap__block_late(const struct neap__block_costs *s, const struct neap_blocks *b);
/*
 * Lower bound of the makespan of a plan, seconds: blocks are reversed from the last to the first,
 * and the last one is written last, so all writes end before the blocks are reversed.
 */
double neap__block_floor(const struct neap__block_costs *s, const struct neap_blocks *b);

#endif
