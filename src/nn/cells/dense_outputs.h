/* SPDX-License-Identifier: Apache-2.0 */
/* dense_outputs.h: what cells share whose outputs are numbers of all units. */
#ifndef NEAP_NN_CELLS_DENSE_OUTPUTS_H
#define NEAP_NN_CELLS_DENSE_OUTPUTS_H

#include "nn/core/precision.h"

#define neap__output_all NEAP_R(neap__output_all)
#define neap__view_all NEAP_R(neap__view_all)

/* Lists all units in at->now; returns the room for their numbers [n]. */
real *neap__output_all(struct neap__at *at);
/* Fills in the view of outputs y[n]: all units are active. */
void neap__view_all(const struct neap__at *at, struct neap__view *view, const real *y);

#endif
