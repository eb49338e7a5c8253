/* SPDX-License-Identifier: Apache-2.0 */
/* device.c: opens a CUDA device: its primary context and four streams. */
#include "cuda/device.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/units.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int neap__device_enter(const struct neap_device *device)
{
	if (device->process != getpid())
		return neap__fail(NEAP_EFORKED,
			"%s was opened by the process that forked this one, and CUDA does not work "
			"in a forked process. Open the device after the fork",
			device->about);
	return NEAP__CUDA(cuCtxSetCurrent, (device->context));
}

int neap__device_enter_to_free(const struct neap_device *device)
{
	return neap__device_enter(device) != NEAP_EFORKED;
}

/* The ordinal of "cuda" or "cuda:N". */
static int read_name(int *ordinal, const char *name)
{
	int64_t number = 0;
	if (strncmp(name, "cuda", 4) == 0 &&
		(name[4] == '\0' || (name[4] == ':' && neap__units_count(&number, name + 5) == 0 &&
					    number >= 0 && number <= 999))) {
		*ordinal = (int)number;
		return 0;
	}
	return neap__fail(NEAP_EUSAGE,
		"device '%s' is not known; write cuda, cuda:N for device number N, or "
		"cuda:clusters=8 for clusters of 8 blocks",
		name);
}

static int find(struct neap_device *device, const char *name)
{
	int ordinal = 0, count = 0;
	NEAP_TRY(read_name(&ordinal, name));
	neap__print(device->name, sizeof device->name, "cuda:%d", ordinal);
	NEAP_TRY(neap__cuda_load());
	NEAP_TRY(NEAP__CUDA(cuDeviceGetCount, (&count)));
	if (count < 1)
		return neap__fail(-ENODEV, "the CUDA driver finds no device");
	if (ordinal >= count)
		return neap__fail(-ENODEV, "the number of devices is %d; the last one is 'cuda:%d'",
			count, count - 1);
	return NEAP__CUDA(cuDeviceGet, (&device->device, ordinal));
}

static int describe(struct neap_device *device)
{
	char model[256] = "";
	int major = 0, minor = 0, processors = 0;
	NEAP_TRY(NEAP__CUDA(cuDeviceGetName, (model, (int)sizeof model - 1, device->device)));
	NEAP_TRY(NEAP__CUDA(
		cuDeviceGetAttribute, (&major, NEAP__CUDA_ATTRIBUTE_MAJOR, device->device)));
	NEAP_TRY(NEAP__CUDA(
		cuDeviceGetAttribute, (&minor, NEAP__CUDA_ATTRIBUTE_MINOR, device->device)));
	NEAP_TRY(NEAP__CUDA(cuDeviceGetAttribute,
		(&processors, NEAP__CUDA_ATTRIBUTE_PROCESSORS, device->device)));
	NEAP_TRY(NEAP__CUDA(
		cuDeviceGetPCIBusId, (device->bus, (int)sizeof device->bus - 1, device->device)));
	neap__print(device->about, sizeof device->about,
		"%s (%s, compute capability %d.%d, %d multiprocessors)", device->name, model, major,
		minor, processors);
	return 0;
}

static int start(struct neap_device *device)
{
	NEAP_TRY(describe(device));
	NEAP_TRY(NEAP__CUDA(cuDevicePrimaryCtxRetain, (&device->context, device->device)));
	device->retained = 1;
	NEAP_TRY(neap__device_enter(device));
	CUstream *streams[] = {&device->own, &device->out, &device->in, &device->ahead};
	for (int i = 0; i < 4; i++)
		NEAP_TRY(NEAP__CUDA(cuStreamCreate, (streams[i], NEAP__CUDA_STREAM_NON_BLOCKING)));
	device->compute = device->own;
	NEAP_TRY(NEAP__CUDA(cuEventCreate, (&device->turned, NEAP__CUDA_EVENT_DISABLE_TIMING)));
	NEAP_TRY(NEAP__CUDA(cuMemAlloc, (&device->scratch, NEAP__SCRATCH)));
	neap__device_memory_settle(device);
	return 0;
}

int neap_device_open(struct neap_device **out, const char *name)
{
	NEAP_NEED(out, name);
	struct neap_device *device = calloc(1, sizeof *device);
	if (!device)
		return neap__fail_errno(ENOMEM, "device '%s'", name);
	device->process = getpid();
	neap__device_memory_init(device);
	int rc = find(device, name);
	if (rc == 0)
		rc = start(device);
	if (rc == -ENOMEM)
		rc = neap__fail_in(NEAP_EINFEASIBLE,
			"free memory of the device: opening it needs more than is free: ");
	if (rc < 0) {
		if (rc != NEAP_EUSAGE)
			rc = neap__fail_in(rc, "device '%s': ", name);
		neap_device_close(device);
		return rc;
	}
	*out = device;
	return 0;
}

int neap__device_compute_on(struct neap_device *device, CUstream stream)
{
	NEAP_TRY(neap__device_enter(device));
	if (stream == device->compute)
		return 0;
	NEAP_TRY(NEAP__CUDA(cuEventRecord, (device->turned, device->compute)));
	NEAP_TRY(NEAP__CUDA(cuStreamWaitEvent, (stream, device->turned, 0)));
	device->compute = stream;
	return 0;
}

double neap__device_joules(struct neap_device *device)
{
	if (!device->energy.library)
		neap__energy_open(&device->energy, device->bus);
	return neap__energy_joules(&device->energy);
}

const char *neap_device_about(const struct neap_device *device)
{
	return device ? device->about : NULL;
}

const struct neap_memory_ops *neap_device_memory(const struct neap_device *device)
{
	return device ? &device->memory : NULL;
}

void *neap_device_stream(const struct neap_device *device)
{
	return device ? device->compute : NULL;
}

int neap_device_bytes(const struct neap_device *device, uint64_t *free_bytes, uint64_t *total_bytes)
{
	NEAP_NEED(device, free_bytes, total_bytes);
	size_t left = 0, all = 0;
	NEAP_TRY(neap__device_enter(device));
	NEAP_TRY(NEAP__CUDA(cuMemGetInfo, (&left, &all)));
	*free_bytes = left;
	*total_bytes = all;
	return 0;
}

int neap_device_wait(const struct neap_device *device)
{
	NEAP_NEED(device);
	NEAP_TRY(neap__device_enter(device));
	return NEAP__CUDA(cuStreamSynchronize, (device->compute));
}

/* Errors of the driver are of no use here: everything is freed as far as possible. */
void neap_device_close(struct neap_device *device)
{
	if (!device)
		return;
	if (device->retained && neap__device_enter_to_free(device)) {
		CUstream streams[] = {device->own, device->out, device->in, device->ahead};
		for (int i = 0; i < 4; i++)
			if (streams[i])
				NEAP__CUDA(cuStreamDestroy, (streams[i]));
		if (device->turned)
			NEAP__CUDA(cuEventDestroy, (device->turned));
		neap__device_memory_fini(device);
		if (device->scratch)
			NEAP__CUDA(cuMemFree, (device->scratch));
		NEAP__CUDA(cuDevicePrimaryCtxRelease, (device->device));
	}
	neap__energy_close(&device->energy);
	free(device);
}
