/* SPDX-License-Identifier: Apache-2.0 */
/* device_speed.c: times copies and the smallest work of a device (device.h). */
#include "cuda/device.h"
#include "base/fail.h"
#include "sys/clock.h"

#include <errno.h>

enum {
	LAUNCHES = 64,	   /* in a row: what the first one waits for counts little */
	FILLED = 4 << 10,  /* bytes that such a launch writes */
	COPIED = 16 << 20, /* bytes of a copy: at 50 GB/s its start counts for a hundredth */
};

/* Copies between the halves of `at` and pinned memory; `kind` 0: to the device, 1: back, 2: within.
 */
static int copy(
	const struct neap_device *device, CUdeviceptr at, void *host, uint64_t bytes, int kind)
{
	if (kind == 0)
		return NEAP__CUDA(cuMemcpyHtoDAsync, (at, host, bytes, device->compute));
	if (kind == 1)
		return NEAP__CUDA(cuMemcpyDtoHAsync, (host, at, bytes, device->compute));
	return NEAP__CUDA(cuMemcpyDtoDAsync, (at + bytes, at, bytes, device->compute));
}

static int time_copies(const struct neap_device *device, CUdeviceptr at, void *host, uint64_t bytes,
	double rate[3])
{
	for (int kind = 0; kind < 3; kind++) {
		double start = neap__seconds();
		NEAP_TRY(copy(device, at, host, bytes, kind));
		NEAP_TRY(neap_device_wait(device));
		double seconds = neap__seconds() - start;
		rate[kind] = (double)bytes / (seconds > 1e-9 ? seconds : 1e-9);
	}
	return 0;
}

/* A fill is a kernel of the driver. */
static int time_launches(const struct neap_device *device, CUdeviceptr at, double *seconds)
{
	double start = neap__seconds();

	for (int i = 0; i < LAUNCHES; i++)
		NEAP_TRY(NEAP__CUDA(cuMemsetD8Async, (at, 0, FILLED, device->compute)));
	NEAP_TRY(neap_device_wait(device));
	*seconds = (neap__seconds() - start) / LAUNCHES;
	return 0;
}

int neap__device_speed(struct neap_device *device, struct neap__device_speed *speed)
{
	const struct neap_memory_ops *m = &device->memory;
	uint64_t left, all, bytes;
	void *at, *host;

	NEAP_TRY(neap_device_bytes(device, &left, &all));
	bytes = left / 4 < COPIED ? left / 4 & ~(uint64_t)4095 : COPIED;
	if (bytes < FILLED)
		return neap__fail(NEAP_EINFEASIBLE, "%s: %llu bytes are free, too few to measure",
			device->name, (unsigned long long)left);
	at = m->map(m->user, 2 * bytes);
	if (!at)
		return -ENOMEM;
	int rc = neap__pinned_alloc(device, &host, bytes);
	if (rc == 0) {
		CUdeviceptr address = (CUdeviceptr)(uintptr_t)at;
		rc = m->fill(m->user, at, 0, 2 * bytes);
		if (rc == 0)
			rc = neap_device_wait(device);
		if (rc == 0)
			rc = time_copies(device, address, host, bytes, speed->rate);
		if (rc == 0)
			rc = time_launches(device, address, &speed->launch);
		neap__pinned_free(device, host);
	}
	m->unmap(m->user, at, 2 * bytes);
	return rc;
}
