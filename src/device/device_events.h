/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_events.h: the inputs of a batch on the device, events or numbers, a range of steps at a
 * time, in two buffers: while launches read one of them, the next range is copied to the other one
 * on the stream `ahead`.
 */
#ifndef NEAP_DEVICE_DEVICE_EVENTS_H
#define NEAP_DEVICE_DEVICE_EVENTS_H

#include "cuda/device.h"
#include "device/device_net.h"

struct neap__input_range {
	int64_t from, to; /* steps; from == to: none */
	void *at;	  /* on the device */
	void *pinned;	  /* on the host */
	uint64_t bytes, pinned_bytes;
	size_t units;	/* words before the units; of numbers not used */
	CUevent copied; /* recorded on `ahead` after the copy to the device */
	int is_ahead;	/* of the batch that follows, which is not begun */
	CUevent read;	/* recorded on `compute` after the launches that read the buffer */
};

struct neap__device_events {
	struct neap_device *device;
	struct neap__input_range buffer[2];
	int current;   /* the buffer that launches read; -1: none */
	int64_t steps; /* of a range at most; 0: 4,096, or fewer of numbers */
};

/*
 * Forgets the events of the batch before; also the first call, with `device` set. keep: the batch
 * that begins is the one that neap__device_events_follow copied.
 */
int neap__device_events_begin(struct neap__device_events *e, int keep);
/*
 * Makes later launches find the events of step t in `batch`; *to is the step after those that they
 * find.
 */
int neap__device_events_need(struct neap__device_events *e, struct neap_net *net,
	struct neap__device_batch *batch, int64_t t, int64_t *to);
/* Copies the events of step t ahead, if the batch has this step. */
int neap__device_events_expect(struct neap__device_events *e, struct neap_net *net, int64_t t);
/* Copies the first events of the batch that will follow, which has no windows. */
int neap__device_events_follow(struct neap__device_events *e, const struct neap_batch *batch);
/* Frees all. */
void neap__device_events_free(struct neap__device_events *e);

#endif
