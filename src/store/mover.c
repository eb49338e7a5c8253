/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mover.c: posts requests and waits for them, and the I/O thread that performs them (piece_io.c).
 * The queue of requests is in request_queue.c.
 */
#include "store/mover_state.h"
#include "store/piece_io.h"
#include "store/timeouts.h"
#include "store/tier_state.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/print.h"
#include "sys/clock.h"
#include "sys/priority.h"
#include "sys/condition.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>

uint64_t neap__record_whole(uint64_t bytes)
{
	return neap__round_up(neap__sat_add(bytes, sizeof(struct neap__trailer)), NEAP__PAGE);
}

uint64_t neap__layout_at(const struct neap__layout *layout, int tapes, int64_t place)
{
	return tapes ? layout->states + (uint64_t)place * layout->tape_stride
		     : (uint64_t)place * layout->stride;
}

/* Movers that neap__mover_free left behind: released when one ends, acquired by readers. */
static atomic_int left_behind;

int neap__movers_left(void)
{
	return atomic_load_explicit(&left_behind, memory_order_acquire);
}

static void free_memory(struct neap__mover *m)
{
	for (int i = 0; i < NEAP__RECORDS_RUNNING; i++)
		XXH3_freeState(m->streams[i].hash);
	free(m->requests);
	free(m->free);
	free(m->place_keys);
	free(m);
}

/*
 * Locks and conditions are left as the fork found them: to destroy a condition that a thread of
 * the parent waits for would wait for that thread.
 */
void neap__mover_orphan(struct neap__mover *m)
{
	if (!m)
		return;
	neap__io_engine_orphan(&m->engine);
	free_memory(m);
}

/* Frees the mover, which nobody else knows any more. */
static void destroy(struct neap__mover *m)
{
	void (*after)(void *arg) = m->after;
	void *arg = m->arg;
	neap__io_engine_close(&m->engine);
	pthread_cond_destroy(&m->done);
	pthread_cond_destroy(&m->posted);
	pthread_mutex_destroy(&m->lock);
	free_memory(m);
	if (after)
		after(arg);
}

static void *work(void *arg)
{
	struct neap__mover *m = arg;
	int busy = 0, quit = 0;
	neap__priority_raise();
	while (busy || !quit) {
		pthread_mutex_lock(&m->lock);
		while (!busy && !m->queues[0].first && !m->queues[1].first && !m->quit) {
			m->asleep = 1;
			pthread_cond_broadcast(&m->done);
			pthread_cond_wait(&m->posted, &m->lock);
		}
		m->asleep = 0;
		quit = m->quit;
		pthread_mutex_unlock(&m->lock);
		if (quit)
			neap__piece_io_stop(m);
		busy = neap__piece_io_run(m);
	}
	pthread_mutex_lock(&m->lock);
	m->ended = 1;
	int left = m->left;
	pthread_cond_broadcast(&m->done);
	pthread_mutex_unlock(&m->lock);
	if (!left)
		return NULL;
	destroy(m);
	atomic_fetch_sub_explicit(&left_behind, 1, memory_order_release);
	return NULL;
}

/* With the lock: the last request posted for this place that is not done, or NULL. */
static struct neap__request *last_at(const struct neap__mover *m, int64_t key)
{
	struct neap__request *last = NULL;
	for (int i = 0; i < NEAP__REQUESTS; i++)
		if (m->place_keys[i] == key && (!last || m->requests[i].order > last->order))
			last = &m->requests[i];
	return last;
}

static void enqueue(struct neap__mover *m, struct neap__request *r)
{
	int direction = r->gather.put;
	r->next = NULL;
	if (m->queues[direction].first)
		m->queues[direction].last->next = r;
	else
		m->queues[direction].first = r;
	m->queues[direction].last = r;
	m->outstanding++;
}

static void describe(struct neap__mover *m, struct neap__request *r, const struct neap__job *job)
{
	r->state = NEAP__REQUEST_POSTED;
	r->answer = 0;
	r->begun_at = 0;
	r->posted_at = neap__seconds();
	r->awaited = 0;
	r->memory_in_use = 0;
	r->order = m->orders++;
	r->gather = neap__background_gather(job, &r->one);
	r->place = job->place;
	r->tag = job->tag;
	r->base = neap__layout_at(m->layout, r->gather.tapes, job->place);
	r->whole = neap__record_whole(r->gather.bytes);
	r->begun = r->settled = 0;
	r->in_flight = 0;
}

int neap__mover_post(struct neap__mover *m, const struct neap__job *job, int64_t *ticket)
{
	int tapes = job->kind == NEAP__PUT_TAPES || job->kind == NEAP__GET_TAPES;
	int64_t key = job->place << 1 | tapes;
	pthread_mutex_lock(&m->lock);
	struct neap__request *after = last_at(m, key);
	int stuck = after && after->state == NEAP__REQUEST_ABANDONED;
	if (stuck || !m->nfree) {
		pthread_mutex_unlock(&m->lock);
		return stuck ? neap__fail(-ETIMEDOUT,
				       "an earlier transfer to the same place of slow memory hangs")
			     : neap__fail(
				       -EAGAIN, "more than %d transfers in flight", NEAP__REQUESTS);
	}
	struct neap__request *r = m->free[--m->nfree];
	int index = (int)(r - m->requests);
	describe(m, r, job);
	r->after = after;
	r->after_reuse = r->after ? r->after->reuse : 0;
	m->place_keys[index] = key;
	enqueue(m, r);
	*ticket = (int64_t)r->reuse << 16 | index;
	pthread_cond_signal(&m->posted);
	pthread_mutex_unlock(&m->lock);
	while (!m->has_thread && neap__piece_io_run(m))
		;
	return 0;
}

/*
 * With the lock: waits until the request is done, or times out, `seconds` at most. 1: it is over
 * and its answer 0; 0: not yet; negative: its answer.
 */
static int await(struct neap__mover *m, struct neap__request *r, double seconds)
{
	double end = neap__seconds() + seconds, left = seconds;
	int in_time = 1;
	if (!r->awaited)
		neap__timeout_begin(m, &r->timeout, r->posted_at);
	r->awaited = 1;
	for (; in_time && left > 0 && r->state != NEAP__REQUEST_DONE; left = end - neap__seconds())
		in_time = neap__timeout_wait(m, &r->timeout, left);
	if (r->state != NEAP__REQUEST_DONE && in_time)
		return 0;
	m->begun_at = r->begun_at;
	m->done_at = neap__seconds();
	if (r->state != NEAP__REQUEST_DONE) {
		m->timeouts++;
		neap__mover_abandon(m, r);
		return neap__fail(
			-ETIMEDOUT, "slow memory made no progress for %.3g s", m->patience);
	}
	m->done_at = r->done_at;
	if (r->answer < 0)
		neap__fail(r->answer, "%s", r->detail);
	neap__mover_give_back(m, r);
	return r->answer < 0 ? r->answer : 1;
}

int neap__mover_wait_for(struct neap__mover *m, int64_t ticket, double seconds)
{
	struct neap__request *r;
	pthread_mutex_lock(&m->lock);
	int answer = neap__mover_find(m, ticket, &r);
	if (answer == 0)
		answer = await(m, r, seconds);
	pthread_mutex_unlock(&m->lock);
	return answer;
}

int neap__mover_wait(struct neap__mover *m, int64_t ticket)
{
	int answer = neap__mover_wait_for(m, ticket, INFINITY);
	return answer > 0 ? 0 : answer;
}

int neap__mover_over(struct neap__mover *m, int64_t ticket)
{
	struct neap__request *r;
	pthread_mutex_lock(&m->lock);
	int answer = neap__mover_find(m, ticket, &r);
	if (answer == 0)
		answer = r->state == NEAP__REQUEST_DONE;
	pthread_mutex_unlock(&m->lock);
	return answer;
}

void neap__mover_times(const struct neap__mover *m, double *start, double *end)
{
	*start = m->begun_at;
	*end = m->done_at;
}

int neap__mover_idle(struct neap__mover *m)
{
	struct neap__timeout timeout;
	int busy;
	pthread_mutex_lock(&m->lock);
	neap__timeout_begin(m, &timeout, neap__seconds());
	while ((busy = m->outstanding || !m->asleep) && neap__timeout_wait(m, &timeout, INFINITY))
		;
	m->timeouts += busy;
	pthread_mutex_unlock(&m->lock);
	return busy ? neap__fail(-ETIMEDOUT, "transfers of slow memory hang") : 0;
}

/* Only the last request of its place: where a get is behind the put, it is the get. */
void neap__mover_forget(struct neap__mover *m, int64_t place)
{
	pthread_mutex_lock(&m->lock);
	struct neap__request *r = last_at(m, place << 1);
	if (r && r->state == NEAP__REQUEST_POSTED && r->gather.put) {
		neap__mover_unqueue(m, r);
		neap__mover_set_done(m, r);
	}
	pthread_mutex_unlock(&m->lock);
}

void neap__mover_stage(struct neap__mover *m, void *staging, size_t bytes, size_t piece)
{
	size_t pieces = bytes ? bytes / piece : 0;
	m->staging = staging;
	m->piece = piece;
	m->npieces = pieces < NEAP__IO_REQUESTS ? (int)pieces : NEAP__IO_REQUESTS;
	neap__io_engine_lend(&m->engine, staging, (size_t)m->npieces * piece);
}

const struct neap__io_engine *neap__mover_engine(const struct neap__mover *m)
{
	return &m->engine;
}

static int make_tables(struct neap__mover *m)
{
	m->requests = calloc(NEAP__REQUESTS, sizeof *m->requests);
	m->free = calloc(NEAP__REQUESTS, sizeof(struct neap__request *));
	m->place_keys = calloc(NEAP__REQUESTS, sizeof *m->place_keys);
	if (!m->requests || !m->free || !m->place_keys)
		return neap__fail_errno(ENOMEM, "file tier");
	for (int i = NEAP__REQUESTS - 1; i >= 0; i--) {
		m->free[m->nfree++] = &m->requests[i];
		m->place_keys[i] = -1;
	}
	for (int i = 0; i < NEAP__RECORDS_RUNNING; i++) {
		m->streams[i].hash = XXH3_createState();
		if (!m->streams[i].hash)
			return neap__fail_errno(ENOMEM, "file tier");
		m->free_streams[m->nfree_streams++] = &m->streams[i];
	}
	return 0;
}

static int start_thread(struct neap__mover *m)
{
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old); /* signals belong to the caller's threads */
	int err = pthread_create(&m->thread, NULL, work, m);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	m->has_thread = !err;
	return err ? neap__fail_errno(err, "cannot start a background thread") : 0;
}

int neap__mover_create(
	struct neap__mover **out, struct neap__stripes *stripes, const struct neap__layout *layout)
{
	struct neap__mover *m = calloc(1, sizeof *m);
	if (!m)
		return neap__fail_errno(ENOMEM, "file tier");
	m->stripes = stripes;
	m->asleep = 1;
	m->layout = layout;
	pthread_mutex_init(&m->lock, NULL);
	pthread_cond_init(&m->posted, NULL);
	neap__cond_init(&m->done);
	int rc = make_tables(m);
	if (rc == 0)
		rc = neap__io_engine_open(&m->engine, NEAP__IO_REQUESTS);
	if (rc == 0) {
		neap__io_engine_attach(&m->engine, stripes->files, stripes->count);
		rc = m->engine.kind->blocks ? 0 : start_thread(m);
	}
	if (rc < 0)
		neap__mover_free(m, NULL, NULL);
	else
		*out = m;
	return rc;
}

/* With the lock: answers all that is posted with -ECANCELED. */
static void give_up(struct neap__mover *m)
{
	for (int direction = 0; direction < 2; direction++)
		while (m->queues[direction].first) {
			struct neap__request *r = m->queues[direction].first;
			neap__mover_unqueue(m, r);
			r->answer = -ECANCELED;
			neap__mover_set_done(m, r);
		}
}

/*
 * A thread in a system call that hangs cannot be ended. The I/O thread is left behind then with
 * all that the call may touch, and frees it if the call ever returns.
 */
void neap__mover_free(struct neap__mover *m, void (*after)(void *arg), void *arg)
{
	struct neap__timeout timeout;
	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	give_up(m);
	m->quit = 1;
	m->after = after;
	m->arg = arg;
	pthread_cond_signal(&m->posted);
	neap__timeout_begin(m, &timeout, neap__seconds());
	while (m->has_thread && !m->ended && neap__timeout_wait(m, &timeout, INFINITY))
		;
	int left = m->left = m->has_thread && !m->ended;
	pthread_t thread = m->thread;
	atomic_fetch_add_explicit(&left_behind, left, memory_order_relaxed);
	pthread_mutex_unlock(&m->lock);
	if (left) {
		pthread_detach(thread);
		return;
	}
	if (m->has_thread)
		pthread_join(thread, NULL);
	destroy(m);
}
