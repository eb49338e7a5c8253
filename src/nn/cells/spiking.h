/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spiking.h: what cells that spike share: the threshold, resets that come a step later,
 * the tape, the surrogate's heights.
 */
#ifndef NEAP_NN_CELLS_SPIKING_H
#define NEAP_NN_CELLS_SPIKING_H

#include "nn/core/precision.h"

#define neap__reset_spikes NEAP_R(neap__reset_spikes)
#define neap__delayed_reset NEAP_R(neap__delayed_reset)
#define neap__delayed_spikes NEAP_R(neap__delayed_spikes)
#define neap__smooth_spikes NEAP_R(neap__smooth_spikes)
#define neap__spike NEAP_R(neap__spike)
#define neap__heights NEAP_R(neap__heights)

/*
 * Of a smooth net, the numbers [n] that a reset sees for the spikes of step t: `live`, or
 * those frozen in a gradient check.
 */
const real *neap__reset_spikes(const struct neap__at *at, int64_t t, const void *live);

/* u -= amount S_{-1}, by way of the reset; x += amount S_{-1}, by any other. */
void neap__delayed_reset(const struct neap__at *at, real *u, real amount);
void neap__delayed_spikes(const struct neap__at *at, real *x, real amount);

/* Of a smooth net: fills in at->now with numbers s [n] for all units; s is its room. */
void neap__smooth_spikes(struct neap__at *at);

/*
 * Fills in at->now and at->near_now from what the threshold sees, u, and writes the tape
 * of lif_tape.h where it is not NULL; returns its bytes.
 */
size_t neap__spike(struct neap__at *at, const real *u, const real *pre, unsigned char *tape);

/* The surrogate's derivative at the active units: in group->scratch[1]. */
const real *neap__heights(const struct neap__at *at, const struct neap__view *view);

#endif
