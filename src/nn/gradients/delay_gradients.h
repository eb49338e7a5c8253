/* SPDX-License-Identifier: Apache-2.0 */
/*
 * delay_gradients.h: the backward pass of axonal delays (core/delays.h). An output of step s acts
 * on d(in) of steps s + k and s + k + 1, which are later; the adjoint has them, in a ring of `most`
 * + 1 rows of the products with W. With g0 = W_j d(in)(s + k_j), g1 = W_j d(in)(s + k_j + 1), both
 * 0 beyond the sample's last step,
 *     dS_j(s) += (1 - f_j) g0 + f_j g1,
 *     dW_j += S_j(s) ((1 - f_j) d(in)(s + k_j) + f_j d(in)(s + k_j + 1)),
 *     dd_j += S_j(s) (g1 - g0).
 * All terms of S(s) are summed at step s, downwards in s and upwards in samples and units, so that
 * no bit depends on the ranges of steps.
 *
 * Maxima, of outputs or of sums, need one delay for all units: what passes in a step is then what
 * passed when it was sent, and step s has all outputs that it depends on. With other delays these
 * are outputs of earlier steps, which the backward pass has not reached.
 */
#ifndef NEAP_NN_GRADIENTS_DELAY_GRADIENTS_H
#define NEAP_NN_GRADIENTS_DELAY_GRADIENTS_H

#include "nn/core/precision.h"

#define neap__delays_store NEAP_R(neap__delays_store)
#define neap__delays_din NEAP_R(neap__delays_din)
#define neap__delays_outputs NEAP_R(neap__delays_outputs)
#define neap__delays_weights NEAP_R(neap__delays_weights)

/* Puts d(in) of the sample's layer in this step into its ring. */
void neap__delays_store(const struct neap__at *at);
/* d(in) of a layer with delays in `after` steps; NULL: the sample has ended by then. */
const real *neap__delays_din(const struct neap__at *at, const struct neap__layer *layer, int after);
/*
 * dS of the active units of the samples' layer += what `above` gives them, in group->sums; the
 * samples' layer is its `source`.
 */
void neap__delays_outputs(struct neap_net *net, struct neap__group *group, int alive,
	const struct neap__layer *above, const struct neap__layer_source *source);
/* Adds the gradients of the weights and delays of a layer, of a source that is delayed. */
void neap__delays_weights(struct neap_net *net, struct neap__group *group, int alive,
	const struct neap__layer *layer, const struct neap__layer_source *source);

#endif
