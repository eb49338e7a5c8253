/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeouts.c: timeouts. A request times out when its mover has moved no byte for `patience`
 * seconds since the request was posted; a slow tier moves some, so queueing does not count. Time
 * before the wait counts, too, up to half of the patience. A request that times out is answered at
 * once, and its memory is not touched any more; pieces of it in flight keep their staging until
 * they come back, and what they read is thrown away. After each timeout the next request has half
 * the time, until a byte moves: a tier that is gone costs twice the patience, however many
 * requests it has.
 */
#include "store/timeouts.h"
#include "sys/clock.h"
#include "sys/condition.h"

#include <math.h>

#define SLICES 8	    /* parts of the patience after which a wait looks again */
#define HALVINGS 20	    /* at most: 2^-20 of the patience is no time at all */
#define POLL_SECONDS 0.5    /* at most, until the I/O thread sees what was posted meanwhile */
#define POLL_ABANDONED 1e-3 /* seconds: the same where requests were abandoned */

static double limit(const struct neap__mover *m)
{
	return ldexp(m->patience, -(m->timeouts < HALVINGS ? m->timeouts : HALVINGS));
}

/*
 * At least half of the time is spent in this wait: in a process that was stopped the clock runs
 * on, and the tier had no chance to move anything.
 */
void neap__timeout_begin(const struct neap__mover *m, struct neap__timeout *timeout, double since)
{
	double waited = neap__seconds() - (since > m->moved_at ? since : m->moved_at);
	timeout->waited = waited < limit(m) / 2 ? waited : limit(m) / 2;
	timeout->moved_at = m->moved_at;
}

int neap__timeout_wait(struct neap__mover *m, struct neap__timeout *timeout, double most)
{
	if (m->patience <= 0) {
		neap__cond_wait(&m->done, &m->lock, most);
		return 1;
	}
	double slice = limit(m) / SLICES, start = neap__seconds();
	neap__cond_wait(&m->done, &m->lock, slice < most ? slice : most);
	double waited = neap__seconds() - start;
	timeout->waited += waited < 2 * slice ? waited : 2 * slice; /* more: it was stopped */
	if (m->moved_at > timeout->moved_at)
		timeout->waited = 0;
	timeout->moved_at = m->moved_at;
	return timeout->waited < limit(m);
}

void neap__mover_abandon(struct neap__mover *m, struct neap__request *r)
{
	if (r->state == NEAP__REQUEST_POSTED) {
		neap__mover_unqueue(m, r);
		neap__mover_set_done(m, r);
		neap__mover_give_back(m, r);
		return;
	}
	r->state = NEAP__REQUEST_ABANDONED;
	m->abandoned++;
	while (r->memory_in_use)
		neap__cond_wait(&m->done, &m->lock, INFINITY);
	if (r->gather.put)
		return; /* its place key stays: no other of its place may pass it */
	m->place_keys[r - m->requests] = -1;
	r->reuse++;
}

int neap__mover_cancel(struct neap__mover *m, int64_t ticket)
{
	struct neap__request *r;
	pthread_mutex_lock(&m->lock);
	int posted = neap__mover_find(m, ticket, &r) == 0 && r->state == NEAP__REQUEST_POSTED;
	if (posted)
		neap__mover_abandon(m, r);
	pthread_mutex_unlock(&m->lock);
	return posted;
}

int neap__mover_use_memory(struct neap__mover *m, struct neap__request *r)
{
	pthread_mutex_lock(&m->lock);
	int memory_in_use = r->state == NEAP__REQUEST_RUNNING;
	r->memory_in_use = memory_in_use;
	pthread_mutex_unlock(&m->lock);
	return memory_in_use;
}

void neap__mover_release_memory(struct neap__mover *m, struct neap__request *r)
{
	pthread_mutex_lock(&m->lock);
	r->memory_in_use = 0;
	if (r->state == NEAP__REQUEST_ABANDONED)
		pthread_cond_broadcast(&m->done);
	pthread_mutex_unlock(&m->lock);
}

void neap__mover_moved(struct neap__mover *m)
{
	pthread_mutex_lock(&m->lock);
	m->moved_at = neap__seconds();
	m->timeouts = 0;
	pthread_mutex_unlock(&m->lock);
}

/*
 * An engine's wait ends when a piece is done, not when a request is posted: while pieces hang,
 * requests posted later would wait for them.
 */
double neap__mover_wait_limit(struct neap__mover *m)
{
	pthread_mutex_lock(&m->lock);
	double poll = m->patience / SLICES < POLL_SECONDS ? m->patience / SLICES : POLL_SECONDS;
	double seconds = m->abandoned ? POLL_ABANDONED : m->patience > 0 ? poll : INFINITY;
	pthread_mutex_unlock(&m->lock);
	return seconds;
}

void neap__mover_patience(struct neap__mover *m, double seconds)
{
	pthread_mutex_lock(&m->lock);
	m->patience = seconds > 0 && isfinite(seconds) ? seconds : 0;
	pthread_mutex_unlock(&m->lock);
}

int neap__mover_holds_staging(struct neap__mover *m)
{
	pthread_mutex_lock(&m->lock);
	int held = m->abandoned > 0;
	pthread_mutex_unlock(&m->lock);
	return held;
}
