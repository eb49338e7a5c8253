/* SPDX-License-Identifier: Apache-2.0 */
#include "store/worked.h"

static int post(struct neap__worked *worked, int kind, int64_t place, uint64_t tag, void *data,
	uint64_t bytes, int64_t *ticket)
{
	struct neap__job job = {kind, place, tag, data, bytes};
	return neap__worker_post(worked->worker, &job, ticket);
}

int neap__worked_put(
	void *self, int64_t place, uint64_t tag, const void *from, uint64_t bytes, int64_t *ticket)
{
	return post(self, NEAP__PUT, place, tag, (void *)(uintptr_t)from, bytes, ticket);
}

int neap__worked_get(
	void *self, int64_t place, uint64_t tag, void *into, uint64_t bytes, int64_t *ticket)
{
	return post(self, NEAP__GET, place, tag, into, bytes, ticket);
}

int neap__worked_wait(void *self, int64_t ticket)
{
	struct neap__worked *worked = self;
	return neap__worker_wait(worked->worker, ticket);
}
