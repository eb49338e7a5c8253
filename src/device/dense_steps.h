/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dense_steps.h: the launches of steps of nets of rnn, lstm, gru and egru: as the functions of
 * device_steps.h, which call these for such nets.
 */
#ifndef NEAP_DEVICE_DENSE_STEPS_H
#define NEAP_DEVICE_DENSE_STEPS_H

#include "device/device_steps.h"

int neap__dense_forward(const struct neap__device_net *net, const struct neap__device_launcher *on,
	const struct neap__device_room *room, u8 *state, int t0, int t1,
	const struct neap__device_tapes *tapes);
int neap__dense_count(const struct neap__device_net *net, const struct neap__device_launcher *on,
	const struct neap__device_room *room, int t0, int t1);
int neap__dense_backward(const struct neap__device_net *net, const struct neap__device_launcher *on,
	const struct neap__device_room *room, u8 *adjoint, int t1, int t0,
	const struct neap__device_tapes *tapes);

#endif
