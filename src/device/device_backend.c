/* SPDX-License-Identifier: Apache-2.0 */
/* device_backend.c: loads the kernels, and runs the steps of a net with them (device_backend.h). */
#include "device/device_backend.h"
#include "device/device_image.h"
#include "nn/core/on_device.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>

/* Shared memory that a launch may ask for without more ado, and the attribute that allows more. */
enum { SHARED_USUAL = 48 << 10, SHARED_ATTRIBUTE = 8 };

static int launch(void *user, const struct neap__device_launch *l)
{
	struct neap__device_backend *b = user;
	void *arguments[] = {(void *)(uintptr_t)l->arguments};
	CUfunction function = b->function[l->kernel];

	if (l->blocks == 0)
		return 0;
	if (l->shared_bytes > SHARED_USUAL)
		NEAP_TRY(NEAP__CUDA(
			cuFuncSetAttribute, (function, SHARED_ATTRIBUTE, (int)l->shared_bytes)));
	return NEAP__CUDA(
		cuLaunchKernel, (function, (unsigned)l->blocks, 1, 1, (unsigned)l->threads, 1, 1,
					l->shared_bytes, b->device->compute, arguments, NULL));
}

static int clear(void *user, void *at, size_t bytes)
{
	const struct neap__device_backend *b = user;
	return b->batch.memory->fill(b->batch.memory->user, at, 0, bytes);
}

static int begin(void *self, struct neap_net *net, size_t *tape_max)
{
	struct neap__device_backend *b = self;

	NEAP_TRY(neap__device_enter(b->device));
	b->unfolded = 0;
	NEAP_TRY(neap__device_batch_begin(&b->batch, net));
	*tape_max = neap__device_tape_max(b);
	return 0;
}

static int load(struct neap__device_backend *b)
{
	const void *image = neap__device_image();

	NEAP_TRY(neap__device_enter(b->device));
	if (!image)
		return neap__fail(-ENOEXEC, "this build of neap has no kernels for CUDA devices: "
					    "nvcc was not found when "
					    "it was built. Build it where nvcc is on the path");
	NEAP_TRY(NEAP__CUDA(cuModuleLoadData, (&b->module, image)));
	for (int k = 0; k < NEAP__DEVICE_KERNEL_COUNT; k++)
		NEAP_TRY(NEAP__CUDA(cuModuleGetFunction,
			(&b->function[k], b->module,
				neap__device_kernel_name((enum neap__device_kernel)k))));
	return 0;
}

int neap__device_backend_open(
	struct neap__device_backend **backend, struct neap_device *device, struct neap_net *net)
{
	struct neap__device_backend *b = calloc(1, sizeof *b);

	if (!b)
		return neap__fail_errno(ENOMEM, "a net on a device");
	*b = (struct neap__device_backend){.steps = {.memory = &device->memory,
						   .begin = begin,
						   .advance = neap__device_advance,
						   .record = neap__device_record,
						   .backward = neap__device_reverse,
						   .fetch_readout = neap__device_fetch_readout,
						   .send_adjoint = neap__device_send_adjoint,
						   .fetch_counts = neap__device_fetch_counts,
						   .send_penalties = neap__device_send_penalties,
						   .fetch_sums = neap__device_fetch_sums,
						   .send_sums = neap__device_send_sums,
						   .keep = neap__device_keep,
						   .fetch_weights = neap__device_fetch_weights,
						   .send_weights = neap__device_send_weights,
						   .add_groups = neap__device_add_groups,
						   .fetch_squares = neap__device_fetch_squares,
						   .update = neap__device_update_weights,
						   .fetch_moment = neap__device_fetch_moment,
						   .send_moment = neap__device_send_moment},
		.device = device,
		.net = net,
		.batch = {.memory = &device->memory}};
	b->launcher = (struct neap__device_launcher){launch, clear, b};
	int rc = load(b);
	if (rc == 0)
		rc = neap__on_device(net, &b->steps, b);
	if (rc < 0) {
		neap__device_backend_close(b);
		return rc;
	}
	*backend = b;
	return 0;
}

void neap__device_backend_close(struct neap__device_backend *b)
{
	if (!b)
		return;
	if (b->net->on_backend == b)
		neap__on_device(b->net, NULL, NULL);
	neap__device_parameters_free(&b->batch.parameters, b->device);
	neap__pinned_free(b->device, b->turn_parts);
	neap__device_batch_free(&b->batch);
	if (b->module && neap__device_enter(b->device) == 0)
		NEAP__CUDA(cuModuleUnload, (b->module));
	free(b);
}
