/* SPDX-License-Identifier: Apache-2.0 */
/*
 * readout_steps.h: the part of the readouts `step` and `softmax` that the host computes, because a
 * loss is a function of the host, and exp() of a device rounds differently: what they add up over
 * time and the losses of steps forward, and the gradients of the loss by the outputs backward. The
 * code is that of the CPU's readout (nn/cells/li.c), applied to the outputs that lif_forward wrote.
 */
#ifndef NEAP_DEVICE_READOUT_STEPS_H
#define NEAP_DEVICE_READOUT_STEPS_H

#include "device/device_net.h"

/*
 * After the steps [t0, t1) of a forward pass, with their outputs [t - t0][samples][classes]: adds
 * to what the readout keeps in `state`, the host's copy of the state at t1, and in a first pass to
 * the losses of steps.
 */
void neap__device_keep_outputs(const struct neap__device_net *device, const float *outputs, int t0,
	int t1, int first, unsigned char *state);

/*
 * Computes the errors [t - t0][samples][classes] of steps [t0, t1), -0 for steps without a loss.
 * adjoint: the host's copy of one of this batch, of which the part that neap_net_turn wrote is
 * read. work: [3][classes] numbers.
 */
void neap__device_errors(const struct neap__device_net *device, const float *outputs, int t0,
	int t1, const unsigned char *adjoint, float *errors, float *work);

#endif
