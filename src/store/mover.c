/* SPDX-License-Identifier: Apache-2.0 */
/* mover.c: requests: tickets, queues, who may begin; piece_io.c moves their pieces. */
#include "store/mover_state.h"
#include "store/tier_state.h"
#include "base/checked.h"
#include "base/fail.h"
#include "sys/clock.h"
#include "sys/priority.h"
#include "sys/condition.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
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

/* With the lock: is the one it comes after done? */
static int may_begin(const struct neap__request *r)
{
	return !r->after || r->after->turn != r->after_turn || r->after->state == NEAP__DONE;
}

/* With the lock. What comes after a put that hangs would hang, and all behind it. */
static void refuse_stuck(struct neap__mover *m, int way)
{
	struct neap__request *r;
	while ((r = m->queues[way].first) != NULL && !may_begin(r) &&
		r->after->state == NEAP__ABANDONED) {
		neap__mover_unqueue(m, r);
		r->answer = -ETIMEDOUT;
		snprintf(r->detail, sizeof r->detail, "an earlier transfer of the place hangs");
		neap__mover_set_done(m, r);
	}
}

struct neap__request *neap__mover_take(struct neap__mover *m, int way)
{
	pthread_mutex_lock(&m->lock);
	refuse_stuck(m, way);
	struct neap__request *r = m->queues[way].first;
	if (r && may_begin(r)) {
		m->queues[way].first = r->next;
		r->state = NEAP__RUNNING;
		r->begun_at = neap__seconds();
	} else {
		r = NULL;
	}
	pthread_mutex_unlock(&m->lock);
	return r;
}

void neap__mover_give_back(struct neap__mover *m, struct neap__request *r)
{
	r->state = NEAP__FREE;
	r->turn++;
	m->free[m->nfree++] = r;
}

void neap__mover_set_done(struct neap__mover *m, struct neap__request *r)
{
	if (r->state == NEAP__ABANDONED) {
		m->abandoned--;
		neap__mover_give_back(m, r);
	} else {
		r->state = NEAP__DONE;
	}
	r->done_at = neap__seconds();
	m->lies[r - m->requests] = -1;
	m->outstanding--;
	pthread_cond_broadcast(&m->done);
}

void neap__mover_done(struct neap__mover *m, struct neap__request *r)
{
	pthread_mutex_lock(&m->lock);
	neap__mover_set_done(m, r);
	pthread_mutex_unlock(&m->lock);
}

void neap__mover_unqueue(struct neap__mover *m, struct neap__request *r)
{
	int way = r->gather.put;
	struct neap__request *before = NULL;
	for (struct neap__request *at = m->queues[way].first; at != r; at = at->next)
		before = at;
	*(before ? &before->next : &m->queues[way].first) = r->next;
	if (m->queues[way].last == r)
		m->queues[way].last = before;
	for (int i = 0; i < NEAP__REQUESTS; i++) {
		struct neap__request *follower = &m->requests[i];
		if (follower->after != r || follower->after_turn != r->turn)
			continue;
		follower->after = r->after; /* it waits for what r waited for */
		follower->after_turn = r->after_turn;
	}
}

/* Released when one is gone: who reads 0 comes after all that they did. */
static atomic_int left_behind;

int neap__movers_left(void)
{
	return atomic_load_explicit(&left_behind, memory_order_acquire);
}

/* Nobody else knows it any more. */
static void dismantle(struct neap__mover *m)
{
	void (*after)(void *arg) = m->after;
	void *arg = m->arg;
	neap__io_engine_close(&m->engine);
	for (int i = 0; i < NEAP__STREAMS; i++)
		XXH3_freeState(m->streams[i].hash);
	pthread_cond_destroy(&m->done);
	pthread_cond_destroy(&m->posted);
	pthread_mutex_destroy(&m->lock);
	free(m->requests);
	free(m->free);
	free(m->lies);
	free(m);
	if (after)
		after(arg);
}

static void *work(void *arg)
{
	struct neap__mover *m = arg;
	int busy = 0, quit = 0;
	neap__run_promptly();
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
			neap__pump_stop(m);
		busy = neap__pump(m);
	}
	pthread_mutex_lock(&m->lock);
	m->ended = 1;
	int left = m->left;
	pthread_cond_broadcast(&m->done);
	pthread_mutex_unlock(&m->lock);
	if (!left)
		return NULL;
	dismantle(m);
	atomic_fetch_sub_explicit(&left_behind, 1, memory_order_release);
	return NULL;
}

/* With the lock: the last one posted that is not done and lies at the same place. */
static struct neap__request *last_at(const struct neap__mover *m, int64_t lies)
{
	struct neap__request *last = NULL;
	for (int i = 0; i < NEAP__REQUESTS; i++)
		if (m->lies[i] == lies && (!last || m->requests[i].order > last->order))
			last = &m->requests[i];
	return last;
}

static void enqueue(struct neap__mover *m, struct neap__request *r)
{
	int way = r->gather.put;
	r->next = NULL;
	if (m->queues[way].first)
		m->queues[way].last->next = r;
	else
		m->queues[way].first = r;
	m->queues[way].last = r;
	m->outstanding++;
}

static void describe(struct neap__mover *m, struct neap__request *r, const struct neap__job *job)
{
	r->state = NEAP__POSTED;
	r->answer = 0;
	r->begun_at = 0;
	r->posted_at = neap__seconds();
	r->touched = 0;
	r->order = m->orders++;
	r->gather = neap__background_gather(job, &r->one);
	r->place = job->place;
	r->tag = job->tag;
	r->base = neap__layout_at(m->layout, r->gather.tapes, job->place);
	r->whole = neap__record_whole(r->gather.bytes);
	r->begun = r->settled = 0;
	r->flying = 0;
}

int neap__mover_post(struct neap__mover *m, const struct neap__job *job, int64_t *ticket)
{
	int tapes = job->kind == NEAP__PUT_TAPES || job->kind == NEAP__GET_TAPES;
	int64_t lies = job->place << 1 | tapes;
	pthread_mutex_lock(&m->lock);
	struct neap__request *after = last_at(m, lies);
	int stuck = after && after->state == NEAP__ABANDONED;
	if (stuck || !m->nfree) {
		pthread_mutex_unlock(&m->lock);
		return stuck ? neap__fail(-ETIMEDOUT, "an earlier transfer of the place hangs")
			     : neap__fail(
				       -EAGAIN, "more than %d transfers in flight", NEAP__REQUESTS);
	}
	struct neap__request *r = m->free[--m->nfree];
	int index = (int)(r - m->requests);
	describe(m, r, job);
	r->after = after;
	r->after_turn = r->after ? r->after->turn : 0;
	m->lies[index] = lies;
	enqueue(m, r);
	*ticket = (int64_t)r->turn << 16 | index;
	pthread_cond_signal(&m->posted);
	pthread_mutex_unlock(&m->lock);
	while (!m->has_thread && neap__pump(m))
		;
	return 0;
}

int neap__mover_find(struct neap__mover *m, int64_t ticket, struct neap__request **r)
{
	int index = (int)(ticket & 0xffff);
	*r = ticket >= 0 && index < NEAP__REQUESTS ? &m->requests[index] : NULL;
	if (!*r || (*r)->state == NEAP__FREE || (*r)->state == NEAP__ABANDONED ||
		(*r)->turn != (uint32_t)(ticket >> 16))
		return neap__fail(NEAP_EUSAGE, "no transfer has ticket %lld", (long long)ticket);
	return 0;
}

/* With the lock: until it is done, or given up. */
static int await(struct neap__mover *m, struct neap__request *r)
{
	struct neap__timeout vigil;
	neap__timeout_begin(m, &vigil, r->posted_at);
	while (r->state != NEAP__DONE && neap__timeout_goes_on(m, &vigil))
		;
	m->begun_at = r->begun_at;
	m->done_at = neap__seconds();
	if (r->state != NEAP__DONE) {
		m->lates++;
		neap__mover_abandon(m, r);
		return neap__fail(-ETIMEDOUT, "a slow tier moved nothing for %.3g s", m->patience);
	}
	m->done_at = r->done_at;
	if (r->answer < 0)
		neap__fail(r->answer, "%s", r->detail);
	neap__mover_give_back(m, r);
	return r->answer;
}

int neap__mover_wait(struct neap__mover *m, int64_t ticket)
{
	struct neap__request *r;
	pthread_mutex_lock(&m->lock);
	int answer = neap__mover_find(m, ticket, &r);
	if (answer == 0)
		answer = await(m, r);
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
	struct neap__timeout vigil;
	int busy;
	pthread_mutex_lock(&m->lock);
	neap__timeout_begin(m, &vigil, neap__seconds());
	while ((busy = m->outstanding || !m->asleep) && neap__timeout_goes_on(m, &vigil))
		;
	m->lates += busy;
	pthread_mutex_unlock(&m->lock);
	return busy ? neap__fail(-ETIMEDOUT, "transfers of a slow tier hang") : 0;
}

/* Only the last one of its place: a get behind it wants it. */
void neap__mover_forget(struct neap__mover *m, int64_t place)
{
	pthread_mutex_lock(&m->lock);
	struct neap__request *r = last_at(m, place << 1);
	if (r && r->state == NEAP__POSTED && r->gather.put) {
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
	m->npassages = pieces < NEAP__MOVES ? (int)pieces : NEAP__MOVES;
	neap__io_engine_lend(&m->engine, staging, (size_t)m->npassages * piece);
}

const struct neap__io_engine *neap__mover_engine(const struct neap__mover *m)
{
	return &m->engine;
}

static int make_tables(struct neap__mover *m)
{
	m->requests = calloc(NEAP__REQUESTS, sizeof *m->requests);
	m->free = calloc(NEAP__REQUESTS, sizeof(struct neap__request *));
	m->lies = calloc(NEAP__REQUESTS, sizeof *m->lies);
	if (!m->requests || !m->free || !m->lies)
		return neap__fail_errno(ENOMEM, "file tier");
	for (int i = NEAP__REQUESTS - 1; i >= 0; i--) {
		m->free[m->nfree++] = &m->requests[i];
		m->lies[i] = -1;
	}
	for (int i = 0; i < NEAP__STREAMS; i++) {
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
		rc = neap__io_engine_open(&m->engine, NEAP__MOVES);
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

/* With the lock: none of those posted begins any more. */
static void give_up(struct neap__mover *m)
{
	for (int way = 0; way < 2; way++)
		while (m->queues[way].first) {
			struct neap__request *r = m->queues[way].first;
			neap__mover_unqueue(m, r);
			r->answer = -ECANCELED;
			neap__mover_set_done(m, r);
		}
}

/*
 * A thread that waits for a system call that hangs cannot be ended. It is left behind with
 * all that the call may touch, and takes that down itself if the call ever returns.
 */
void neap__mover_free(struct neap__mover *m, void (*after)(void *arg), void *arg)
{
	struct neap__timeout vigil;
	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	give_up(m);
	m->quit = 1;
	m->after = after;
	m->arg = arg;
	pthread_cond_signal(&m->posted);
	neap__timeout_begin(m, &vigil, neap__seconds());
	while (m->has_thread && !m->ended && neap__timeout_goes_on(m, &vigil))
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
	dismantle(m);
}
