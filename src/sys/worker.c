/* SPDX-License-Identifier: Apache-2.0 */
/* worker.c: the ring of posted jobs and the thread that runs them. */
#include "sys/worker.h"
#include "base/fail.h"
#include "base/print.h"
#include "sys/clock.h"
#include "sys/condition.h"
#include "sys/priority.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

enum cell_state { CELL_FREE, CELL_POSTED, CELL_DONE };

struct cell {
	struct neap__job job;
	uint32_t reuse; /* tells the tickets of a cell that is used again apart */
	enum cell_state state;
	int answer;
	double start, end;
	char detail[192];
};

/*
 * `lock` guards all below it. Cells are taken from a stack of free ones; posted cells stand in a
 * ring, first in, first out. The thread reads the job of a posted cell without the lock: nobody
 * else changes it until it is done.
 */
struct neap__worker {
	int (*run)(void *self, const struct neap__job *job);
	void *self;
	int depth;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t posted, done;
	struct cell *cells;
	int *free, nfree;
	int *ring, head, count; /* count: posted and running */
	int quit;
	double start, end; /* of the job waited for last; written under the lock, read by the one
			      waiter without */
};

static void *worker_main(void *arg)
{
	struct neap__worker *worker = arg;

	neap__priority_raise();
	pthread_mutex_lock(&worker->lock);
	for (;;) {
		while (!worker->count && !worker->quit)
			pthread_cond_wait(&worker->posted, &worker->lock);
		if (!worker->count)
			break;
		struct cell *cell = &worker->cells[worker->ring[worker->head]];
		pthread_mutex_unlock(&worker->lock);
		double start = neap__seconds();
		int answer = worker->run(worker->self, &cell->job);
		double end = neap__seconds();
		pthread_mutex_lock(&worker->lock);
		cell->answer = answer;
		cell->start = start;
		cell->end = end;
		cell->state = CELL_DONE;
		if (answer < 0)
			neap__print(cell->detail, sizeof cell->detail, "%s", neap_detail());
		worker->head = (worker->head + 1) % worker->depth;
		worker->count--;
		pthread_cond_broadcast(&worker->done);
	}
	pthread_mutex_unlock(&worker->lock);
	return NULL;
}

void neap__worker_orphan(struct neap__worker *worker)
{
	free(worker->cells);
	free(worker->free);
	free(worker->ring);
	free(worker);
}

static void release(struct neap__worker *worker)
{
	pthread_cond_destroy(&worker->done);
	pthread_cond_destroy(&worker->posted);
	pthread_mutex_destroy(&worker->lock);
	neap__worker_orphan(worker);
}

int neap__worker_create(struct neap__worker **out, int depth,
	int (*run)(void *self, const struct neap__job *job), void *self)
{
	if (depth < 1 || depth > 65535)
		return neap__fail(
			NEAP_EUSAGE, "a worker's depth must be 1 to 65535, not %d", depth);
	struct neap__worker *worker = calloc(1, sizeof *worker);
	if (!worker)
		return neap__fail_errno(ENOMEM, "background thread");
	pthread_mutex_init(&worker->lock, NULL);
	pthread_cond_init(&worker->posted, NULL);
	neap__cond_init(&worker->done);
	worker->run = run;
	worker->self = self;
	worker->depth = depth;
	worker->cells = calloc((size_t)depth, sizeof *worker->cells);
	worker->free = calloc((size_t)depth, sizeof *worker->free);
	worker->ring = calloc((size_t)depth, sizeof *worker->ring);
	if (!worker->cells || !worker->free || !worker->ring) {
		release(worker);
		return neap__fail_errno(ENOMEM, "background thread");
	}
	for (int i = depth - 1; i >= 0; i--)
		worker->free[worker->nfree++] = i;

	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); /* signals belong to the caller's threads */
	int err = pthread_create(&worker->thread, NULL, worker_main, worker);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err) {
		release(worker);
		return neap__fail_errno(err, "cannot start a background thread");
	}
	*out = worker;
	return 0;
}

int neap__worker_post(struct neap__worker *worker, const struct neap__job *job, int64_t *ticket)
{
	pthread_mutex_lock(&worker->lock);
	if (!worker->nfree) {
		pthread_mutex_unlock(&worker->lock);
		return neap__fail(-EAGAIN, "more than %d transfers in flight", worker->depth);
	}
	int index = worker->free[--worker->nfree];
	struct cell *cell = &worker->cells[index];
	cell->job = *job;
	cell->state = CELL_POSTED;
	worker->ring[(worker->head + worker->count++) % worker->depth] = index;
	*ticket = (int64_t)cell->reuse << 16 | index;
	pthread_cond_signal(&worker->posted);
	pthread_mutex_unlock(&worker->lock);
	return 0;
}

/* With the lock: the cell of a ticket, or NULL with the detail line set. */
static struct cell *find(struct neap__worker *worker, int64_t ticket)
{
	int index = (int)(ticket & 0xffff);
	struct cell *cell = ticket >= 0 && index < worker->depth ? &worker->cells[index] : NULL;
	if (cell && cell->state != CELL_FREE && cell->reuse == (uint32_t)(ticket >> 16))
		return cell;
	neap__fail(NEAP_EUSAGE, "no transfer has ticket %lld", (long long)ticket);
	return NULL;
}

/* With the lock: hands out the answer of a job that is done, and frees its cell. */
static int deliver(struct neap__worker *worker, struct cell *cell)
{
	int answer = cell->answer;
	worker->start = cell->start;
	worker->end = cell->end;
	if (answer < 0)
		neap__fail(answer, "%s", cell->detail);
	cell->state = CELL_FREE;
	cell->reuse++;
	worker->free[worker->nfree++] = (int)(cell - worker->cells);
	return answer;
}

int neap__worker_wait_for(struct neap__worker *worker, int64_t ticket, double seconds)
{
	double end = neap__seconds() + seconds;
	int answer = NEAP_EUSAGE;
	pthread_mutex_lock(&worker->lock);
	struct cell *cell = find(worker, ticket);
	while (cell && cell->state != CELL_DONE && neap__seconds() < end)
		neap__cond_wait(&worker->done, &worker->lock, end - neap__seconds());
	if (cell && cell->state != CELL_DONE)
		answer = 0;
	else if (cell)
		answer = (answer = deliver(worker, cell)) < 0 ? answer : 1;
	pthread_mutex_unlock(&worker->lock);
	return answer;
}

int neap__worker_wait(struct neap__worker *worker, int64_t ticket)
{
	int answer = neap__worker_wait_for(worker, ticket, INFINITY);
	return answer > 0 ? 0 : answer;
}

int neap__worker_over(struct neap__worker *worker, int64_t ticket)
{
	pthread_mutex_lock(&worker->lock);
	const struct cell *cell = find(worker, ticket);
	int over = cell ? cell->state == CELL_DONE : NEAP_EUSAGE;
	pthread_mutex_unlock(&worker->lock);
	return over;
}

void neap__worker_times(const struct neap__worker *worker, double *start, double *end)
{
	*start = worker->start;
	*end = worker->end;
}

void neap__worker_idle(struct neap__worker *worker)
{
	pthread_mutex_lock(&worker->lock);
	while (worker->count)
		pthread_cond_wait(&worker->done, &worker->lock);
	pthread_mutex_unlock(&worker->lock);
}

void neap__worker_free(struct neap__worker *worker)
{
	if (!worker)
		return;
	pthread_mutex_lock(&worker->lock);
	worker->quit = 1;
	pthread_cond_signal(&worker->posted);
	pthread_mutex_unlock(&worker->lock);
	pthread_join(worker->thread, NULL);
	release(worker);
}
