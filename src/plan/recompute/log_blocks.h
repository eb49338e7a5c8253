/* SPDX-License-Identifier: Apache-2.0 */
/*
 * log_blocks.h: the blocks of a `replay` plan: how many steps go into blocks and where the
 * blocks begin. Steps in blocks are logged on the first pass and their tapes are made again
 * from a state and the log; the steps after them, the tail, are recorded on the first pass.
 * log_blocks.c fits the blocks into memory, strategies/replay.c emits their actions. Ours.
 *
 *     T           steps of the chain
 *     S, A, q     bytes of a state, of a step's tape and of a step's log; q < A
 *     P           bytes of fast memory for states, tapes and logs (`pool`)
 *     n           blocks
 *     s           steps in blocks (`body`); the tail has T - s
 *     b_j, l_j    first step and steps of block j, j = 0..n-1
 *     logs        bytes of logs in fast memory
 *
 * What must fit at the turn, and while block j is reversed:
 *
 *                                 at the turn                 block j
 *     states in slots       n S + (T - s) A + logs <= P      j S + l_j A + logs <= P
 *     states on the tier          (T - s) A + logs <= P            l_j A + logs <= P
 *
 *     logs in tier 0        logs = s q                       logs = (b_j + l_j) q
 *     logs on the tier      logs = l_{n-1} q                 logs = max(l_j, l_{j-1}) q,
 *                                                            (l_j + l_{j-1}) q where early
 */
#ifndef NEAP_PLAN_RECOMPUTE_LOG_BLOCKS_H
#define NEAP_PLAN_RECOMPUTE_LOG_BLOCKS_H

#include "plan/core/schedule.h"

/* Where states and logs are kept and how early logs come back: a sum of these bits. */
enum {
	NEAP__LOG_SLOTS = 1, /* the blocks' states in slots, else on the tier */
	NEAP__LOG_LOCAL = 2, /* logs in tier 0, else on the tier */
	NEAP__LOG_EARLY = 4, /* the GET of a log is issued before the block above is replayed */
	NEAP__LOG_MODES = 8  /* different sums */
};

struct neap__log_blocks {
	const struct neap_problem *p;
	int tier, mode;			/* tier 0: states and logs are both in tier 0 */
	int64_t pool, state, tape, log; /* bytes */
	int64_t interval;		/* steps of the longest block */
	int64_t n, body;		/* blocks, and steps they cover; the rest is the tail */
	int64_t staged, window;		/* states staged, logs in flight going up */
	int64_t *start;			/* [n + 1] with NEAP__LOG_SLOTS, else NULL */
	int64_t start_room;		/* rows of it */
};

/* Sets *x up without blocks. 0 or -ENOMEM; neap__log_blocks_free is due in both cases. */
int neap__log_blocks_init(
	struct neap__log_blocks *x, const struct neap_problem *problem, int tier, int mode);
void neap__log_blocks_free(struct neap__log_blocks *x);

/*
 * Fits blocks of at most `interval` steps (0: as long as fits) and chooses s: the least that
 * fits, or the most where a step in a block takes less time than a step of the tail. Sets
 * `staged` to 0 and `window` to 1. Returns 1, 0 where nothing fits, or -ENOMEM.
 */
int neap__log_blocks_fit(struct neap__log_blocks *x, int64_t interval);
/* The blocks of a plan made before, from its body and interval. Returns the same. */
int neap__log_blocks_restore(struct neap__log_blocks *x, int64_t body, int64_t interval);

/* Bytes of slots, tapes and logs at the worst moment. */
int64_t neap__log_blocks_peak(const struct neap__log_blocks *x);
/*
 * Sets `staged` (where `may_stage`) and `window` to the largest powers of two with which the
 * first pass fits into the pool. A synchronous tier gets 0 and 1: its transfers never overlap.
 */
void neap__log_blocks_set_windows(struct neap__log_blocks *x, int may_stage);
/* Bytes of all places on the tier. */
uint64_t neap__log_blocks_tier_bytes(const struct neap__log_blocks *x);

/* b_j; for j = n the first step of the tail. */
static inline int64_t neap__log_blocks_start(const struct neap__log_blocks *x, int64_t j)
{
	if (j >= x->n)
		return x->body;
	return x->start ? x->start[j] : j * x->interval;
}

#endif
