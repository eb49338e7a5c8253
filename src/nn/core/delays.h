/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delays.h: axonal delays: the output of unit j of a layer below reaches the units of a layer d_j
 * steps later; each pair of a layer and a source has its own delays. A delay is a whole number of
 * steps, or it is learned and lies between two: with d = k + f, k whole and 0 <= f <= 1, an output
 * arrives in two parts, x_j(t) = (1 - f_j) S_j(t - k_j) + f_j S_j(t - k_j - 1), the linear
 * interpolation of the delayed output (as DCLS interpolates the positions in a kernel,
 * Khalfaoui-Hassani and others 2023, with which Hammouamri and others 2024 learn delays of
 * synapses), so that
 *     dx_j(t)/dd_j = S_j(t - k_j - 1) - S_j(t - k_j).
 *
 * For each such source, the state has a ring of `most` + 1 rows: row u % (most + 1) holds the
 * outputs that arrive in step u, as a bitmap, or as numbers in a smooth net. An output goes into
 * the row of its step of arrival when it is made. A learned delay reads its second part in the step
 * after, from the same row.
 */
#ifndef NEAP_NN_CORE_DELAYS_H
#define NEAP_NN_CORE_DELAYS_H

#include "nn/core/precision.h"

#define neap__delays_begin NEAP_R(neap__delays_begin)
#define neap__delays_send NEAP_R(neap__delays_send)
#define neap__delays_arrive NEAP_R(neap__delays_arrive)

/*
 * A row of struct neap__precision_ops: fills in k and f of a layer for the batch begun. Parameters
 * outside of their range are moved to its end, those of fixed delays to whole numbers.
 */
void neap__delays_begin(struct neap_net *net, const struct neap__layer *layer);
/* Puts the outputs of the sample's layer into the rings of the layers that receive it delayed. */
void neap__delays_send(const struct neap__at *at);
/* What arrives in this step at the sample's layer from a source, in scratch of the slot. */
struct neap__list neap__delays_arrive(
	const struct neap__at *at, const struct neap__layer_source *source);

#endif
