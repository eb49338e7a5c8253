/* SPDX-License-Identifier: Apache-2.0 */
/*
 * launches.h: kernels are launched through a launcher, which is a stream of a driver or, in tests,
 * the emulator. The numbers of blocks and threads and the bytes of shared memory follow from the
 * arguments by the row of the kernel in NEAP__DEVICE_KERNELS (kernels/kernels.h).
 */
#ifndef NEAP_DEVICE_LAUNCHES_H
#define NEAP_DEVICE_LAUNCHES_H

#include "device/kernels/kernels.h"

/* A kernel to run. `arguments` are valid during the call alone. */
struct neap__device_launch {
	enum neap__device_kernel kernel;
	int blocks, threads;
	int cluster; /* blocks of a cluster; 0: there are none */
	unsigned shared_bytes;
	const void *arguments;
	size_t argument_bytes;
};

/* Work on one stream: each call begins when those before it have ended. */
struct neap__device_launcher {
	/* Returns 0 or a negative code. */
	int (*launch)(void *user, const struct neap__device_launch *launch);
	/* Sets device memory to zero bytes. Returns 0 or a negative code. */
	int (*clear)(void *user, void *at, size_t bytes);
	void *user;
};

/* Returns the name of a kernel in the compiled text. */
const char *neap__device_kernel_name(enum neap__device_kernel kernel);

/* neap__launch_NAME(launcher, arguments): launches a kernel. Returns 0 or a negative code. */
#define NEAP_X(name, blocks, threads, shared)                                                      \
	int neap__launch_##name(                                                                   \
		const struct neap__device_launcher *on, const struct name##_arguments *a);
NEAP__DEVICE_KERNELS(NEAP_X)
#undef NEAP_X

#endif
