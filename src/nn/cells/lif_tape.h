/* SPDX-License-Identifier: Apache-2.0 */
/* lif_tape.h: the tape of a lif layer, in the precision of the including file. */
#ifndef NEAP_NN_CELLS_LIF_TAPE_H
#define NEAP_NN_CELLS_LIF_TAPE_H

#include "nn/core/precision.h"

#define neap__lif_tape_max NEAP_R(neap__lif_tape_max)
#define neap__lif_tape NEAP_R(neap__lif_tape)
#define neap__lif_lists NEAP_R(neap__lif_lists)
#define neap__lif_listed NEAP_R(neap__lif_listed)
#define neap__lif_view NEAP_R(neap__lif_view)

/* The most bytes a step takes: those of the dense form. */
size_t neap__lif_tape_max(const struct neap_net *net, const struct neap__layer *layer);

/*
 * Writes a step's tape and returns its bytes. membranes: what the threshold saw
 * of the units in at->near_now (dense layers: not read); pre: of all units before a reset to
 * zero, else what the threshold saw.
 */
size_t neap__lif_tape(
	const struct neap__at *at, const real *membranes, const real *pre, unsigned char *tape);

/* Rows of struct neap__cell_code. */
int neap__lif_lists(
	const struct neap_net *net, const struct neap__layer *layer, int spikes, int near);
size_t neap__lif_listed(const struct neap__layer *layer, int spikes, int near, unsigned char *tape,
	struct neap__listing *to);

/* Reads it back; the numbers stay on the tape or in the view's scratch. Returns the bytes. */
size_t neap__lif_view(struct neap__at *at, const unsigned char *tape, struct neap__view *view);

#endif
