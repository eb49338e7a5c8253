/* SPDX-License-Identifier: Apache-2.0 */
/*
 * first_outputs.h: the part of the gradient of recurrent weights that comes from the outputs before
 * the first step, which a caller gave (neap/ports.h).
 */
#ifndef NEAP_NN_GRADIENTS_FIRST_OUTPUTS_H
#define NEAP_NN_GRADIENTS_FIRST_OUTPUTS_H

#include "nn/core/precision.h"

#define neap__first_outputs_add NEAP_R(neap__first_outputs_add)

/*
 * Adds S_{-1}'d(own) of a group; adjoint: that before the first step. Called for all groups in
 * their order: how many share a sum depends on the number of threads, so the last one of a sum
 * folds it.
 */
void neap__first_outputs_add(
	struct neap_net *net, struct neap__group *group, const unsigned char *adjoint);

#endif
