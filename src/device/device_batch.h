/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_batch.h: what a batch needs on the device: events, rooms of the steps and sums of
 * gradients by groups of samples, in one block of device memory, which is mapped again only if a
 * batch needs a larger one.
 */
#ifndef NEAP_DEVICE_DEVICE_BATCH_H
#define NEAP_DEVICE_DEVICE_BATCH_H

#include "cuda/device.h"
#include "device/cluster_shape.h"
#include "device/device_events.h"
#include "device/device_parameters.h"
#include "device/device_steps.h"
#include "device/tape_rounds.h"

/* Steps of a launch forward at most: a launch takes as long as some three steps. */
enum { NEAP__DEVICE_STEPS_MOST = 512 };

/* What forward passes with tapes report of each layer, next to each other for one copy to the host.
 */
struct neap__device_progress {
	int *done;  /* [layers][samples] */
	u32 *near;  /* [layers][samples] */
	u32 *bytes; /* [layers][samples] */
};

struct neap__device_batch_memory {
	struct neap_device *device;
	const struct neap_memory_ops *memory; /* of the device */
	struct neap__cluster_limits clusters; /* `blocks` 0: none are wanted */
	struct neap__device_net net;
	struct neap__device_room room;
	struct neap__device_parameter_memory parameters;
	u32 *turn;  /* [samples] the readout's part of a state or adjoint (turn_copies.c) */
	void *sums; /* room.part and room.total */
	uint64_t sums_bytes;
	void **pointers; /* of the arrays of pointers of `room` */
	int *length;
	const float **penalty; /* [layers] -> [units] on the device */
	float **leaks; /* [layers] -> [DEVICE_LEAKS][3][units] decays of units; NULL: it has none */
	/* [layers] -> [units below] parts of steps, floats, then whole steps, bytes; NULL: it has
	 * no delays. */
	u8 **delays;
	u32 **passes;	       /* [layers] -> [samples][words] of dropout; NULL: it has none */
	unsigned char *second; /* a copy of the state */
	unsigned char **tape;  /* [layers] tapes as lif_forward writes them */
	u32 *share;	       /* [layers] bytes of a sample's */
	u32 *offset;	       /* [layers][samples][room.steps + 1] of the tapes */
	struct neap__device_progress progress;
	float *host_outputs; /* [room.steps][samples][classes] */
	float *host_errors, *work;

	/* Pinned memory of the host, which copies in the order of the work read and write. */
	struct neap__device_progress host; /* the host's copy of `progress` */
	struct neap__device_round *round;  /* a head, and [layers][samples] starts */
	struct neap__device_tape_head *head;
	void *pinned;
	uint64_t pinned_bytes;

	void *block;
	uint64_t block_bytes;
	struct neap__device_events events;
};

/*
 * Makes room for the batch that `net` has begun, copies its lengths and clears its sums; its
 * weights are there. 0 or a negative code.
 */
int neap__device_batch_begin(struct neap__device_batch_memory *b, struct neap_net *net);
void neap__device_batch_free(struct neap__device_batch_memory *b);
/* turn_copies.c: bytes of `turn` per sample. */
uint64_t neap__device_turn_bytes(const struct neap_net *net);

#endif
