/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_requests.h: the requests of a tier for records in a device's memory. A request is first
 * `start`ed by the thread that runs the sweep, which can queue work on streams, and then `finish`ed
 * by a background thread, in the order of the requests. Its event `ready` is recorded on the
 * model's stream: copies wait for it, so they see the work that the model has started before, and
 * do not overwrite what that work still reads.
 */
#ifndef NEAP_CUDA_DEVICE_REQUESTS_H
#define NEAP_CUDA_DEVICE_REQUESTS_H

#include "cuda/device.h"
#include "sys/worker.h"

/* Requests before the first is waited for; neap/tier.h. */
#define NEAP__DEVICE_REQUESTS 320

struct neap__device_request {
	CUevent ready;	/* created at the first use of this struct, as `copied` */
	CUevent copied; /* recorded by the tier */
	uint32_t use;	/* tells uses of this struct apart */
	int busy;	/* from the start to the end of the wait */
	int put, tapes; /* tapes: of a record of tapes, else of a state */
	int64_t place;
	uint64_t tag, bytes;
	const struct neap_span *spans;
	int count;
	struct neap_span state; /* the only span of a state */
};

/* First in the struct of a tier. The functions of the tier are called with that struct. */
struct neap__device_requests {
	struct neap_device *device;
	struct neap__worker *worker;
	int (*start)(void *self, struct neap__device_request *request);
	int (*finish)(void *self, struct neap__device_request *request);
	struct neap__device_request all[NEAP__DEVICE_REQUESTS];
	int free[NEAP__DEVICE_REQUESTS], nfree;
	int of_ticket[NEAP__DEVICE_REQUESTS]; /* by the low bits of the worker's ticket */
};

/* Fills the functions of `ops` that have to do with requests. */
void neap__device_requests_ops(struct neap_tier_ops *ops);
/* Starts the background thread; device, start and finish are set. 0 or a negative code. */
int neap__device_requests_open(struct neap__device_requests *requests);
/* Finishes all requests, ends the thread and destroys the events. */
void neap__device_requests_close(struct neap__device_requests *requests);
/* In a child process, in which neither the thread nor the device exists: frees the memory. */
void neap__device_requests_abandon(struct neap__device_requests *requests);

/* Makes later work on `stream` wait for an event. */
int neap__stream_wait(CUstream stream, CUevent event);
/*
 * Copies `bytes` from the byte `offset` of a request's record on between its spans and `host`, in
 * the direction of the request, on `stream`.
 */
int neap__request_copy(const struct neap__device_request *request, uint64_t offset, void *host,
	uint64_t bytes, CUstream stream);

#endif
