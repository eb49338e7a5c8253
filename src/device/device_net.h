/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_net.h: the description of a net and its batch that kernels read, made from the net of the
 * CPU: states, adjoints and parameters have the same bytes on both sides.
 */
#ifndef NEAP_DEVICE_DEVICE_NET_H
#define NEAP_DEVICE_DEVICE_NET_H

#include "device/kernels/kernels.h"
#include "nn/core/net_state.h"

enum { NEAP__DEVICE_UNITS_MOST = 4096 }; /* units of a layer */

/* A net with a batch begun. Layers count from the input up, the readout is not among them. */
struct neap__device_net {
	const struct neap_net *net;
	int layers, groups; /* groups: those whose gradients are added together */
	struct neap__device_batch batch;
	struct neap__device_lif *lif; /* [layers] */
	struct neap__device_readout readout;
	int has_errors; /* the host computes the errors of the readout */
};

/* NEAP_EUSAGE, in one line, if the net has an option that no kernel implements; else 0. */
int neap__device_net_check(const struct neap_net *net);
/*
 * Describes `net`, in which a batch is begun. `weights`[tensors] are addresses of device memory;
 * those of the batch are set by the caller. Returns 0, NEAP_EUSAGE if the net has an option that no
 * kernel implements, or -ENOMEM.
 */
int neap__device_net_describe(
	struct neap__device_net *device, const struct neap_net *net, const float *const *weights);
void neap__device_net_free(struct neap__device_net *device);

/* Bytes of the largest tape of a step of a hidden layer, as lif_forward writes it. */
size_t neap__device_tape_most(const struct neap__device_lif *layer);
/* Words of a bitmap of the units of a layer. */
size_t neap__device_words(const struct neap__device_lif *layer);

#endif
