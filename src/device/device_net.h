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

/* Clusters of blocks that compute a layer. */
struct neap__layer_clusters {
	struct neap__cluster_shape forward, backward;
};

/* A net with a batch begun. Layers count from the input up, the readout is not among them. */
struct neap__device_net {
	const struct neap_net *net;
	int layers, groups; /* groups: those whose gradients are added together */
	int math;	    /* DEVICE_EXACT, or how tensor cores multiply */
	struct neap__device_batch batch;
	struct neap__device_lif *lif;	  /* [layers]; NULL: they are dense */
	struct neap__device_dense *dense; /* [layers] of rnn, lstm, gru and egru; or NULL */
	int parts, per_part;		  /* of a group of samples, whose outputs are added up */
	struct neap__device_readout readout;
	int has_errors;			       /* the host computes the errors of the readout */
	struct neap__layer_clusters *clusters; /* [layers] (cluster_shape.h); NULL: none */
	unsigned shared; /* bytes of shared memory that a block may have ... */
	int processors;	 /* ... and multiprocessors of the device, which share out a replay */
	int near_units; /* units of layers with a surrogate: those inside its support are counted */
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
/*
 * The same of what does not depend on a batch: layers and readout, of a net that
 * neap__device_net_check passes.
 */
int neap__device_net_layers(
	struct neap__device_net *device, const struct neap_net *net, const float *const *weights);
void neap__device_net_free(struct neap__device_net *device);

int neap__device_units(const struct neap__device_net *device, int layer);
/*
 * Dropout of a hidden layer: whether it may have any; writes who passes in the batch begun,
 * [samples] [words of the layer] bits; and the address on the device of what was written.
 */
int neap__device_drops(const struct neap__device_net *device, int layer);
void neap__device_passes_write(const struct neap__device_net *device, int layer, u32 *passes);
void neap__device_passes_set(struct neap__device_net *device, int layer, const u32 *passes);
/*
 * Decays of units of a layer, which learn or have a range: whether there are any; and the addresses
 * on the device of their rows [3][units] as of struct neap__leak, which the caller brings there
 * when a batch has begun, for each decay.
 */
int neap__device_leaks(const struct neap__layer *layer);
void neap__device_leaks_set(struct neap__device_net *device, int layer, const float *const *rows);
/* The addresses on the device of the delays of a layer, as of struct neap__delays. */
void neap__device_delays_set(
	struct neap__device_net *device, int layer, const u8 *whole, const float *part);
/* Whether steps of the net can be logged, and replayed on the device: as on the CPU, if there is
 * room for gradients. */
int neap__device_logs(const struct neap__device_net *device);
/* Whether products of a spiking layer need a tensor's weights turned, or with all places. */
int neap__device_turns(const struct neap__device_net *device, int tensor);
int neap__device_spreads(const struct neap__device_net *device, int tensor);
/* How the products of dS of spiking layer l are added up, DEVICE_BY_LANES, ...: those of the
 * weights above it, and those of its recurrent weights. */
int neap__device_above_sums(const struct neap__device_net *device, int l);
int neap__device_own_sums(const struct neap__device_net *device, int l);
/* Bytes of the largest tape of a step of a hidden layer. */
size_t neap__device_tape_most(const struct neap__device_net *device, int layer);
/* Words of a bitmap of so many units. */
static inline size_t neap__device_words(int units)
{
	return ((size_t)units + 31) / 32;
}

/* The numbers of step t as inputs, for kernels; NULL: the inputs are events. */
static inline const float *neap__device_inputs_at(const struct neap__device_net *device, int t)
{
	const struct neap__device_batch *batch = &device->batch;
	size_t step = (size_t)batch->samples * (size_t)batch->inputs;

	return batch->values ? batch->values + (size_t)(t - batch->first_step) * step : NULL;
}

/* Sums of a layer's outputs that are counted for each unit. */
static inline int neap__device_counts(const struct neap__device_net *device)
{
	return device->dense ? device->groups * device->parts : 1;
}

#endif
