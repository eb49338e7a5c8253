/* SPDX-License-Identifier: Apache-2.0 */
#include "sys/pool.h"
#include "base/fail.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

struct worker {
	struct neap__pool *pool;
	pthread_t thread;
	int index;
};

/*
 * `lock` guards job, busy and quit. `next` hands out items: relaxed is enough,
 * since the lock orders fn, arg and items before a job and its results after it.
 */
struct neap__pool {
	int threads; /* workers are threads - 1 */
	struct worker *workers;
	pthread_mutex_t lock;
	pthread_cond_t start, done;
	unsigned long job;
	int busy, quit;
	void (*fn)(void *arg, int item, int thread);
	void *arg;
	int items;
	atomic_int next;
};

static void work(struct neap__pool *pool, int thread)
{
	for (;;) {
		int item = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
		if (item >= pool->items)
			return;
		pool->fn(pool->arg, item, thread);
	}
}

static void *worker_main(void *arg)
{
	struct worker *worker = arg;
	struct neap__pool *pool = worker->pool;
	unsigned long seen = 0;

	pthread_mutex_lock(&pool->lock);
	for (;;) {
		while (!pool->quit && pool->job == seen)
			pthread_cond_wait(&pool->start, &pool->lock);
		if (pool->quit)
			break;
		seen = pool->job;
		pthread_mutex_unlock(&pool->lock);
		work(pool, worker->index);
		pthread_mutex_lock(&pool->lock);
		if (--pool->busy == 0)
			pthread_cond_signal(&pool->done);
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

int neap__pool_create(struct neap__pool **out, int threads)
{
	if (threads < 1 || threads > 1024)
		return neap__fail(NEAP_EUSAGE, "threads must be 1 to 1024, not %d", threads);
	struct neap__pool *pool = calloc(1, sizeof *pool);
	if (!pool)
		return neap__fail_errno(ENOMEM, "thread pool");
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->start, NULL);
	pthread_cond_init(&pool->done, NULL);
	pool->threads = 1;
	pool->workers = calloc((size_t)threads, sizeof *pool->workers);
	if (!pool->workers) {
		neap__pool_free(pool);
		return neap__fail_errno(ENOMEM, "thread pool");
	}
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); /* signals belong to the caller's thread */
	int err = 0;
	for (int i = 1; i < threads && !err; i++) {
		struct worker *worker = &pool->workers[i - 1];
		worker->pool = pool;
		worker->index = i;
		err = pthread_create(&worker->thread, NULL, worker_main, worker);
		if (!err)
			pool->threads++;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err) {
		neap__pool_free(pool);
		return neap__fail_errno(err, "cannot start %d threads", threads);
	}
	*out = pool;
	return 0;
}

void neap__pool_run(
	struct neap__pool *pool, int items, void (*fn)(void *arg, int item, int thread), void *arg)
{
	if (pool->threads == 1 || items <= 1) {
		for (int i = 0; i < items; i++)
			fn(arg, i, 0);
		return;
	}
	pthread_mutex_lock(&pool->lock);
	pool->fn = fn;
	pool->arg = arg;
	pool->items = items;
	atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
	pool->busy = pool->threads - 1;
	pool->job++;
	pthread_cond_broadcast(&pool->start);
	pthread_mutex_unlock(&pool->lock);
	work(pool, 0);
	pthread_mutex_lock(&pool->lock);
	while (pool->busy > 0)
		pthread_cond_wait(&pool->done, &pool->lock);
	pthread_mutex_unlock(&pool->lock);
}

int neap__pool_threads(const struct neap__pool *pool)
{
	return pool->threads;
}

void neap__pool_free(struct neap__pool *pool)
{
	if (!pool)
		return;
	pthread_mutex_lock(&pool->lock);
	pool->quit = 1;
	pthread_cond_broadcast(&pool->start);
	pthread_mutex_unlock(&pool->lock);
	for (int i = 0; i < pool->threads - 1; i++)
		pthread_join(pool->workers[i].thread, NULL);
	pthread_cond_destroy(&pool->done);
	pthread_cond_destroy(&pool->start);
	pthread_mutex_destroy(&pool->lock);
	free(pool->workers);
	free(pool);
}

int neap__processors(void)
{
	cpu_set_t set;
	int n = 1;
	if (sched_getaffinity(0, sizeof set, &set) == 0)
		n = CPU_COUNT(&set);
	return n < 1 ? 1 : n;
}
