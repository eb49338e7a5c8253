/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request_queue.c: the requests of a mover: tickets, queues, and which request may begin. It is
 * called by the file that posts and waits (mover.c), by the I/O thread (piece_io.c) and by
 * timeouts.c.
 */
#include "store/mover_state.h"
#include "store/tier_state.h"
#include "base/fail.h"
#include "base/print.h"
#include "sys/clock.h"

#include <errno.h>

struct neap__gather neap__background_gather(const struct neap__job *job, struct neap_span *one)
{
	struct neap__gather gather = {.spans = one, .count = 1, .bytes = job->bytes};
	gather.put = job->kind == NEAP__PUT || job->kind == NEAP__PUT_TAPES ||
		     job->kind == NEAP__PUT_SPANS;
	gather.tapes = job->kind == NEAP__PUT_TAPES || job->kind == NEAP__GET_TAPES;
	*one = (struct neap_span){job->data, job->bytes};
	if (job->kind == NEAP__PUT || job->kind == NEAP__GET)
		return gather;
	gather.spans = job->data;
	gather.count = (int)job->bytes;
	gather.bytes = 0;
	for (int i = 0; i < gather.count; i++)
		gather.bytes += gather.spans[i].bytes;
	return gather;
}

/* With the lock: is the earlier request of its place done? */
static int may_begin(const struct neap__request *r)
{
	return !r->after || r->after->reuse != r->after_reuse ||
	       r->after->state == NEAP__REQUEST_DONE;
}

/*
 * With the lock. Refuses requests of a place where an abandoned put still hangs: they would hang,
 * too, and all requests behind them.
 */
static void refuse_stuck(struct neap__mover *m, int direction)
{
	struct neap__request *r;
	while ((r = m->queues[direction].first) != NULL && !may_begin(r) &&
		r->after->state == NEAP__REQUEST_ABANDONED) {
		neap__mover_unqueue(m, r);
		r->answer = -ETIMEDOUT;
		neap__print(r->detail, sizeof r->detail,
			"an earlier transfer to the same place of slow memory hangs");
		neap__mover_set_done(m, r);
	}
}

struct neap__request *neap__mover_take(struct neap__mover *m, int direction)
{
	pthread_mutex_lock(&m->lock);
	refuse_stuck(m, direction);
	struct neap__request *r = m->queues[direction].first;
	if (r && may_begin(r)) {
		m->queues[direction].first = r->next;
		r->state = NEAP__REQUEST_RUNNING;
		r->begun_at = neap__seconds();
	} else {
		r = NULL;
	}
	pthread_mutex_unlock(&m->lock);
	return r;
}

void neap__mover_give_back(struct neap__mover *m, struct neap__request *r)
{
	r->state = NEAP__REQUEST_FREE;
	r->reuse++;
	m->free[m->nfree++] = r;
}

void neap__mover_set_done(struct neap__mover *m, struct neap__request *r)
{
	if (r->state == NEAP__REQUEST_ABANDONED) {
		m->abandoned--;
		neap__mover_give_back(m, r);
	} else {
		r->state = NEAP__REQUEST_DONE;
	}
	r->done_at = neap__seconds();
	m->place_keys[r - m->requests] = -1;
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
	int direction = r->gather.put;
	struct neap__request *before = NULL;
	for (struct neap__request *at = m->queues[direction].first; at != r; at = at->next)
		before = at;
	*(before ? &before->next : &m->queues[direction].first) = r->next;
	if (m->queues[direction].last == r)
		m->queues[direction].last = before;
	for (int i = 0; i < NEAP__REQUESTS; i++) {
		struct neap__request *follower = &m->requests[i];
		if (follower->after != r || follower->after_reuse != r->reuse)
			continue;
		follower->after = r->after; /* which the follower now comes after */
		follower->after_reuse = r->after_reuse;
	}
}

int neap__mover_find(struct neap__mover *m, int64_t ticket, struct neap__request **r)
{
	int index = (int)(ticket & 0xffff);
	*r = ticket >= 0 && index < NEAP__REQUESTS ? &m->requests[index] : NULL;
	if (!*r || (*r)->state == NEAP__REQUEST_FREE || (*r)->state == NEAP__REQUEST_ABANDONED ||
		(*r)->reuse != (uint32_t)(ticket >> 16))
		return neap__fail(NEAP_EUSAGE, "no transfer has ticket %lld", (long long)ticket);
	return 0;
}
