/* SPDX-License-Identifier: Apache-2.0 */
/*
 * optimizer_steps.h: what follows a backward pass on a device, as launches of kernels: sums of
 * gradients over groups of samples, and an update of the weights. The caller owns all device
 * memory. No function waits for the device.
 */
#ifndef NEAP_DEVICE_OPTIMIZER_STEPS_H
#define NEAP_DEVICE_OPTIMIZER_STEPS_H

#include "device/launches.h"
#include "nn/core/net_state.h"
#include "nn/core/step_backend.h"

/* Addresses of the device. Only nets that are updated there have more than weights. */
struct neap__device_parameters {
	float **weight;	 /* [tensors] */
	u32 **row_start; /* [tensors] of a density below 1; else NULL */
	u16 **column;
	struct neap__device_tensor *tensor; /* [learning] */
	int learning;			    /* tensors that learn */
	double *gradient;		    /* [elements of the net], in the order of its tensors */
	double *square;	   /* [neap__device_square_blocks] sums of squares of gradients */
	double *moment[2]; /* [elements] as many as the optimizer has; NULL: none */
	u32 *infinite;	   /* [1] 1: a weight is not finite */
};

/* Blocks of DEVICE_SQUARES gradients, the last of which may have fewer. */
static inline size_t neap__device_square_blocks(const struct neap_net *net)
{
	return (net->elements + DEVICE_SQUARES - 1) / DEVICE_SQUARES;
}

/*
 * Fills a table of the host for p->tensor, whose totals are total[tensors]; returns its length, at
 * most that of the net's tensors.
 */
int neap__device_tensor_table(struct neap__device_tensor *table, const struct neap_net *net,
	const struct neap__device_parameters *p, double *const *total);
/*
 * Adds up the gradients of `groups` groups of samples, and their squares. The gradients of tensors
 * that do not learn stay as they are. 0, or the code of a launch.
 */
int neap__device_sum_groups(const struct neap_net *net, const struct neap__device_launcher *on,
	const struct neap__device_parameters *p, int groups);
/* Updates all tensors that learn, and sets *p->infinite. 0, or the code of a launch. */
int neap__device_update(const struct neap_net *net, const struct neap__device_launcher *on,
	const struct neap__device_parameters *p, const struct neap__update *update);

#endif
