/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeouts.c: requests that do not come. Whoever waits gives one up once nothing at all was
 * moved for as long as the mover's patience: a tier that is slow moves something, so the
 * time that requests spend behind each other counts for none of them. Since then, too,
 * if it was posted before: what was asked for long ago need not be waited for anew.
 *
 * A request that is given up is answered at once and its memory left alone. Pieces of it
 * that fly keep their staging until they come back: reads are thrown away then.
 *
 * After each that is given up the next has half the time, until something moves: a tier
 * that is gone costs twice the patience, however many requests it has.
 */
#include "store/mover_state.h"
#include "sys/clock.h"
#include "sys/condition.h"

#include <math.h>

#define SLICES 8       /* of the patience */
#define HALVINGS 20    /* at most */
#define LOOK 0.5       /* seconds, at most, until the pump sees what was posted meanwhile */
#define LOOK_LATE 1e-3 /* the same where requests were abandoned */

static double limit(const struct neap__mover *m)
{
	return ldexp(m->patience, -(m->lates < HALVINGS ? m->lates : HALVINGS));
}

/* Half of the time is always waited for here: the clock runs on in a process that was stopped. */
void neap__timeout_begin(const struct neap__mover *m, struct neap__timeout *vigil, double since)
{
	double waited = neap__seconds() - (since > m->moved_at ? since : m->moved_at);
	vigil->waited = waited < limit(m) / 2 ? waited : limit(m) / 2;
	vigil->moved_at = m->moved_at;
}

int neap__timeout_goes_on(struct neap__mover *m, struct neap__timeout *vigil)
{
	if (m->patience <= 0) {
		neap__cond_wait(&m->done, &m->lock, INFINITY);
		return 1;
	}
	double slice = limit(m) / SLICES, start = neap__seconds();
	neap__cond_wait(&m->done, &m->lock, slice);
	double waited = neap__seconds() - start;
	vigil->waited += waited < 2 * slice ? waited : 2 * slice; /* stopped again */
	if (m->moved_at > vigil->moved_at)
		vigil->waited = 0;
	vigil->moved_at = m->moved_at;
	return vigil->waited < limit(m);
}

void neap__mover_abandon(struct neap__mover *m, struct neap__request *r)
{
	if (r->state == NEAP__POSTED) {
		neap__mover_unqueue(m, r);
		neap__mover_set_done(m, r);
		neap__mover_give_back(m, r);
		return;
	}
	r->state = NEAP__ABANDONED;
	m->abandoned++;
	while (r->touched)
		neap__cond_wait(&m->done, &m->lock, INFINITY);
	if (r->gather.put)
		return; /* others of its place must not pass it */
	m->lies[r - m->requests] = -1;
	r->turn++;
}

int neap__mover_cancel(struct neap__mover *m, int64_t ticket)
{
	struct neap__request *r;
	pthread_mutex_lock(&m->lock);
	int posted = neap__mover_find(m, ticket, &r) == 0 && r->state == NEAP__POSTED;
	if (posted)
		neap__mover_abandon(m, r);
	pthread_mutex_unlock(&m->lock);
	return posted;
}

int neap__mover_touch(struct neap__mover *m, struct neap__request *r)
{
	pthread_mutex_lock(&m->lock);
	int touched = r->state == NEAP__RUNNING;
	r->touched = touched;
	pthread_mutex_unlock(&m->lock);
	return touched;
}

void neap__mover_leave(struct neap__mover *m, struct neap__request *r)
{
	pthread_mutex_lock(&m->lock);
	r->touched = 0;
	if (r->state == NEAP__ABANDONED)
		pthread_cond_broadcast(&m->done);
	pthread_mutex_unlock(&m->lock);
}

void neap__mover_moved(struct neap__mover *m)
{
	pthread_mutex_lock(&m->lock);
	m->moved_at = neap__seconds();
	m->lates = 0;
	pthread_mutex_unlock(&m->lock);
}

/* An engine wakes for what it finished only: requests posted while others hang would wait, too. */
double neap__mover_watch(struct neap__mover *m)
{
	pthread_mutex_lock(&m->lock);
	double look = m->patience / SLICES < LOOK ? m->patience / SLICES : LOOK;
	double seconds = m->abandoned ? LOOK_LATE : m->patience > 0 ? look : INFINITY;
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
