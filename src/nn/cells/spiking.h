/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spiking.h: what cells that spike share: the threshold, resets that come one step later, the tape
 * (lif_tape.h), and the surrogate's heights. In a smooth net a spike is a number, the integral of
 * the surrogate, and lists hold all units.
 */
#ifndef NEAP_NN_CELLS_SPIKING_H
#define NEAP_NN_CELLS_SPIKING_H

#include "nn/core/precision.h"

#define neap__reset_spikes NEAP_R(neap__reset_spikes)
#define neap__delayed_reset NEAP_R(neap__delayed_reset)
#define neap__delayed_spikes NEAP_R(neap__delayed_spikes)
#define neap__reset_at_once NEAP_R(neap__reset_at_once)
#define neap__mask_spikes NEAP_R(neap__mask_spikes)
#define neap__add_spikes NEAP_R(neap__add_spikes)
#define neap__smooth_spikes NEAP_R(neap__smooth_spikes)
#define neap__spike NEAP_R(neap__spike)
#define neap__spike_tape NEAP_R(neap__spike_tape)
#define neap__heights NEAP_R(neap__heights)

/*
 * Of a smooth net: the spikes [n] of step t that a reset sees: `live`, or in a gradient check the
 * frozen ones.
 */
const real *neap__reset_spikes(const struct neap__at *at, int64_t t, const void *live);

/* u -= amount S_{-1}, as a reset (frozen in a gradient check, where detached). */
void neap__delayed_reset(const struct neap__at *at, real *u, real amount);
/* The resets hard and soft: u = (1 - S) u + reset_value S, or u -= threshold S. */
void neap__reset_at_once(const struct neap__at *at, real *u);
/* x = (1 - S) x */
void neap__mask_spikes(real *x, const struct neap__list *spikes);
/* x += amount S */
void neap__add_spikes(real *x, const struct neap__list *spikes, real amount);
/* x += amount S_{-1}, not as a reset. */
void neap__delayed_spikes(const struct neap__at *at, real *x, real amount);

/* Of a smooth net: lists all units in at->now; their numbers [n] are in its value_room. */
void neap__smooth_spikes(struct neap__at *at);

/*
 * Fills in at->now and at->near_now from u[n], what the threshold sees, and where tape is not NULL
 * writes the tape of lif_tape.h; pre as there. Returns the bytes of tape.
 */
size_t neap__spike(struct neap__at *at, const real *u, const real *pre, unsigned char *tape);
/* Writes the tape and returns its bytes, once the lists are filled in; values: membranes of
 * at->near_now. */
size_t neap__spike_tape(
	struct neap__at *at, const real *values, const real *pre, unsigned char *tape);

/* The surrogate's derivative at the active units, in group->scratch[1]. */
const real *neap__heights(const struct neap__at *at, const struct neap__view *view);

#endif
