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

/* Processors this process may run on. */
int neap__processors(void);
/* A number for the set of them. */
uint64_t neap__processors_hash(void);

#endif
