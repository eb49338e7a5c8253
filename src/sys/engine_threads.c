/* SPDX-License-Identifier: Apache-2.0 */
/* engine_threads.c: the engine `threads`: each thread makes one read or write at a time. */
#include "sys/engine.h"
#include "sys/clock.h"
#include "sys/priority.h"
#include "sys/condition.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#define THREADS 4 /* more of them moved no more bytes a second to one disk */

/* `lock` guards all below it. */
struct pool {
	pthread_t threads[THREADS];
	int nthreads;
	pthread_mutex_t lock;
	pthread_cond_t started, finished;
	struct neap__io_request *first, **last; /* first in, first out */
	struct neap__io_request *done;
	int quit;
};

static void *work(void *arg)
{
	struct pool *pool = arg;
	neap__priority_raise();
	pthread_mutex_lock(&pool->lock);
	for (;;) {
		while (!pool->first && !pool->quit)
			pthread_cond_wait(&pool->started, &pool->lock);
		struct neap__io_request *request = pool->first;
		if (!request)
			break;
		pool->first = request->next;
		if (!pool->first)
			pool->last = &pool->first;
		pthread_mutex_unlock(&pool->lock);
		neap__io_request_now(request);
		pthread_mutex_lock(&pool->lock);
		request->next = pool->done;
		pool->done = request;
		pthread_cond_signal(&pool->finished);
	}
	pthread_mutex_unlock(&pool->lock);
	return NULL;
}

static void close_pool(void *self)
{
	struct pool *pool = self;
	pthread_mutex_lock(&pool->lock);
	pool->quit = 1;
	pthread_cond_broadcast(&pool->started);
	pthread_mutex_unlock(&pool->lock);
	for (int i = 0; i < pool->nthreads; i++)
		pthread_join(pool->threads[i], NULL);
	pthread_cond_destroy(&pool->finished);
	pthread_cond_destroy(&pool->started);
	pthread_mutex_destroy(&pool->lock);
	free(pool);
}

static int open_pool(void **self, int depth)
{
	struct pool *pool = calloc(1, sizeof *pool);
	sigset_t all, old;
	int err = 0;
	if (!pool)
		return -ENOMEM;
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->started, NULL);
	neap__cond_init(&pool->finished);
	pool->last = &pool->first;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); /* signals belong to the caller's threads */
	for (int i = 0; i < THREADS && i < depth && !err; i++) {
		err = pthread_create(&pool->threads[i], NULL, work, pool);
		pool->nthreads += !err;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err) {
		close_pool(pool);
		return -err;
	}
	*self = pool;
	return 0;
}

static void start(void *self, struct neap__io_request *request)
{
	struct pool *pool = self;
	request->next = NULL;
	pthread_mutex_lock(&pool->lock);
	*pool->last = request;
	pool->last = &request->next;
	pthread_cond_signal(&pool->started);
	pthread_mutex_unlock(&pool->lock);
}

static struct neap__io_request *finish(void *self, double seconds)
{
	struct pool *pool = self;
	double end = neap__seconds() + seconds;
	pthread_mutex_lock(&pool->lock);
	for (double left = seconds; !pool->done && left > 0; left = end - neap__seconds())
		neap__cond_wait(&pool->finished, &pool->lock, left);
	struct neap__io_request *request = pool->done;
	if (request)
		pool->done = request->next;
	pthread_mutex_unlock(&pool->lock);
	return request;
}

const struct neap__io_engine_kind neap__io_engine_threads = {
	.name = "threads",
	.open = open_pool,
	.start = start,
	.finish = finish,
	.close = close_pool,
	.orphan = free,
};
