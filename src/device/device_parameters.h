/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_parameters.h: the weights of a net on the device, and, if it updates them, gradients and
 * moments. They stay there from batch to batch.
 */
#ifndef NEAP_DEVICE_DEVICE_PARAMETERS_H
#define NEAP_DEVICE_DEVICE_PARAMETERS_H

#include "cuda/device.h"
#include "device/optimizer_steps.h"

struct neap__device_parameter_memory {
	struct neap__device_parameters at;
	struct neap__device_tensor *table, *sent; /* [tensors] of the batch; what at.tensor has */
	void *block;
	uint64_t bytes;
	/* Pinned memory of the host: squares, and a word that is 0 if all weights are finite. */
	double *square;
	u32 *infinite;
};

/* Rows of struct neap__step_backend; `self` is the backend. */
int neap__device_keep(void *self, struct neap_net *net, int moments);
int neap__device_fetch_weights(void *self, struct neap_net *net);
int neap__device_send_weights(void *self, struct neap_net *net);
int neap__device_add_groups(void *self, struct neap_net *net);
int neap__device_fetch_squares(void *self, struct neap_net *net, const double **square);
int neap__device_update_weights(
	void *self, struct neap_net *net, const struct neap__update *update, int *finite);
int neap__device_fetch_moment(void *self, struct neap_net *net, int tensor, int moment, double *to);
int neap__device_send_moment(
	void *self, struct neap_net *net, int tensor, int moment, const double *from);

void neap__device_parameters_free(
	struct neap__device_parameter_memory *p, const struct neap_device *device);

#endif
