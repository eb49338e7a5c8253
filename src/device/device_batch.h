/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_batch.h: what a batch needs on the device: events, rooms of the steps and sums of
 * gradients by groups of samples, in one block of device memory, which is mapped again only if a
 * batch needs a larger one.
 */
#ifndef NEAP_DEVICE_DEVICE_BATCH_H
#define NEAP_DEVICE_DEVICE_BATCH_H

#include "device/device_parameters.h"
#include "device/device_steps.h"

#include <neap/memory.h>

/* Steps of a launch: those of a gradient block. */
enum { NEAP__DEVICE_STEPS = DEVICE_BLOCK_STEPS };

/* What forward passes with tapes report of each layer, next to each other for one copy to the host.
 */
struct neap__device_progress {
	int *done;    /* [layers][samples] */
	u32 *near;    /* [layers][samples] */
	u32 *offset;  /* [layers][samples][NEAP__DEVICE_STEPS + 1] */
	size_t bytes; /* of all */
};

struct neap__device_batch_memory {
	const struct neap_memory_ops *memory;
	struct neap__device_net net;
	struct neap__device_room room;
	struct neap__device_parameter_memory parameters;
	u32 *turn;  /* [samples] the readout's part of a state or adjoint (turn_copies.c) */
	void *sums; /* room.part and room.total */
	uint64_t sums_bytes;
	void **pointers; /* of the arrays of pointers of `room` */
	int *length;
	const float **penalty; /* [layers] -> [units] on the device */
	unsigned char *second; /* a copy of the state */
	unsigned char **tape;  /* [layers] tapes as lif_forward writes them */
	u32 **packed;	       /* [layers] their bytes, once they are packed */
	u32 *share;	       /* [layers] bytes of a sample's */
	struct neap__device_progress progress;
	struct neap__device_progress host; /* the host's copy of it */
	float *host_outputs;		   /* [NEAP__DEVICE_STEPS][samples][classes] */
	float *host_errors, *work;

	void *block;
	uint64_t block_bytes;
	/* Events of steps [events_from, events_to) of the batch. */
	void *events;
	uint64_t events_bytes;
	int64_t events_from, events_to;
	void *staging; /* of events, on the host */
	size_t staging_bytes;
};

/*
 * Makes room for the batch that `net` has begun, copies its lengths and clears its sums; its
 * weights are there. 0 or a negative code.
 */
int neap__device_batch_begin(struct neap__device_batch_memory *b, struct neap_net *net);
/* Makes sure that the events of step t are on the device. The steps with events end before *to. */
int neap__device_batch_events(
	struct neap__device_batch_memory *b, struct neap_net *net, int64_t t, int64_t *to);
void neap__device_batch_free(struct neap__device_batch_memory *b);
/* turn_copies.c: bytes of `turn` per sample. */
uint64_t neap__device_turn_bytes(const struct neap_net *net);

#endif
