/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.h: a pool of compute threads. One job at a time: `items` calls of fn, spread over the
 * threads; the job returns when all are done. Which thread runs an item is not defined, so fn's
 * result may depend on the item only. Threads sleep some 50 us after the last job.
 */
#ifndef NEAP_SYS_POOL_H
#define NEAP_SYS_POOL_H

#include <neap/status.h>
#include <stdint.h>

struct neap__thread_pool;

/*
 * threads >= 1 counts the caller's thread, which works too. Items run without subnormal numbers
 * (base/subnormals.h).
 */
int neap__thread_pool_create(struct neap__thread_pool **pool, int threads);
void neap__thread_pool_run(struct neap__thread_pool *pool, int items,
	void (*fn)(void *arg, int item, int thread), void *arg);
int neap__thread_pool_threads(const struct neap__thread_pool *pool);
void neap__thread_pool_free(struct neap__thread_pool *pool);

/*
 * Processors that all pools leave to another thread of the process while it works, such as one that
 * reads inputs. If all threads of a pool compete with that thread instead, the one that shares its
 * processor falls behind and the others wait for it at the end of every job: the pool then loses
 * the time of the other thread on all processors.
 *
 * What a thread borrows a processor with; all zero at first. One thread uses it at a time.
 */
struct neap__processor_loan {
	double wall, processor; /* seconds, of the work so far */
	double wall_begun, processor_begun;
	int counts; /* 1: pools leave a processor to the work in progress */
};

/*
 * Before and after work of the calling thread. Work that mostly waited so far, for example for a
 * disk, takes no processor from the pools.
 */
void neap__processor_loan_begin(struct neap__processor_loan *loan);
void neap__processor_loan_end(struct neap__processor_loan *loan);
/* Processors that are on loan now, in the whole process. */
int neap__processors_on_loan(void);

/* Processors this process may run on. */
int neap__processors(void);
/* A number for the set of them. */
uint64_t neap__processors_hash(void);

#endif
