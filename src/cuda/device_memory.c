/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_memory.c: struct neap_memory_ops over the memory of a device. All functions run on the
 * stream of the model. move and fill return once they are in that order; read and write wait, since
 * `host` is the caller's again when they return.
 */
#include "cuda/device.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>

#define ALIGNED 4096 /* what neap_memory_ops.map promises */

/* Memory of the driver at `base`, of which the caller has the part from `at` on. */
struct neap__mapping {
	CUdeviceptr base, at;
	uint64_t bytes;
	struct neap__mapping *next;
};

static CUdeviceptr address(const void *at)
{
	return (CUdeviceptr)(uintptr_t)at;
}

/* Says how much there is, after a request for `bytes` has failed. */
static void explain(const struct neap_device *device, uint64_t bytes)
{
	size_t left = 0, all = 0;
	if (NEAP__CUDA(cuMemGetInfo, (&left, &all)) == 0)
		neap__fail(-ENOMEM,
			"%s: %llu bytes of device memory were requested, and %llu of %llu bytes "
			"are free. Use a smaller memory budget, or free memory of the device",
			device->name, (unsigned long long)bytes, (unsigned long long)left,
			(unsigned long long)all);
}

void neap__device_memory_settle(struct neap_device *device)
{
	size_t left = 0, all = 0;
	if (device->mapped == 0 && NEAP__CUDA(cuMemGetInfo, (&left, &all)) == 0)
		device->free_first = device->free_least = left;
}

/* Keeps count of an allocation. That the driver fails to say what is free changes no result. */
static void count(struct neap_device *device, uint64_t bytes)
{
	size_t left = 0, all = 0;
	device->mapped += bytes;
	if (device->mapped > device->mapped_most)
		device->mapped_most = device->mapped;
	if (NEAP__CUDA(cuMemGetInfo, (&left, &all)) == 0 && left < device->free_least)
		device->free_least = left;
}

static void *map(void *user, uint64_t bytes)
{
	struct neap_device *device = user;
	CUdeviceptr base = 0;
	struct neap__mapping *mapping = malloc(sizeof *mapping);
	if (!mapping || neap__device_enter(device) < 0) {
		free(mapping);
		return NULL;
	}
	int rc = NEAP__CUDA(cuMemAlloc, (&base, bytes));
	uint64_t taken = bytes;
	if (rc == 0 && base % ALIGNED != 0) { /* the driver promises 256 bytes */
		NEAP__CUDA(cuMemFree, (base));
		taken += ALIGNED;
		rc = NEAP__CUDA(cuMemAlloc, (&base, taken));
	}
	device->lacked = rc == -ENOMEM ? taken : 0;
	if (rc < 0) {
		if (rc == -ENOMEM)
			explain(device, bytes);
		free(mapping);
		return NULL;
	}
	*mapping = (struct neap__mapping){
		base, (base + ALIGNED - 1) / ALIGNED * ALIGNED, taken, device->mappings};
	device->mappings = mapping;
	count(device, taken);
	return (void *)(uintptr_t)mapping->at;
}

int neap__device_memory_map(
	const struct neap_memory_ops *memory, void **at, uint64_t bytes, const char *what)
{
	const struct neap_device *device = memory->user;
	size_t left = 0, all = 0;

	*at = memory->map(memory->user, bytes);
	if (*at)
		return 0;
	if (!device->lacked || NEAP__CUDA(cuMemGetInfo, (&left, &all)) < 0)
		return neap__fail_in(-ENOMEM, "%s: ", what);
	return neap__fail(NEAP_EINFEASIBLE,
		"%s needs %llu bytes of the memory of %s in addition to the memory budget, and "
		"%llu of %llu bytes are free. Use a smaller --batch, or free memory of the device",
		what, (unsigned long long)bytes, device->name, (unsigned long long)left,
		(unsigned long long)all);
}

/* cuMemFree waits for the work on the memory. */
static void unmap(void *user, void *at, uint64_t bytes)
{
	struct neap_device *device = user;
	struct neap__mapping **link = &device->mappings;
	(void)bytes;
	while (*link && (*link)->at != address(at))
		link = &(*link)->next;
	struct neap__mapping *mapping = *link;
	if (!mapping)
		return;
	*link = mapping->next;
	device->mapped -= mapping->bytes;
	if (neap__device_enter_to_free(device))
		NEAP__CUDA(cuMemFree, (mapping->base));
	free(mapping);
}

void neap__device_memory_fini(struct neap_device *device)
{
	while (device->mappings)
		unmap(device, (void *)(uintptr_t)device->mappings->at, 0);
}

/* Copies a piece: by way of the scratch memory if its ranges overlap. */
static int copy_piece(const struct neap_device *device, CUdeviceptr to, CUdeviceptr from,
	uint64_t bytes, int overlaps)
{
	if (!overlaps)
		return NEAP__CUDA(cuMemcpyDtoDAsync, (to, from, bytes, device->compute));
	NEAP_TRY(NEAP__CUDA(cuMemcpyDtoDAsync, (device->scratch, from, bytes, device->compute)));
	return NEAP__CUDA(cuMemcpyDtoDAsync, (to, device->scratch, bytes, device->compute));
}

/*
 * The driver does not define copies between ranges that overlap. They are divided into pieces, from
 * the end that is not overwritten before it is read: as long as the distance of the ranges, so that
 * the ranges of a piece do not overlap, or, if that is short, as long as the scratch memory.
 */
static int move(void *user, void *to_at, const void *from_at, uint64_t bytes)
{
	const struct neap_device *device = user;
	CUdeviceptr to = address(to_at), from = address(from_at);
	uint64_t distance = to > from ? to - from : from - to;
	int scratch = distance < bytes && distance < NEAP__SCRATCH;
	uint64_t piece = distance >= bytes ? bytes : scratch ? NEAP__SCRATCH : distance;
	if (bytes == 0 || distance == 0)
		return 0;
	NEAP_TRY(neap__device_enter(device));
	for (uint64_t done = 0; done < bytes; done += piece) {
		uint64_t left = bytes - done, n = left < piece ? left : piece;
		uint64_t at = to > from ? left - n : done;
		NEAP_TRY(copy_piece(device, to + at, from + at, n, scratch));
	}
	return 0;
}

static int fill(void *user, void *at, int byte, uint64_t bytes)
{
	const struct neap_device *device = user;
	NEAP_TRY(neap__device_enter(device));
	return NEAP__CUDA(
		cuMemsetD8Async, (address(at), (unsigned char)byte, bytes, device->compute));
}

int neap__device_send(
	const struct neap_device *device, void *at, const void *pinned, uint64_t bytes)
{
	NEAP_TRY(neap__device_enter(device));
	return NEAP__CUDA(cuMemcpyHtoDAsync, (address(at), pinned, bytes, device->compute));
}

int neap__device_fetch(
	const struct neap_device *device, void *pinned, const void *at, uint64_t bytes)
{
	NEAP_TRY(neap__device_enter(device));
	return NEAP__CUDA(cuMemcpyDtoHAsync, (pinned, address(at), bytes, device->compute));
}

static int read_out(void *user, void *host, const void *at, uint64_t bytes)
{
	const struct neap_device *device = user;
	if (bytes ==
		0) /* such as the weights of a tensor without connections, which have no address */
		return 0;
	NEAP_TRY(neap__device_fetch(device, host, at, bytes));
	return NEAP__CUDA(cuStreamSynchronize, (device->compute));
}

static int write_in(void *user, void *at, const void *host, uint64_t bytes)
{
	const struct neap_device *device = user;
	if (bytes == 0)
		return 0;
	NEAP_TRY(neap__device_send(device, at, host, bytes));
	return NEAP__CUDA(cuStreamSynchronize, (device->compute));
}

void neap__device_memory_init(struct neap_device *device)
{
	device->memory = (struct neap_memory_ops){.size = sizeof device->memory,
		.user = device,
		.map = map,
		.unmap = unmap,
		.move = move,
		.fill = fill,
		.read = read_out,
		.write = write_in};
}

int neap__pinned_alloc(const struct neap_device *device, void **at, uint64_t bytes)
{
	NEAP_TRY(neap__device_enter(device));
	int rc = NEAP__CUDA(cuMemHostAlloc, (at, bytes, NEAP__CUDA_HOST_PORTABLE));
	if (rc < 0)
		*at = NULL;
	return rc < 0 ? neap__fail_in(
				rc, "%llu bytes of pinned memory: ", (unsigned long long)bytes)
		      : 0;
}

void neap__pinned_free(const struct neap_device *device, void *at)
{
	if (at && neap__device_enter_to_free(device))
		NEAP__CUDA(cuMemFreeHost, (at));
}
