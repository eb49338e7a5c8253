/* SPDX-License-Identifier: Apache-2.0 */
/* cluster_shape.c: how many samples and threads a cluster has (cluster_shape.h). */
#include "device/cluster_shape.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>

/* A layer, and the readout above it. */
struct layer_at {
	const struct neap__device_net *net;
	int l;
};

static int is_last(const struct layer_at *at)
{
	return at->l == at->net->layers - 1;
}

static int classes_of(const struct layer_at *at)
{
	return is_last(at) ? at->net->readout.classes : 0;
}

static uint64_t forward_bytes(const struct layer_at *at, const struct neap__cluster_shape *shape)
{
	struct lif_forward_cluster_arguments a = {
		.lif = {.layer = at->net->lif[at->l], .readout = {.classes = classes_of(at)}},
		.shape = *shape};

	return neap__shared_lif_forward_cluster(&a);
}

static uint64_t backward_bytes(const struct layer_at *at, const struct neap__cluster_shape *shape)
{
	struct lif_backward_cluster_arguments a = {
		.lif = {.layer = at->net->lif[at->l],
			.readout = {.classes = classes_of(at)},
			.above_units = is_last(at) ? at->net->readout.classes
						   : at->net->lif[at->l + 1].units},
		.shape = *shape,
		.stride = neap__cluster_stride(at->net->lif[at->l].units)};

	return neap__shared_lif_backward_cluster(&a);
}

/* Rings of delayed outputs have one writer, and blocks of a cluster are not in the same step. */
static int has_delays(const struct layer_at *at)
{
	const struct neap__device_net *net = at->net;

	return net->lif[at->l].delays.most ||
	       (is_last(at) ? net->readout.delays.most : net->lif[at->l + 1].delays.most);
}

/* As many threads as there are units, or as the block can have: a multiple of 32. */
static int set_threads(struct neap__cluster_shape *shape, int classes)
{
	shape->unit_threads = shape->columns;
	while (shape->unit_threads > 32 &&
		neap__cluster_threads(shape, classes) > DEVICE_CLUSTER_THREADS)
		shape->unit_threads -= 32;
	return neap__cluster_threads(shape, classes) <= DEVICE_CLUSTER_THREADS;
}

/* The clusters of a layer for so many samples; `blocks` 0 if its weights do not fit. */
static struct neap__cluster_shape shape_of(const struct layer_at *at,
	const struct neap__cluster_limits *limits, int samples, int classes,
	uint64_t (*bytes)(const struct layer_at *at, const struct neap__cluster_shape *shape))
{
	const struct neap__device_lif *layer = &at->net->lif[at->l];
	int columns = ((layer->units + limits->blocks - 1) / limits->blocks + 31) & ~31;
	int clusters = limits->processors / limits->blocks;
	struct neap__cluster_shape shape = {.blocks = limits->blocks, .columns = columns};

	if (!layer->is_recurrent || layer->is_masked || has_delays(at))
		return (struct neap__cluster_shape){0};
	clusters = clusters > 1 ? clusters : 1;
	shape.slots = (samples + clusters - 1) / clusters;
	shape.slots = shape.slots < DEVICE_CLUSTER_SLOTS ? shape.slots : DEVICE_CLUSTER_SLOTS;
	while (shape.slots > 0 &&
		(!set_threads(&shape, classes) || bytes(at, &shape) > limits->shared))
		shape.slots--;
	return shape.slots ? shape : (struct neap__cluster_shape){0};
}

int neap__device_clusters(
	struct neap__device_net *device, const struct neap__cluster_limits *limits)
{
	if (!limits->blocks || !device->lif)
		return 0;
	device->clusters = calloc((size_t)device->layers, sizeof *device->clusters);
	if (!device->clusters)
		return neap__fail_errno(ENOMEM, "clusters of a net");
	for (int l = 0; l < device->layers; l++) {
		const struct layer_at at = {device, l};
		device->clusters[l].forward = shape_of(
			&at, limits, device->batch.samples, classes_of(&at), forward_bytes);
		if (neap__device_above_sums(device, l) != DEVICE_BY_MASK)
			device->clusters[l].backward =
				shape_of(&at, limits, device->batch.samples, 0, backward_bytes);
	}
	return 0;
}

int neap__device_clusters_check(
	const struct neap_net *net, const struct neap__cluster_limits *limits)
{
	const float **weights = calloc((size_t)net->ntensors, sizeof *weights);
	struct neap__device_net device = {0};
	int fit = 0, recurrent = 0, units = 0;
	int rc = weights ? neap__device_net_layers(&device, net, weights)
			 : neap__fail_errno(ENOMEM, "clusters of a net");

	device.batch.samples = 1;
	if (rc == 0)
		rc = neap__device_clusters(&device, limits);
	for (int l = 0; l < device.layers && device.clusters; l++) {
		fit += device.clusters[l].forward.blocks && device.clusters[l].backward.blocks;
		const struct layer_at at = {&device, l};
		if (!device.lif[l].is_recurrent || device.lif[l].is_masked || has_delays(&at) ||
			neap__device_above_sums(&device, l) == DEVICE_BY_MASK)
			continue;
		/* The smallest one is the one that a larger cluster would have room for. */
		units = !recurrent++ || device.lif[l].units < units ? device.lif[l].units : units;
	}
	neap__device_net_free(&device);
	free(weights);
	if (rc == 0 && !fit && !recurrent)
		return neap__fail(NEAP_EUSAGE,
			"clusters keep the recurrent weights of layers of lif, cubalif, alif and "
			"adlif in shared memory, and the network has no such layer of density 1, "
			"below another of density 1, without delays above 1 step before and after "
			"it. Pass the device without "
			"'clusters': --device cuda");
	if (rc == 0 && !fit)
		return neap__fail(NEAP_EUSAGE,
			"the network has no recurrent layer whose weights fit into the shared "
			"memory of %d blocks of %u bytes: the smallest has %d units. Pass %sthe "
			"device without 'clusters': --device cuda",
			limits->blocks, limits->shared, units,
			limits->blocks < 16 ? "a larger number, up to clusters=16, or " : "");
	return rc;
}
