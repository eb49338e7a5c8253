/* SPDX-License-Identifier: Apache-2.0 */
/* device_requests.c: starts requests, posts them to the background thread, and waits for them. */
#include "cuda/device_requests.h"
#include "base/fail.h"

#include <errno.h>
#include <math.h>

#define INDEX 0xffff /* of a worker's ticket */

static int finish(void *self, const struct neap__job *job)
{
	struct neap__device_requests *requests = self;
	NEAP_TRY(neap__device_enter(requests->device));
	return requests->finish(self, job->data);
}

int neap__device_requests_open(struct neap__device_requests *requests)
{
	for (int i = NEAP__DEVICE_REQUESTS - 1; i >= 0; i--)
		requests->free[requests->nfree++] = i;
	return neap__worker_create(&requests->worker, NEAP__DEVICE_REQUESTS, finish, requests);
}

void neap__device_requests_close(struct neap__device_requests *requests)
{
	neap__worker_free(requests->worker);
	if (!neap__device_enter_to_free(requests->device))
		return;
	for (int i = 0; i < NEAP__DEVICE_REQUESTS; i++) {
		CUevent events[] = {requests->all[i].ready, requests->all[i].copied};
		for (int j = 0; j < 2; j++)
			if (events[j])
				NEAP__CUDA(cuEventDestroy, (events[j]));
	}
}

void neap__device_requests_abandon(struct neap__device_requests *requests)
{
	neap__worker_orphan(requests->worker);
}

int neap__stream_wait(CUstream stream, CUevent event)
{
	return NEAP__CUDA(cuStreamWaitEvent, (stream, event, 0));
}

int neap__request_copy(const struct neap__device_request *request, uint64_t offset, void *host,
	uint64_t bytes, CUstream stream)
{
	unsigned char *at = host;
	for (int i = 0; i < request->count && bytes > 0; i++) {
		const struct neap_span *span = &request->spans[i];
		if (offset >= span->bytes) {
			offset -= span->bytes;
			continue;
		}
		uint64_t left = span->bytes - offset, n = left < bytes ? left : bytes;
		CUdeviceptr on_device = (CUdeviceptr)(uintptr_t)span->at + offset;
		NEAP_TRY(request->put ? NEAP__CUDA(cuMemcpyDtoHAsync, (at, on_device, n, stream))
				      : NEAP__CUDA(cuMemcpyHtoDAsync, (on_device, at, n, stream)));
		at += n;
		bytes -= n;
		offset = 0;
	}
	return 0;
}

/* Events are created as they are needed: most tiers have few requests in flight. */
static int create_events(struct neap__device_request *request)
{
	CUevent *events[] = {&request->ready, &request->copied};
	for (int i = 0; i < 2; i++)
		if (!*events[i])
			NEAP_TRY(NEAP__CUDA(
				cuEventCreate, (events[i], NEAP__CUDA_EVENT_DISABLE_TIMING)));
	return 0;
}

static int start(struct neap__device_requests *requests, struct neap__device_request *request)
{
	NEAP_TRY(create_events(request));
	NEAP_TRY(NEAP__CUDA(cuEventRecord, (request->ready, requests->device->compute)));
	return requests->start(requests, request);
}

static int post(struct neap__device_requests *requests, const struct neap__device_request *given,
	int64_t *ticket)
{
	NEAP_TRY(neap__device_enter(requests->device));
	if (requests->nfree == 0)
		return neap__fail(
			-EAGAIN, "more than %d transfers in flight", NEAP__DEVICE_REQUESTS);
	int index = requests->free[requests->nfree - 1];
	struct neap__device_request *request = &requests->all[index];
	CUevent ready = request->ready, copied = request->copied;
	uint32_t use = request->use;
	*request = *given;
	request->ready = ready;
	request->copied = copied;
	request->use = use + 1;
	request->busy = 1;
	if (!request->spans) {
		request->spans = &request->state;
		request->count = 1;
	}
	for (int i = 0; i < request->count; i++)
		request->bytes += request->spans[i].bytes;
	const struct neap__job job = {.data = request};
	int rc = start(requests, request);
	if (rc == 0)
		rc = neap__worker_post(requests->worker, &job, ticket);
	if (rc < 0) {
		request->busy = 0;
		return rc;
	}
	requests->of_ticket[*ticket & INDEX] = index;
	requests->nfree--;
	return 0;
}

static int wait_for(void *self, int64_t ticket, double seconds)
{
	struct neap__device_requests *requests = self;
	int over = neap__worker_over(requests->worker, ticket);
	if (over == NEAP_EUSAGE)
		return over; /* else the answer frees the request, whatever it is */
	int rc = neap__worker_wait_for(requests->worker, ticket, seconds);
	if (rc != 0) {
		int index = requests->of_ticket[ticket & INDEX];
		requests->all[index].busy = 0;
		requests->free[requests->nfree++] = index;
	}
	return rc;
}

static int wait(void *self, int64_t ticket)
{
	int rc = wait_for(self, ticket, INFINITY);
	return rc > 0 ? 0 : rc;
}

static int done(void *self, int64_t ticket)
{
	const struct neap__device_requests *requests = self;
	return neap__worker_over(requests->worker, ticket);
}

static void times(void *self, double *began, double *ended)
{
	const struct neap__device_requests *requests = self;
	neap__worker_times(requests->worker, began, ended);
}

static int put(
	void *self, int64_t place, uint64_t tag, const void *from, uint64_t bytes, int64_t *ticket)
{
	return post(self,
		&(struct neap__device_request){.put = 1,
			.place = place,
			.tag = tag,
			.state = {(void *)(uintptr_t)from, bytes}},
		ticket);
}

static int get(void *self, int64_t place, uint64_t tag, void *into, uint64_t bytes, int64_t *ticket)
{
	return post(self,
		&(struct neap__device_request){.place = place, .tag = tag, .state = {into, bytes}},
		ticket);
}

#define NEAP__SPANS(name, is_put, is_tapes)                                                        \
	static int name(void *self, int64_t place, uint64_t tag, const struct neap_span *spans,    \
		int count, int64_t *ticket)                                                        \
	{                                                                                          \
		return post(self,                                                                  \
			&(struct neap__device_request){.put = (is_put),                            \
				.tapes = (is_tapes),                                               \
				.place = place,                                                    \
				.tag = tag,                                                        \
				.spans = spans,                                                    \
				.count = count},                                                   \
			ticket);                                                                   \
	}
NEAP__SPANS(put_tapes, 1, 1)
NEAP__SPANS(get_tapes, 0, 1)
NEAP__SPANS(put_spans, 1, 0)
NEAP__SPANS(get_spans, 0, 0)

void neap__device_requests_ops(struct neap_tier_ops *ops)
{
	ops->put = put;
	ops->get = get;
	ops->put_tapes = put_tapes;
	ops->get_tapes = get_tapes;
	ops->put_spans = put_spans;
	ops->get_spans = get_spans;
	ops->wait = wait;
	ops->wait_for = wait_for;
	ops->done = done;
	ops->times = times;
}
