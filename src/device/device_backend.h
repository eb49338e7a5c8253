/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_backend.h: a net whose steps run on a CUDA device: struct neap__step_backend over the
 * kernels of device_steps.h and the memory of an open device.
 */
#ifndef NEAP_DEVICE_DEVICE_BACKEND_H
#define NEAP_DEVICE_DEVICE_BACKEND_H

#include "cuda/device.h"
#include "device/device_batch.h"
#include "nn/core/step_backend.h"

struct neap__device_backend {
	struct neap__step_backend steps;
	struct neap_device *device;
	struct neap_net *net;
	unsigned char *turn_parts; /* pinned memory of turn_copies.c */
	uint64_t turn_bytes;
	CUmodule module;
	CUfunction function[NEAP__DEVICE_KERNEL_COUNT];
	CUfunction two[NEAP__DEVICE_KERNEL_COUNT]; /* for small blocks (KERNEL_TWO); or NULL */
	struct neap__device_launcher launcher;
	struct neap__device_batch_memory batch;
	struct neap__round_list rounds; /* of the tapes of this batch */
	CUevent told;	  /* recorded after the copy of what the device tells of tapes */
	int launch_steps; /* forward, at most */
	unsigned shared;  /* as of struct neap__device_net */
	int processors;
	int unfolded; /* the gradient block in progress is not added to the totals yet */
};

/*
 * Makes the steps of `net` run on `device`, from its next batch on. The device and the net must
 * outlive the backend. -ENOEXEC: this build has no kernels for the device.
 */
int neap__device_backend_open(
	struct neap__device_backend **backend, struct neap_device *device, struct neap_net *net);
/*
 * From the next batch on, clusters of so many blocks compute the layers whose recurrent weights fit
 * into their shared memory; 0: none. NEAP_EUSAGE: the device has no clusters, or there is no such
 * layer.
 */
int neap__device_backend_clusters(struct neap__device_backend *backend, int blocks);
/* Makes the net run on this processor again. NULL is allowed. */
void neap__device_backend_close(struct neap__device_backend *backend);

/* device_record.c: rows of struct neap__step_backend; `self` is the backend. */
int neap__device_advance(void *self, void *state, int64_t t0, int64_t t1, int first);
int neap__device_record(void *self, void *state, int64_t t0, int64_t t1, int first, void *tape,
	size_t room, size_t *used, int64_t *t_done);
int neap__device_advance_log(void *self, void *state, int64_t t0, int64_t t1, int first, void *log,
	size_t room, size_t *used, int64_t *t_done);
int neap__device_record_log(void *self, void *state, int64_t t0, int64_t t1, const void *log,
	int64_t log_t0, void *tape, size_t room, size_t *used, int64_t *t_done);
/* Bytes of the outputs of n steps in a round, after which it has the factors of the readout. */
size_t neap__device_round_outputs(const struct neap__device_backend *backend, int64_t n);
/* Bytes of one step's tape at most. */
size_t neap__device_tape_max(const struct neap__device_backend *backend);

/* device_reverse.c: the same. */
int neap__device_reverse(void *self, void *adjoint, int64_t t1, int64_t t0, const void *tape);

/* device_sums.c: the same. */
int neap__device_fetch_counts(void *self, struct neap_net *net);
int neap__device_send_penalties(void *self, struct neap_net *net);
int neap__device_fetch_sums(void *self, struct neap_net *net);
int neap__device_send_sums(void *self, struct neap_net *net);

/* turn_copies.c: the same. */
int neap__device_fetch_readout(void *self, struct neap_net *net, const void *state, void *copy);
int neap__device_send_adjoint(void *self, struct neap_net *net, void *adjoint, void *copy);

#endif
