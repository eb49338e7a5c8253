/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool.c: a thread pool for jobs of microseconds. Jobs are numbered. A waiting thread spins for
 * about the time a wake-up takes, then sleeps, so only late arrivals pay for the wake-up.
 *
 * Two threads that share a processor cost each other their whole turns, since each spins while
 * the other one waits to run; and as each of them sleeps half of the time, the system sees no
 * reason to move one, though another processor is idle: a job of microseconds then takes a
 * hundred. So a thread that runs where an earlier thread of the pool runs moves to another
 * processor.
 */
#include "sys/pool.h"
#include "base/fail.h"
#include "base/subnormals.h"
#include "sys/cpu_spread.h"
#include "sys/clock.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

struct worker {
	struct neap__thread_pool *pool;
	pthread_t thread;
	int index;
	atomic_int processor; /* where it began its last job; a hint, any order would do */
	uint64_t moved_at;    /* number of the job at which it last moved to another processor */
};

#define SPIN_SECONDS                                                                               \
	50e-6		 /* the time that a sleeping thread of a virtual machine takes to wake     \
			  */
#define SPINS_A_CLOCK 64 /* pauses between two looks at the clock, since the clock costs more */
#define JOBS_BETWEEN_MOVES 64 /* at least: a move costs as much as some jobs */

/*
 * `lock` guards no data: it orders going to sleep and waking up. All atomics are sequentially
 * consistent but where another order is named.
 *
 * `job` is (number of the job) * JOB | OPEN | (workers that entered it). A worker enters an open
 * job by raising `job` by 1; the caller closes the job once no item is left, and then waits for
 * those that entered it only. So a worker that wakes up late, which takes hundreds of microseconds
 * in a virtual machine, holds up nobody. `job` is set last and read first, so that fn, arg, items
 * and next are there before the work on them: they change only while no worker is in a job. `left`
 * counts the workers that left the job last, so that results are there before the caller returns.
 *
 * A thread that goes to sleep raises `sleepers` or sets `caller_sleeps` and then checks `job`,
 * `quit` or `left` once more; a thread that changes one of these then reads `sleepers` or
 * `caller_sleeps`: of the two at least one sees the other. `next`, the next item, is relaxed: only
 * its value counts.
 */
#define OPEN 0x8000ull
#define JOB 0x10000ull

struct neap__thread_pool {
	int threads; /* workers are threads - 1 */
	int processors;
	struct worker *workers;
	double spin_seconds;
	pthread_mutex_t lock;
	pthread_cond_t start, done;
	atomic_ullong job;
	atomic_int left, quit, sleepers, caller_sleeps, next;
	atomic_int processor; /* where the caller's thread began the job */
	void (*fn)(void *arg, int item, int thread);
	void *arg;
	int items;
};

static void spin_pause(void)
{
#ifdef __x86_64__
	__builtin_ia32_pause();
#endif
}

/*
 * Share of its time that work must have computed in to get a processor. Chosen: a thread that
 * competes for one processor with a single other thread computes for half of its time.
 */
#define SHARE_LEAST 0.25

/* Seconds between two looks of a worker whose processor is on loan: it does not spin there. Chosen.
 */
#define LOAN_LOOK 200e-6

static atomic_int on_loan;

void neap__processor_loan_begin(struct neap__processor_loan *loan)
{
	loan->wall_begun = neap__seconds();
	loan->processor_begun = neap__thread_seconds();
	loan->counts = loan->processor >= SHARE_LEAST * loan->wall;
	if (loan->counts)
		atomic_fetch_add(&on_loan, 1);
}

void neap__processor_loan_end(struct neap__processor_loan *loan)
{
	loan->wall += neap__seconds() - loan->wall_begun;
	loan->processor += neap__thread_seconds() - loan->processor_begun;
	if (loan->counts)
		atomic_fetch_sub(&on_loan, 1);
	loan->counts = 0;
}

int neap__processors_on_loan(void)
{
	return atomic_load_explicit(&on_loan, memory_order_relaxed);
}

/* 1 if a thread of the pool has a processor; the caller's always has. */
static int has_processor(const struct neap__thread_pool *pool, int thread)
{
	/* More threads than processors share them anyway. */
	return thread == 0 || pool->threads > pool->processors ||
	       thread < pool->processors - neap__processors_on_loan();
}

static void work(struct neap__thread_pool *pool, int thread)
{
	while (has_processor(pool, thread)) {
		int item = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
		if (item >= pool->items)
			return;
		pool->fn(pool->arg, item, thread);
	}
}

static int job_is_there(struct neap__thread_pool *pool, uint64_t seen)
{
	return atomic_load(&pool->job) / JOB != seen || atomic_load(&pool->quit);
}

/* Waits for a job after the one of number `seen`, or the end. */
static void wait_for_job(struct neap__thread_pool *pool, uint64_t seen)
{
	double until = neap__seconds() + pool->spin_seconds;
	do {
		for (int k = 0; k < SPINS_A_CLOCK; k++) {
			if (job_is_there(pool, seen))
				return;
			spin_pause();
		}
	} while (neap__seconds() < until);
	pthread_mutex_lock(&pool->lock);
	atomic_fetch_add(&pool->sleepers, 1);
	while (!job_is_there(pool, seen))
		pthread_cond_wait(&pool->start, &pool->lock);
	atomic_fetch_sub(&pool->sleepers, 1);
	pthread_mutex_unlock(&pool->lock);
}

/* Waits until the workers that entered the job left it. */
static void wait_for_others(struct neap__thread_pool *pool, int entered)
{
	double until = neap__seconds() + pool->spin_seconds;
	do {
		for (int k = 0; k < SPINS_A_CLOCK; k++) {
			if (atomic_load(&pool->left) == entered)
				return;
			spin_pause();
		}
	} while (neap__seconds() < until);
	pthread_mutex_lock(&pool->lock);
	atomic_store(&pool->caller_sleeps, 1);
	while (atomic_load(&pool->left) != entered)
		pthread_cond_wait(&pool->done, &pool->lock);
	atomic_store(&pool->caller_sleeps, 0);
	pthread_mutex_unlock(&pool->lock);
}

static void wake(struct neap__thread_pool *pool, pthread_cond_t *whom)
{
	pthread_mutex_lock(&pool->lock);
	pthread_cond_broadcast(whom);
	pthread_mutex_unlock(&pool->lock);
}

/* Moves to another processor where the caller's thread, or an earlier worker, runs on this one. */
static void change_processor(struct worker *worker, uint64_t job)
{
	struct neap__thread_pool *pool = worker->pool;
	int here = neap__processor(), taken = atomic_load(&pool->processor) == here;

	for (int i = 0; i + 1 < worker->index && !taken; i++)
		taken = atomic_load(&pool->workers[i].processor) == here;
	if (taken && job - worker->moved_at >= JOBS_BETWEEN_MOVES) {
		worker->moved_at = job;
		neap__cpu_spread(here);
		here = neap__processor();
	}
	atomic_store(&worker->processor, here);
}

/* Enters the job that is there, whose number is *seen then; 0: it is over, or not for the worker.
 */
static int enter(struct worker *worker, uint64_t *seen)
{
	struct neap__thread_pool *pool = worker->pool;
	unsigned long long job = atomic_load(&pool->job);
	int entered = 0;

	while (!entered && job & OPEN && has_processor(pool, worker->index))
		entered = atomic_compare_exchange_weak(&pool->job, &job, job + 1);
	*seen = job / JOB;
	return entered;
}

static void *worker_main(void *arg)
{
	struct worker *worker = arg;
	struct neap__thread_pool *pool = worker->pool;
	uint64_t seen = 0;

	neap__subnormals_off();
	for (;;) {
		/* Before the first job, the thread that creates the pool may still write to it. */
		while (seen && !has_processor(pool, worker->index) && !atomic_load(&pool->quit))
			neap__sleep(LOAN_LOOK);
		wait_for_job(pool, seen);
		if (atomic_load(&pool->quit))
			return NULL;
		if (!enter(worker, &seen))
			continue;
		if (pool->spin_seconds > 0)
			change_processor(worker, seen);
		work(pool, worker->index);
		atomic_fetch_add(&pool->left, 1);
		if (atomic_load(&pool->caller_sleeps))
			wake(pool, &pool->done);
	}
}

int neap__thread_pool_create(struct neap__thread_pool **out, int threads)
{
	if (threads < 1 || threads > 1024)
		return neap__fail(NEAP_EUSAGE, "threads must be 1 to 1024, not %d", threads);
	struct neap__thread_pool *pool = calloc(1, sizeof *pool);
	if (!pool)
		return neap__fail_errno(ENOMEM, "thread pool");
	pthread_mutex_init(&pool->lock, NULL);
	pthread_cond_init(&pool->start, NULL);
	pthread_cond_init(&pool->done, NULL);
	pool->threads = 1;
	pool->processors = neap__processors();
	pool->spin_seconds = threads <= pool->processors ? SPIN_SECONDS : 0;
	pool->workers = calloc((size_t)threads, sizeof *pool->workers);
	if (!pool->workers) {
		neap__thread_pool_free(pool);
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
		worker->moved_at = 0 - (uint64_t)JOBS_BETWEEN_MOVES;
		atomic_init(&worker->processor, -1);
		err = pthread_create(&worker->thread, NULL, worker_main, worker);
		if (!err)
			pool->threads++;
	}
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (err) {
		neap__thread_pool_free(pool);
		return neap__fail_errno(err, "cannot start %d threads", threads);
	}
	*out = pool;
	return 0;
}

void neap__thread_pool_run(struct neap__thread_pool *pool, int items,
	void (*fn)(void *arg, int item, int thread), void *arg)
{
	unsigned mode = neap__subnormals_off();

	if (pool->threads == 1 || items <= 1 || !has_processor(pool, 1)) {
		for (int i = 0; i < items; i++)
			fn(arg, i, 0);
		neap__subnormals_restore(mode);
		return;
	}
	pool->fn = fn;
	pool->arg = arg;
	pool->items = items;
	atomic_store_explicit(&pool->next, 0, memory_order_relaxed);
	atomic_store_explicit(&pool->left, 0, memory_order_relaxed);
	atomic_store_explicit(&pool->processor, neap__processor(), memory_order_relaxed);
	atomic_store(&pool->job, (atomic_load(&pool->job) / JOB + 1) * JOB | OPEN);
	if (atomic_load(&pool->sleepers))
		wake(pool, &pool->start);
	work(pool, 0);
	neap__subnormals_restore(mode);
	wait_for_others(pool, (int)(atomic_fetch_and(&pool->job, ~OPEN) & (OPEN - 1)));
}

int neap__thread_pool_threads(const struct neap__thread_pool *pool)
{
	return pool->threads;
}

void neap__thread_pool_free(struct neap__thread_pool *pool)
{
	if (!pool)
		return;
	atomic_store(&pool->quit, 1);
	wake(pool, &pool->start);
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

uint64_t neap__processors_hash(void)
{
	cpu_set_t set;
	uint64_t hash = 0;
	if (sched_getaffinity(0, sizeof set, &set) < 0)
		return 0;
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &set))
			hash = (hash ^ (uint64_t)i) * 0x9E3779B97F4A7C15u + 1;
	return hash;
}
