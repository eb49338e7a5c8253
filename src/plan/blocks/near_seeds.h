/* SPDX-License-Identifier: Apache-2.0 */
/*
 * near_seeds.h: plans of blocks through two tiers (struct neap_near) from which a search starts,
 * and what formulas alone say of such a plan. `far` is the plan's tier, `near` the faster one.
 */
#ifndef NEAP_PLAN_BLOCKS_NEAR_SEEDS_H
#define NEAP_PLAN_BLOCKS_NEAR_SEEDS_H

#include "plan/blocks/block_seeds.h"

/* Derived: at most so many are made (near_seeds.c), each of one of so many kinds. */
#define NEAP__NEAR_SEEDS 4800
#define NEAP__NEAR_KINDS 54

/* The two tiers in numbers; spread: of `far` the rates of both together, as items are spread. */
struct neap__near_costs {
	struct neap__block_costs far, near; /* only far.extra is filled */
	int spread;
};

/* Without padding, so that equal plans are equal bytes. */
struct neap__near_plan {
	struct neap_blocks b;
	struct neap_near n;
};

/* A plan and its score in seconds; of a simulated plan, its makespan. */
struct neap__near_seed {
	struct neap__near_plan x;
	double score;
	int kind; /* of blocks, below NEAP__NEAR_KINDS */
};

struct neap__near_seeds {
	int64_t count;
	struct neap__near_seed row[NEAP__NEAR_SEEDS];
};

/* As neap__block_costs_init. */
int neap__near_costs_init(
	struct neap__near_costs *s, const struct neap_problem *p, int far, int near);
void neap__near_costs_free(struct neap__near_costs *s);
/* States that the near tier holds. */
double neap__near_places(const struct neap__near_costs *s);
/* Brings a plan into range. Returns 0 where none is left, or where it uses one tier alone. */
int neap__near_normalise(const struct neap__near_costs *s, struct neap__near_plan *x);
/* Seconds of writes that `blocks` blocks are late with and that no tail hides, by formulas. */
double neap__near_late(
	const struct neap__near_costs *s, const struct neap__near_plan *x, double blocks);
/* Seeds, the best score first. */
void neap__near_seeds_make(struct neap__near_seeds *seeds, const struct neap__near_costs *s);
/* Order of seeds for qsort: the lower score first; of equal scores, some fixed order. */
int neap__near_by_score(const void *a, const void *b);

#endif
