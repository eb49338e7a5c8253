/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fake_driver.h: a CUDA driver for tests on machines without a GPU: the shared library
 * libfakecuda.so, which neap loads if NEAP_CUDA_DRIVER names it. It keeps the rules of the real one
 * and uses all the freedom that they leave: work on a stream is done as late as the waits allow, or
 * at a random time before that, in any order between streams. Device memory is filled with a
 * pattern and, outside of the driver, mapped without access. Time is counted, not waited for. Work
 * on the default stream (NULL) is done at once.
 */
#ifndef NEAP_TEST_FAKE_DRIVER_H
#define NEAP_TEST_FAKE_DRIVER_H

#include <stdint.h>

#define FAKE_EXPORT __attribute__((visibility("default")))
#define FAKE_NUMBERED 1024  /* waits of a kind whose pending is known */
#define FAKE_RANDOM_SEEDS 8 /* the first seed of random times */

/* Calls that make the host or a stream wait, numbered from 1 for each kind. */
enum fake_wait {
	FAKE_STREAM_SYNCHRONIZE,
	FAKE_STREAM_WAIT_EVENT,
	FAKE_EVENT_SYNCHRONIZE,
	FAKE_WAITS
};

/* Set by tests between calls; fake_driver_reset sets the initial values. */
struct fake_driver {
	/*
	 * Below FAKE_RANDOM_SEEDS: work is done as late as possible, but that of the first and of
	 * the second stream at once if bit 0 or 1 is set, and that of the others if bit 2 is. Else
	 * at random times.
	 */
	uint64_t seed;
	uint64_t total_bytes; /* of device memory [64 MiB] */
	uint64_t misalign;    /* added to the address of each allocation */
	int devices;	      /* [1] */
	int major;	      /* of the compute capability [9] */
	int cluster_most;     /* blocks of a cluster that fit on the device [16] */
	int64_t clusters;     /* launches of clusters that were queued since the reset */
	/*
	 * Milliseconds that the host waits in each launch of a layer [0], but not of clusters of so
	 * many blocks (0: of no clusters): a test determines which is fastest.
	 */
	int slow, quick;
	double bytes_a_second; /* of copies to and from the host [2.5e10] */
	int64_t fail_call; /* this call of the driver fails [0: none]; frees are done all the same
			    */
	int fail_code;	   /* with this result [999] */
	int64_t fail_job;  /* this job fails: it is not done, and all waits fail from then on */
	int64_t fail_copy; /* so does the copy of this number, of those of copy_bytes bytes */
	int64_t sized_copies;
	uint64_t copy_bytes;
	int foreign;		/* 1: memory of the host counts as memory of the device, too */
	int ignored_wait;	/* of this kind ... */
	int64_t ignored_number; /* ... this one does nothing [0: none] ... */
	int64_t ignored_count;	/* and so many from it on [1] */
	/* Counted since the reset. */
	int64_t calls, jobs, waits[FAKE_WAITS];
	int64_t launches, copies, fills; /* jobs that were queued, by kind */
	/*
	 * Of waits, by their number: 0 if no work was pending, else 1; of a stream, 1 + its number.
	 */
	unsigned char pending[FAKE_WAITS][FAKE_NUMBERED];
	double stream_seconds[8]; /* when the work of each stream ends, in the order of creation */
	/* Contexts, allocations, streams, events and modules that exist. */
	int64_t alive;
	uint64_t to_device, to_host; /* bytes of copies that were asked for since the reset */
};

/* Blocks, blocks of a cluster or 0, threads of a block, bytes of shared memory of a block. */
struct fake_shape {
	unsigned grid, cluster, block, shared;
};

/* A kernel that the driver finds by its name: a function of the host. */
struct fake_kernel {
	const char *name;
	const uint16_t *argument_bytes; /* of each argument; 0 is the end */
	void (*run)(
		const struct fake_kernel *kernel, void **arguments, const struct fake_shape *shape);
	const void *data; /* for run */
};

/* fake_driver_kernels.c: the kernel of that name, or NULL. */
const struct fake_kernel *fake_kernel(const char *name);

/* Exported by the library, in addition to the functions of the driver. */
FAKE_EXPORT struct fake_driver *fake_driver(void);
FAKE_EXPORT void fake_driver_reset(uint64_t seed);
/* 1: waits for events begin after the next call with 0. */
FAKE_EXPORT void fake_driver_hold(uint64_t on);
/* Inverts a byte of the largest allocation of pinned memory. */
FAKE_EXPORT void fake_driver_damage_pinned(uint64_t offset);

#endif
