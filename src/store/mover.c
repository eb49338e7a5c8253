/* SPDX-License-Identifier: Apache-2.0 */
/* mover.c: requests: tickets, queues, who may begin; pump.c moves their pieces. */
#include "store/requests.h"
#include "store/tier.h"
#include "base/checked.h"
#include "base/fail.h"
#include "sys/clock.h"
#include "sys/priority.h"

#include <errno.h>
#include <signal.h>
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

struct neap__request *neap__mover_take(struct neap__mover *m, int way)
{
	pthread_mutex_lock(&m->lock);
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

/* With the lock. */
static void set_done(struct neap__mover *m, struct neap__request *r)
{
	r->state = NEAP__DONE;
	r->done_at = neap__seconds();
	m->lies[r - m->requests] = -1;
	m->outstanding--;
	pthread_cond_broadcast(&m->done);
}

void neap__mover_done(struct neap__mover *m, struct neap__request *r)
{
	pthread_mutex_lock(&m->lock);
	set_done(m, r);
	pthread_mutex_unlock(&m->lock);
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
	r->order = m->orders++;
	r->gather = neap__worked_gather(job, &r->one);
	r->place = job->place;
	r->tag = job->tag;
	r->base = neap__layout_at(m->layout, r->gather.tapes, job->place);
	r->whole = neap__record_whole(r->gather.bytes);
	r->begun = r->settled = 0;
	r->flying = 0;
}

int neap__mover_post(struct neap__mover *m, const struct neap__job *job, int64_t *ticket)
{
	pthread_mutex_lock(&m->lock);
	if (!m->nfree) {
		pthread_mutex_unlock(&m->lock);
		return neap__fail(-EAGAIN, "more than %d transfers in flight", NEAP__REQUESTS);
	}
	struct neap__request *r = m->free[--m->nfree];
	int index = (int)(r - m->requests);
	describe(m, r, job);
	int64_t lies = job->place << 1 | r->gather.tapes;
	r->after = last_at(m, lies);
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

int neap__mover_wait(struct neap__mover *m, int64_t ticket)
{
	int index = (int)(ticket & 0xffff);
	if (ticket < 0 || index >= NEAP__REQUESTS)
		return neap__fail(NEAP_EUSAGE, "no transfer has ticket %lld", (long long)ticket);
	pthread_mutex_lock(&m->lock);
	struct neap__request *r = &m->requests[index];
	if (r->state == NEAP__FREE || r->turn != (uint32_t)(ticket >> 16)) {
		pthread_mutex_unlock(&m->lock);
		return neap__fail(NEAP_EUSAGE, "no transfer has ticket %lld", (long long)ticket);
	}
	while (r->state != NEAP__DONE)
		pthread_cond_wait(&m->done, &m->lock);
	int answer = r->answer;
	m->begun_at = r->begun_at;
	m->done_at = r->done_at;
	if (answer < 0)
		neap__fail(answer, "%s", r->detail);
	r->state = NEAP__FREE;
	r->turn++;
	m->free[m->nfree++] = r;
	pthread_mutex_unlock(&m->lock);
	return answer;
}

void neap__mover_times(const struct neap__mover *m, double *start, double *end)
{
	*start = m->begun_at;
	*end = m->done_at;
}

void neap__mover_idle(struct neap__mover *m)
{
	pthread_mutex_lock(&m->lock);
	while (m->outstanding || !m->asleep)
		pthread_cond_wait(&m->done, &m->lock);
	pthread_mutex_unlock(&m->lock);
}

/* Only the last one of its place: others would no longer wait for what it waits for. */
void neap__mover_forget(struct neap__mover *m, int64_t place)
{
	pthread_mutex_lock(&m->lock);
	struct neap__request *r = last_at(m, place << 1), *before = NULL;
	if (r && r->state == NEAP__POSTED && r->gather.put) {
		struct neap__request *at = m->queues[1].first;
		for (; at != r; at = at->next)
			before = at;
		*(before ? &before->next : &m->queues[1].first) = r->next;
		if (m->queues[1].last == r)
			m->queues[1].last = before;
		set_done(m, r);
	}
	pthread_mutex_unlock(&m->lock);
}

void neap__mover_stage(struct neap__mover *m, void *staging, size_t bytes, size_t piece)
{
	size_t pieces = bytes ? bytes / piece : 0;
	m->staging = staging;
	m->piece = piece;
	m->npassages = pieces < NEAP__MOVES ? (int)pieces : NEAP__MOVES;
	neap__engine_lend(&m->engine, staging, (size_t)m->npassages * piece);
}

const struct neap__engine *neap__mover_engine(const struct neap__mover *m)
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
	pthread_cond_init(&m->done, NULL);
	int rc = make_tables(m);
	if (rc == 0)
		rc = neap__engine_open(&m->engine, NEAP__MOVES);
	if (rc == 0) {
		neap__engine_attach(&m->engine, stripes->files, stripes->count);
		rc = m->engine.kind->blocks ? 0 : start_thread(m);
	}
	if (rc < 0)
		neap__mover_free(m);
	else
		*out = m;
	return rc;
}

/* With the lock: none of those posted begins any more. */
static void give_up(struct neap__mover *m)
{
	for (int way = 0; way < 2; way++)
		while (m->queues[way].first) {
			m->queues[way].first->answer = -ECANCELED;
			set_done(m, m->queues[way].first);
			m->queues[way].first = m->queues[way].first->next;
		}
}

void neap__mover_free(struct neap__mover *m)
{
	if (!m)
		return;
	pthread_mutex_lock(&m->lock);
	give_up(m);
	m->quit = 1;
	pthread_cond_signal(&m->posted);
	pthread_mutex_unlock(&m->lock);
	if (m->has_thread)
		pthread_join(m->thread, NULL);
	neap__engine_close(&m->engine);
	for (int i = 0; i < NEAP__STREAMS; i++)
		XXH3_freeState(m->streams[i].hash);
	pthread_cond_destroy(&m->done);
	pthread_cond_destroy(&m->posted);
	pthread_mutex_destroy(&m->lock);
	free(m->requests);
	free(m->free);
	free(m->lies);
	free(m);
}
