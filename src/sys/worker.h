/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker.h: one background thread that runs jobs in the order in which they were posted. The
 * answer of a job is delivered exactly once, by waiting for its ticket, together with the detail
 * line of its failure. Nothing is allocated after create.
 */
#ifndef NEAP_SYS_WORKER_H
#define NEAP_SYS_WORKER_H

#include <stdint.h>
#include <neap/status.h>

struct neap__job {
	int kind; /* the owner's */
	int64_t place;
	uint64_t tag;
	void *data;
	uint64_t bytes;
};

struct neap__worker;

/* At most `depth` (1..65535) jobs posted and not waited for. run answers 0 or a negative code. */
int neap__worker_create(struct neap__worker **worker, int depth,
	int (*run)(void *self, const struct neap__job *job), void *self);
/* Copies the job; returns at once. -EAGAIN when `depth` jobs were not waited for. */
int neap__worker_post(struct neap__worker *worker, const struct neap__job *job, int64_t *ticket);
/* Blocks until the job is done; its answer. NEAP_EUSAGE: no such ticket. */
int neap__worker_wait(struct neap__worker *worker, int64_t ticket);
/* 1: a wait returns at once, 0: not yet; NEAP_EUSAGE: no such ticket. */
int neap__worker_over(struct neap__worker *worker, int64_t ticket);
/*
 * As neap__worker_wait for `seconds` at most. 1: the job is done, its answer 0; 0: it is not done
 * yet, its ticket holds; negative: its answer.
 */
int neap__worker_wait_for(struct neap__worker *worker, int64_t ticket, double seconds);
/* When the job waited for last was begun and done, in seconds of sys/clock.h. */
void neap__worker_times(const struct neap__worker *worker, double *start, double *end);
/* Blocks until every posted job is done; their answers stay to be waited for. */
void neap__worker_idle(struct neap__worker *worker);
/* Runs what was posted, then ends the thread. NULL is fine. */
void neap__worker_free(struct neap__worker *worker);
/* In a child process, which has no such thread: frees the memory. */
void neap__worker_orphan(struct neap__worker *worker);

#endif
