/* SPDX-License-Identifier: Apache-2.0 */
/* log_blocks.h: the blocks of a `replay` plan; log_blocks.c fits them, replay.c emits them. */
#ifndef NEAP_PLAN_RECOMPUTE_LOG_BLOCKS_H
#define NEAP_PLAN_RECOMPUTE_LOG_BLOCKS_H

#include "plan/core/schedule.h"

/* Where states and logs are kept; how early logs come back. */
enum {
	NEAP__LOG_SLOTS = 1, /* the blocks' states in slots, else on the tier */
	NEAP__LOG_LOCAL = 2, /* logs in tier 0, else on the tier */
	NEAP__LOG_EARLY = 4, /* a log is asked for while the block above is replayed */
	NEAP__LOG_MODES = 8
};

struct neap__log_blocks {
	const struct neap_problem *p;
	int tier, mode;
	int64_t pool, state, tape, log; /* bytes */
	int64_t interval;		/* steps of the longest block */
	int64_t n, body;		/* blocks, and steps they cover; the rest is the tail */
	int64_t staged, window;		/* states staged, logs in flight going up */
	int64_t *start;			/* [n + 1] with NEAP__LOG_SLOTS, else NULL */
	int64_t start_room;		/* rows of it */
};

/* Free with neap__log_blocks_free, whatever is answered. tier 0: everything in tier 0. */
int neap__log_blocks_init(
	struct neap__log_blocks *x, const struct neap_problem *problem, int tier, int mode);
void neap__log_blocks_free(struct neap__log_blocks *x);

/*
 * The fewest steps in blocks of at most `interval` (0: as long as fits) steps: 1, 0
 * where they do not fit, or a negative code. Room and window are 0 and 1.
 */
int neap__log_blocks_fit(struct neap__log_blocks *x, int64_t interval);
/* The blocks of a plan that was made before: body and interval are given. The same answers. */
int neap__log_blocks_restore(struct neap__log_blocks *x, int64_t body, int64_t interval);

/* Bytes of slots, tapes and logs at most. */
int64_t neap__log_blocks_peak(const struct neap__log_blocks *x);
/* As many states staged and logs in flight as do not take more than the pool. */
void neap__log_blocks_set_windows(struct neap__log_blocks *x, int staged);
/* Bytes of the tier's places. */
uint64_t neap__log_blocks_tier_bytes(const struct neap__log_blocks *x);

static inline int64_t neap__log_blocks_start(const struct neap__log_blocks *x, int64_t j)
{
	if (j >= x->n)
		return x->body;
	return x->start ? x->start[j] : j * x->interval;
}

#endif
