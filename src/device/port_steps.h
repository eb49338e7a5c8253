/* SPDX-License-Identifier: Apache-2.0 */
/*
 * port_steps.h: launches that read and write the arrays of a caller (neap/ports.h), which are
 * addresses of the device. Functions do nothing if there is no such array; they return 0, or the
 * code of a launch.
 */
#ifndef NEAP_DEVICE_PORT_STEPS_H
#define NEAP_DEVICE_PORT_STEPS_H

#include "device/device_steps.h"

/* Writes the outputs of steps [t0, t1), of which `forward` was the last call. */
int neap__device_port_outputs(const struct neap__device_net *net,
	const struct neap__device_launcher *on, const struct neap__device_room *room, int t0,
	int t1);
/* The gradients of the outputs of hidden layer `l` at step t and later ones; NULL: there are none.
 */
const float *neap__device_port_given(const struct neap__device_net *net, int l, int t);
/*
 * After steps [t0, t1) backward, with d(in) in room->currents: writes the gradients of the inputs,
 * and at the first step adds the outputs before it to the gradient of the recurrent weights.
 */
int neap__device_port_gradients(const struct neap__device_net *net,
	const struct neap__device_launcher *on, const struct neap__device_room *room, int t0,
	int t1);

#endif
