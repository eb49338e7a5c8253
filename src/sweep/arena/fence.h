/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fence.h: calls of a model that return before their work is done (`fence` of neap_step_ops), and
 * the waits for them. A wait costs nothing if nothing was called since the last one. Its seconds
 * belong to the calls that were waited for.
 */
#ifndef NEAP_SWEEP_ARENA_FENCE_H
#define NEAP_SWEEP_ARENA_FENCE_H

#include <neap/sweep.h>

#define NEAP__FENCE_ROWS 5   /* of statistics: advance, record, replay, backward, copies */
#define NEAP__FENCE_LINE 512 /* bytes of the line about a failure */

struct neap__fence {
	int (*finish)(void *user); /* NULL: calls are complete when they return */
	void *user;
	int queued; /* 1: something was called since the last wait */
	/* 1: waits also before calls of another kind, so that the seconds of each kind are its own.
	 */
	int exact;
	int failed; /* the first negative answer in this run, and its line */
	char line[NEAP__FENCE_LINE];
	/* Of the calls since the last wait: where their seconds are counted, and the planned ones.
	 */
	double *seconds[NEAP__FENCE_ROWS], planned[NEAP__FENCE_ROWS];
	int rows;
	struct neap_sweep_stats *stats;
	struct neap_trace *trace;
};

/* Forgets the failures of earlier runs, after which nothing is queued. */
void neap__fence_begin_run(struct neap__fence *f);
/* Before a call whose seconds are counted in *seconds. */
void neap__fence_before(struct neap__fence *f, const double *seconds);
/*
 * After a call, which is planned to take `planned` seconds: later waits for it add theirs to
 * *seconds of `stats` and, but for copies, to stats->compute. seconds NULL: they are not counted.
 */
void neap__fence_after(struct neap__fence *f, struct neap_sweep_stats *stats,
	struct neap_trace *trace, double *seconds, double planned);
/* Waits for all calls. A failure is kept for neap__fence_failure. */
void neap__fence_wait(struct neap__fence *f);
/* The first failure since the run began, with its line. */
int neap__fence_failure(const struct neap__fence *f);

#endif
