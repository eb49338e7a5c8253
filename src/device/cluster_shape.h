/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cluster_shape.h: clusters of blocks that compute a layer with recurrent weights in their shared
 * memory (kernels/lif_clusters.k), for the layers whose weights fit there.
 */
#ifndef NEAP_DEVICE_CLUSTER_SHAPE_H
#define NEAP_DEVICE_CLUSTER_SHAPE_H

#include "device/device_net.h"

/* What a device launches. */
struct neap__cluster_limits {
	int blocks;	 /* of a cluster: 2, 4, 8 or 16; 0: no clusters are wanted */
	unsigned shared; /* bytes of shared memory of a block, at most */
	int processors;	 /* multiprocessors, which have a block each */
};

/*
 * Sets device->clusters, of a net that is described: clusters for each layer of lif, cubalif, alif
 * or adlif whose recurrent weights fit, with as many samples each as it takes to have the
 * multiprocessors compute all samples at once. Returns 0 or -ENOMEM.
 */
int neap__device_clusters(
	struct neap__device_net *device, const struct neap__cluster_limits *limits);
/* NEAP_EUSAGE, in one line, if no layer of the net has clusters with these limits. */
int neap__device_clusters_check(
	const struct neap_net *net, const struct neap__cluster_limits *limits);

#endif
