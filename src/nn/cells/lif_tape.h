/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lif_tape.h: the tape of cells that spike, a step and a sample. Counts come first, 16 bits each:
 * {spikes, near, [prev, pre]}. Parts in brackets exist with reset to zero alone. Sparse form:
 *     membranes of the units inside the support (near)
 *     [membranes before the reset of the units that were inside in the step before (pre)]
 *     traces of learned leaks (leak.h) at the near units
 *     ids of the spikes, of the near units, [of the last spikes (prev), of the pre units]
 * Where that takes as much as a membrane (and its traces) a unit, the tape is dense: `near` is
 * 0xFFFF, and there follow
 *     membranes of all units, before the reset
 *     [a bitmap of the last spikes; of smooth nets their numbers]
 *     traces of all units
 */
#ifndef NEAP_NN_CELLS_LIF_TAPE_H
#define NEAP_NN_CELLS_LIF_TAPE_H

#include "nn/core/precision.h"

#define neap__lif_tape_max NEAP_R(neap__lif_tape_max)
#define neap__lif_tape NEAP_R(neap__lif_tape)
#define neap__lif_lists NEAP_R(neap__lif_lists)
#define neap__lif_listed NEAP_R(neap__lif_listed)
#define neap__lif_view NEAP_R(neap__lif_view)

/* The most bytes that a step takes: those of the dense form. */
size_t neap__lif_tape_max(const struct neap_net *net, const struct neap__layer *layer);

/*
 * Writes a step's tape and returns its bytes. membranes[near]: what the threshold saw of the units
 * in at->near_now; dense layers do not read it. pre[n]: of all units the membranes before a reset
 * to zero, or with other resets what the threshold saw.
 */
size_t neap__lif_tape(
	const struct neap__at *at, const real *membranes, const real *pre, unsigned char *tape);

/* Rows of struct neap__cell_code. */
int neap__lif_lists(
	const struct neap_net *net, const struct neap__layer *layer, int spikes, int near);
size_t neap__lif_listed(const struct neap__layer *layer, int spikes, int near, unsigned char *tape,
	struct neap__listing *to);

/* A row of struct neap__cell_code; numbers stay on the tape or in the view's scratch. */
size_t neap__lif_view(struct neap__at *at, const unsigned char *tape, struct neap__view *view);

#endif
