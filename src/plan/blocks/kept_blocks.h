/* SPDX-License-Identifier: Apache-2.0 */
/* kept_blocks.h: the lengths and limits of the blocks of a plan that keeps states. */
#ifndef NEAP_PLAN_BLOCKS_KEPT_BLOCKS_H
#define NEAP_PLAN_BLOCKS_KEPT_BLOCKS_H

#include <neap/plan.h>

/* Limits, chosen such that neap__kept_steps, their product, does not overflow. */
#define NEAP__KEPT_MOST 100000		/* states */
#define NEAP__KEPT_STEPS_MOST 100000000 /* steps of a block or of the tail */
/*
 * The table of splits (recompute_cost.h) is made for parts of this number of steps, so that it has
 * the levels that blocks need when little memory is free. Chosen; about 10 levels with 50 slots.
 */
#define NEAP__KEPT_TABLE 1000000000

/* Returns whether the last blocks of a plan keep their states. */
static inline int neap__keeps(const struct neap_blocks *b)
{
	return b->inner == NEAP_BLOCKS_KEPT;
}

/* Steps of the last n blocks before the tail, which keep their states. */
static inline int64_t neap__kept_steps(const struct neap_blocks *b, int64_t n)
{
	int64_t last = b->reserve_steps, more = b->advance - last;
	return n > 0 ? last * n + more * n * n / (2 * b->kept_states) : 0;
}

/* The number of states for which the reserve of a block has room. */
static inline int64_t neap__kept_reserved(const struct neap_chain *c, const struct neap_blocks *b)
{
	return b->reserve / (int64_t)c->state;
}

/* Returns whether a chain of `steps` steps can keep states as the numbers of a plan say. */
static inline int neap__kept_possible(
	const struct neap_chain *c, const struct neap_blocks *b, int64_t steps)
{
	return c->state > 0 && b->record == 0 && b->reserve >= 0 && b->kept_states > 0 &&
	       b->kept_states <= NEAP__KEPT_MOST && b->advance <= NEAP__KEPT_STEPS_MOST &&
	       b->reserve_steps > 0 && b->reserve_steps <= b->advance && b->tail > 0 &&
	       b->tail <= NEAP__KEPT_STEPS_MOST &&
	       neap__kept_steps(b, b->kept_states) < steps - b->tail;
}

#endif
