/* SPDX-License-Identifier: Apache-2.0 */
/* background.c: posts the calls of struct neap_tier_ops as jobs. */
#include "store/background.h"
#include "store/mover.h"

static int post(struct neap__background *background, int kind, int64_t place, uint64_t tag,
	void *data, uint64_t bytes, int64_t *ticket)
{
	struct neap__job job = {kind, place, tag, data, bytes};
	return background->mover ? neap__mover_post(background->mover, &job, ticket)
				 : neap__worker_post(background->worker, &job, ticket);
}

int neap__background_put(
	void *self, int64_t place, uint64_t tag, const void *from, uint64_t bytes, int64_t *ticket)
{
	return post(self, NEAP__PUT, place, tag, (void *)(uintptr_t)from, bytes, ticket);
}

int neap__background_get(
	void *self, int64_t place, uint64_t tag, void *into, uint64_t bytes, int64_t *ticket)
{
	return post(self, NEAP__GET, place, tag, into, bytes, ticket);
}

/* `bytes` of a job of spans is their number. */
int neap__background_put_tapes(void *self, int64_t place, uint64_t tag,
	const struct neap_span *spans, int count, int64_t *ticket)
{
	return post(self, NEAP__PUT_TAPES, place, tag, (void *)(uintptr_t)spans, (uint64_t)count,
		ticket);
}

int neap__background_get_tapes(void *self, int64_t place, uint64_t tag,
	const struct neap_span *spans, int count, int64_t *ticket)
{
	return post(self, NEAP__GET_TAPES, place, tag, (void *)(uintptr_t)spans, (uint64_t)count,
		ticket);
}

int neap__background_put_spans(void *self, int64_t place, uint64_t tag,
	const struct neap_span *spans, int count, int64_t *ticket)
{
	return post(self, NEAP__PUT_SPANS, place, tag, (void *)(uintptr_t)spans, (uint64_t)count,
		ticket);
}

int neap__background_get_spans(void *self, int64_t place, uint64_t tag,
	const struct neap_span *spans, int count, int64_t *ticket)
{
	return post(self, NEAP__GET_SPANS, place, tag, (void *)(uintptr_t)spans, (uint64_t)count,
		ticket);
}

int neap__background_wait(void *self, int64_t ticket)
{
	struct neap__background *background = self;
	return background->mover ? neap__mover_wait(background->mover, ticket)
				 : neap__worker_wait(background->worker, ticket);
}

int neap__background_done(void *self, int64_t ticket)
{
	struct neap__background *background = self;
	return background->mover ? neap__mover_over(background->mover, ticket)
				 : neap__worker_over(background->worker, ticket);
}

int neap__background_wait_for(void *self, int64_t ticket, double seconds)
{
	struct neap__background *background = self;
	return background->mover ? neap__mover_wait_for(background->mover, ticket, seconds)
				 : neap__worker_wait_for(background->worker, ticket, seconds);
}

int neap__background_cancel(void *self, int64_t ticket)
{
	struct neap__background *background = self;
	return background->mover ? neap__mover_cancel(background->mover, ticket) : 0;
}

void neap__background_times(void *self, double *start, double *end)
{
	const struct neap__background *background = self;
	if (background->mover)
		neap__mover_times(background->mover, start, end);
	else
		neap__worker_times(background->worker, start, end);
}
