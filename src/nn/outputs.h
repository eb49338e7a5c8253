/* SPDX-License-Identifier: Apache-2.0 */
/* outputs.h: what cells share whose outputs are numbers of all units. */
#ifndef NEAP_NN_OUTPUTS_H
#define NEAP_NN_OUTPUTS_H

#include "nn/engine.h"

#define neap__give_all NEAP_R(neap__give_all)
#define neap__view_all NEAP_R(neap__view_all)
#define neap__start_bias NEAP_R(neap__start_bias)
#define neap__no_extra NEAP_R(neap__no_extra)

/* at->now names all units; returns the room for their numbers [n]. */
real *neap__give_all(struct neap__at *at);
/* The view of outputs y [n]: all units are active. */
void neap__view_all(const struct neap__at *at, struct neap__view *view, const real *y);

/* Slots of a cell: sums begin with the bias; nothing else feeds dS. */
void *neap__start_bias(struct neap__at *at, void *row);
size_t neap__no_extra(const struct neap__layer *layer);

#endif
