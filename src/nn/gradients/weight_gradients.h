/* SPDX-License-Identifier: Apache-2.0 */
/*
 * weight_gradients.h: gradients of weights, dW += S' d(in), at once or deferred (deferred_sums.h).
 * Every sum goes downwards in t and upwards in samples, wherever a range was cut. Order of calls:
 * `begin` with the adjoint at a range's end, `step` before each step that a sample has, `store` of
 * each sample's d(in) when its cell has made it, then `add`; `end` adds up all that is deferred.
 */
#ifndef NEAP_NN_GRADIENTS_WEIGHT_GRADIENTS_H
#define NEAP_NN_GRADIENTS_WEIGHT_GRADIENTS_H

#include "nn/core/precision.h"

#define neap__weights_begin NEAP_R(neap__weights_begin)
#define neap__weights_step NEAP_R(neap__weights_step)
#define neap__weights_store NEAP_R(neap__weights_store)
#define neap__weights_add NEAP_R(neap__weights_add)
#define neap__weights_add_now NEAP_R(neap__weights_add_now)
#define neap__weights_end NEAP_R(neap__weights_end)
#define neap__bias_add NEAP_R(neap__bias_add)
#define neap__deferred_din NEAP_R(neap__deferred_din)
#define neap__outputs_store NEAP_R(neap__outputs_store)
#define neap__inputs_store NEAP_R(neap__inputs_store)

void neap__weights_begin(
	struct neap_net *net, struct neap__group *group, const unsigned char *adjoint);
/* Adds up what is deferred where another step might not fit. */
void neap__weights_step(struct neap_net *net, struct neap__group *group);
void neap__weights_store(const struct neap__at *at);
/*
 * Adds the gradient of the weights that carry the outputs of a source into d(in) of this step, or
 * where it is late of the step after; NULL: of the recurrent weights.
 */
void neap__weights_add(struct neap_net *net, struct neap__group *group, int alive,
	const struct neap__layer *layer, const struct neap__layer_source *source);
/* Adds the gradient of group->sample_rows[count] at once, to the rows of the tensor from `row` on.
 */
void neap__weights_add_now(
	struct neap_net *net, struct neap__group *group, int count, int tensor, int row);
void neap__weights_end(struct neap_net *net, struct neap__group *group);
void neap__bias_add(struct neap_net *net, struct neap__group *group, int alive,
	const struct neap__layer *layer);
/* A layer's d(in) [widths.sums] of the step after. */
const real *neap__deferred_din(const struct neap__at *at, int layer);
/* Of a dense net: stores the outputs of the step, for outer products. */
void neap__outputs_store(const struct neap__at *at);
/* The same of the inputs, where they are numbers and those of the net no floats. */
void neap__inputs_store(const struct neap__at *at);

#endif
