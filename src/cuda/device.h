/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.h: an open device, as the files of src/cuda see it. Models launch their kernels on the
 * stream `compute`, on which the functions of neap_memory_ops also run, so that all of it is done
 * in the order of the calls. Tiers copy on `out` and `in`, after an event of `compute`, and models
 * their inputs on `ahead`.
 */
#ifndef NEAP_CUDA_DEVICE_H
#define NEAP_CUDA_DEVICE_H

#include <neap/cuda.h>
#include "cuda/driver.h"
#include "cuda/energy.h"

#include <sys/types.h>

#define NEAP__SCRATCH ((uint64_t)1 << 20) /* bytes, for moves between ranges that overlap */

struct neap__mapping;

struct neap_device {
	CUdevice device;
	CUcontext context; /* the primary one, as of other libraries in the process */
	int retained;
	CUstream compute, out, in, ahead;
	CUstream own;	/* `compute` at first; neap__device_compute_on replaces it */
	CUevent turned; /* recorded when `compute` is replaced */
	CUdeviceptr scratch;
	/* Bytes: mapped now, and at most; free when the device was opened; free at least, and what
	   was free before anything was mapped, by the driver. */
	uint64_t mapped, mapped_most, free_first, free_least;
	uint64_t lacked; /* bytes of the last mapping for which there was no memory; 0: it succeeded
			  */
	char bus[32];	 /* address on the PCI bus */
	struct neap__energy energy;	/* opened when it is first read */
	struct neap__mapping *mappings; /* of neap_memory_ops.map */
	struct neap_memory_ops memory;
	pid_t process; /* that opened it: CUDA does not work in a child */
	char name[16], about[320];
};

/* Makes the device's context the one of the calling thread. 0 or a negative code. */
int neap__device_enter(const struct neap_device *device);
/* As neap__device_enter, before something is freed. 1, also if it fails; 0: it is the parent's. */
int neap__device_enter_to_free(const struct neap_device *device);

/*
 * Makes a stream of the caller the one that is `compute`, after the work on the one before. It must
 * exist until another one is given, or the device is closed.
 */
int neap__device_compute_on(struct neap_device *device, CUstream stream);

/* Joules that the device has taken since the first call; NAN: they are not known. */
double neap__device_joules(struct neap_device *device);

/* Fills device->memory. */
void neap__device_memory_init(struct neap_device *device);
/* Frees all mappings. */
void neap__device_memory_fini(struct neap_device *device);

/*
 * Copies between pinned memory and the device in the order of the work on `compute`; `pinned` is
 * the caller's again when that work is done.
 */
int neap__device_send(
	const struct neap_device *device, void *at, const void *pinned, uint64_t bytes);
int neap__device_fetch(
	const struct neap_device *device, void *pinned, const void *at, uint64_t bytes);

/* Sets free_first, with nothing mapped but the scratch memory: after modules are loaded. */
void neap__device_memory_settle(struct neap_device *device);

/*
 * Maps device memory that no budget counts: for `what`, such as "a batch". NEAP_EINFEASIBLE where
 * the device has too little of it, else -ENOMEM.
 */
int neap__device_memory_map(
	const struct neap_memory_ops *memory, void **at, uint64_t bytes, const char *what);

/* Bytes of pinned memory of the host, or NULL; `what` is for the detail line. */
int neap__pinned_alloc(const struct neap_device *device, void **at, uint64_t bytes);
/* Frees pinned memory. NULL is fine. */
void neap__pinned_free(const struct neap_device *device, void *at);

struct neap__device_speed {
	double rate[3]; /* bytes per second of copies: from pinned memory, to it, within the device
			 */
	double launch;	/* seconds of a small launch, of several in a row, with a wait for all */
};
/* Measures once. 0 or a negative code. */
int neap__device_speed(struct neap_device *device, struct neap__device_speed *speed);

/* Opens a tier in pinned memory of at most `capacity` bytes. */
int neap__pinned_open(struct neap_tier **tier, struct neap_device *device, uint64_t capacity);
/*
 * Opens a tier that passes records of the device's memory to `inner`, a tier that reads and writes
 * ordinary memory, through pinned pieces. Takes `inner`, also if it fails.
 */
int neap__bounce_open(struct neap_tier **tier, struct neap_device *device, struct neap_tier *inner);

#endif
