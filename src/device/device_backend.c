/* SPDX-License-Identifier: Apache-2.0 */
/* device_backend.c: loads the kernels, and runs the steps of a net with them (device_backend.h). */
#include "device/device_backend.h"
#include "device/device_image.h"
#include "nn/core/on_device.h"
#include "base/fail.h"
#include "base/print.h"

#include <errno.h>
#include <stdlib.h>

/* Bytes of shared memory and blocks of a cluster that every launch may have. */
enum { SHARED_USUAL = 48 << 10, CLUSTER_USUAL = 8 };

/* Allows the function what the launch needs more. */
static int allow(CUfunction function, const struct neap__device_launch *l)
{
	if (l->shared_bytes > SHARED_USUAL)
		NEAP_TRY(NEAP__CUDA(cuFuncSetAttribute,
			(function, NEAP__CUDA_FUNCTION_SHARED, (int)l->shared_bytes)));
	if (l->cluster > CLUSTER_USUAL)
		NEAP_TRY(NEAP__CUDA(cuFuncSetAttribute, (function, NEAP__CUDA_FUNCTION_WIDE, 1)));
	return 0;
}

/* Launches clusters; `count` not NULL: sets it to how many run at a time instead. */
static int launch_clusters(const struct neap__device_backend *b, CUfunction function,
	const struct neap__device_launch *l, void **arguments, int *count)
{
	CUlaunchAttribute attribute = {.id = NEAP__CUDA_LAUNCH_CLUSTER,
		.value = {.cluster = {(unsigned)l->cluster, 1, 1}}};
	const CUlaunchConfig config = {.grid = {(unsigned)l->blocks, 1, 1},
		.block = {(unsigned)l->threads, 1, 1},
		.shared = l->shared_bytes,
		.stream = b->device->compute,
		.attributes = &attribute,
		.count = 1};
	return count ? NEAP__CUDA(cuOccupancyMaxActiveClusters, (count, function, &config))
		     : NEAP__CUDA(cuLaunchKernelEx, (&config, function, arguments, NULL));
}

static int launch(void *user, const struct neap__device_launch *l)
{
	struct neap__device_backend *b = user;
	void *arguments[] = {(void *)(uintptr_t)l->arguments};
	CUfunction two = l->threads <= DEVICE_TWO_THREADS ? b->two[l->kernel] : NULL;
	CUfunction function = two ? two : b->function[l->kernel];

	if (l->blocks == 0)
		return 0;
	NEAP_TRY(allow(function, l));
	if (l->cluster)
		return launch_clusters(b, function, l, arguments, NULL);
	return NEAP__CUDA(
		cuLaunchKernel, (function, (unsigned)l->blocks, 1, 1, (unsigned)l->threads, 1, 1,
					l->shared_bytes, b->device->compute, arguments, NULL));
}

static int clear(void *user, void *at, size_t bytes)
{
	const struct neap__device_backend *b = user;
	return b->batch.memory->fill(b->batch.memory->user, at, 0, bytes);
}

static int begin(void *self, struct neap_net *net, size_t *tape_max, size_t *log_bytes)
{
	struct neap__device_backend *b = self;

	NEAP_TRY(neap__device_enter(b->device));
	b->unfolded = 0;
	int steps = b->batch.room.steps;
	NEAP_TRY(neap__device_batch_begin(&b->batch, net));
	if (b->batch.room.steps != steps) /* else what is known of the tapes' sizes stays */
		b->launch_steps = b->batch.room.steps;
	neap__round_list_clear(&b->rounds, b->batch.net.layers);
	*tape_max = neap__device_tape_max(b);
	b->batch.net.shared = b->shared;
	b->batch.net.processors = b->processors;
	*log_bytes = neap__device_logs(&b->batch.net) ? neap__device_log_row(&b->batch.net) : 0;
	return 0;
}

static int fence(void *self)
{
	const struct neap__device_backend *b = self;
	return neap_device_wait(b->device);
}

static int use_stream(void *self, void *stream)
{
	struct neap__device_backend *b = self;
	return neap__device_compute_on(b->device, stream);
}

static int find(struct neap__device_backend *b, enum neap__device_kernel kernel)
{
	const char *name = neap__device_kernel_name(kernel);
	char two[64];

	NEAP_TRY(NEAP__CUDA(cuModuleGetFunction, (&b->function[kernel], b->module, name)));
	neap__print(two, sizeof two, "%s_two", name);
	if (neap__cuda.cuModuleGetFunction(&b->two[kernel], b->module, two) != 0)
		b->two[kernel] = NULL; /* most kernels have none */
	return 0;
}

static int load(struct neap__device_backend *b)
{
	const void *image = neap__device_image();
	int shared = 0;

	NEAP_TRY(neap__device_enter(b->device));
	if (!image)
		return neap__fail(-ENOEXEC, "this build of neap has no kernels for CUDA devices: "
					    "nvcc was not found when "
					    "it was built. Build it where nvcc is on the path");
	NEAP_TRY(NEAP__CUDA(cuModuleLoadData, (&b->module, image)));
	for (int k = 0; k < NEAP__DEVICE_KERNEL_COUNT; k++)
		NEAP_TRY(find(b, (enum neap__device_kernel)k));
	neap__device_memory_settle(b->device);
	NEAP_TRY(NEAP__CUDA(
		cuDeviceGetAttribute, (&shared, NEAP__CUDA_ATTRIBUTE_SHARED, b->device->device)));
	b->shared = (unsigned)shared;
	NEAP_TRY(NEAP__CUDA(cuDeviceGetAttribute,
		(&b->processors, NEAP__CUDA_ATTRIBUTE_PROCESSORS, b->device->device)));
	return NEAP__CUDA(cuEventCreate, (&b->told, NEAP__CUDA_EVENT_DISABLE_TIMING));
}

int neap__device_backend_open(
	struct neap__device_backend **backend, struct neap_device *device, struct neap_net *net)
{
	NEAP_TRY(neap__device_net_check(net));
	struct neap__device_backend *b = calloc(1, sizeof *b);

	if (!b)
		return neap__fail_errno(ENOMEM, "a net on a device");
	*b = (struct neap__device_backend){.steps = {.memory = &device->memory,
						   .record_steps = NEAP__DEVICE_STEPS_MOST,
						   .begin = begin,
						   .fence = fence,
						   .stream = use_stream,
						   .advance = neap__device_advance,
						   .record = neap__device_record,
						   .advance_log = neap__device_advance_log,
						   .record_log = neap__device_record_log,
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
		.batch = {
			.device = device, .memory = &device->memory, .events = {.device = device}}};
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

/*
 * Whether a cluster of blocks with all of a multiprocessor's shared memory has a place on the
 * device: clusters of 16 blocks have none on some devices, or on parts of a device.
 */
static int check_place(
	const struct neap__device_backend *b, const struct neap__cluster_limits *limits)
{
	const enum neap__device_kernel kernels[] = {
		NEAP__KERNEL_lif_forward_cluster, NEAP__KERNEL_lif_backward_cluster};

	for (int i = 0; i < 2; i++) {
		const struct neap__device_launch l = {.blocks = limits->blocks,
			.cluster = limits->blocks,
			.threads = DEVICE_CLUSTER_THREADS,
			.shared_bytes = limits->shared};
		CUfunction function = b->function[kernels[i]];
		int count = 0;
		NEAP_TRY(allow(function, &l));
		NEAP_TRY(launch_clusters(b, function, &l, NULL, &count));
		if (count < 1)
			return neap__fail(NEAP_EUSAGE,
				"%s cannot run clusters of %d blocks; use fewer blocks, or the "
				"device without 'clusters'",
				b->device->about, limits->blocks);
	}
	return 0;
}

int neap__device_backend_clusters(struct neap__device_backend *b, int blocks)
{
	CUdevice device = b->device->device;
	struct neap__cluster_limits limits = {.blocks = blocks};
	int has = 0, shared = 0;

	b->batch.clusters = (struct neap__cluster_limits){0};
	if (!blocks)
		return 0;
	NEAP_TRY(NEAP__CUDA(cuDeviceGetAttribute, (&has, NEAP__CUDA_ATTRIBUTE_CLUSTERS, device)));
	if (!has || !neap__cuda.cuLaunchKernelEx || !neap__cuda.cuOccupancyMaxActiveClusters)
		return neap__fail(NEAP_EUSAGE,
			"%s has no clusters of blocks%s; use it without 'clusters'",
			b->device->about,
			has ? " with this driver, which is too old"
			    : ", which need compute capability 9.0");
	NEAP_TRY(NEAP__CUDA(cuDeviceGetAttribute, (&shared, NEAP__CUDA_ATTRIBUTE_SHARED, device)));
	NEAP_TRY(NEAP__CUDA(cuDeviceGetAttribute,
		(&limits.processors, NEAP__CUDA_ATTRIBUTE_PROCESSORS, device)));
	limits.shared = (unsigned)shared;
	NEAP_TRY(neap__device_clusters_check(b->net, &limits));
	NEAP_TRY(check_place(b, &limits));
	b->batch.clusters = limits;
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
	neap__round_list_free(&b->rounds);
	if (neap__device_enter_to_free(b->device)) {
		if (b->told)
			NEAP__CUDA(cuEventDestroy, (b->told));
		if (b->module)
			NEAP__CUDA(cuModuleUnload, (b->module));
	}
	free(b);
}
