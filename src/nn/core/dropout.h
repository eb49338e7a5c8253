/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dropout.h: dropout of a layer's outputs on their way to the layer above (Srivastava and others
 * 2014). Recurrent connections and resets see all outputs (Zaremba and others 2014). A unit passes
 * or is dropped for a whole sequence (Gal and Ghahramani 2016), as a function of (seed, draw,
 * sample, layer, unit): a step that is computed again drops the same units, and no tape holds a
 * mask.
 *
 * Outputs that pass count 1/(1 - p), p the layer's dropout, and so do the gradients that come down
 * to them. Gradients of weights get that factor once a gradient block (neap__fold_part), so that
 * spikes stay ones in the sums.
 */
#ifndef NEAP_NN_CORE_DROPOUT_H
#define NEAP_NN_CORE_DROPOUT_H

#include "nn/core/precision.h"

#define neap__dropout_draw NEAP_R(neap__dropout_draw)
#define neap__drops NEAP_R(neap__drops)
#define neap__dropout_list NEAP_R(neap__dropout_list)
#define neap__dropout_raise NEAP_R(neap__dropout_raise)
#define neap__dropout_gradient NEAP_R(neap__dropout_gradient)
#define neap__dropout_all NEAP_R(neap__dropout_all)

/* A row of struct neap__precision_ops: draws which units pass, for each sample of the group. */
void neap__dropout_draw(struct neap_net *net, struct neap__group *group);
/* Whether the batch begun drops outputs of a layer. */
int neap__drops(const struct neap_net *net, const struct neap__layer *layer);

/* Returns the outputs that pass, as they are, in scratch of the slot. */
struct neap__list neap__dropout_list(const struct neap_net *net, const struct neap__group *group,
	const struct neap__layer *layer, int slot, const struct neap__list *outputs);
/* Multiplies such a list by 1/(1 - p); spikes become numbers, in scratch of the slot. */
void neap__dropout_raise(const struct neap_net *net, const struct neap__group *group,
	const struct neap__layer *layer, int slot, struct neap__list *list);
/* Writes outputs[n] that pass, times `scale`, and 0 for those that do not, to to[n]. */
void neap__dropout_all(real *to, const struct neap_net *net, const struct neap__group *group,
	const struct neap__layer *layer, int slot, const real *outputs, real scale);
/* Multiplies ds[view->active], which comes down from above, by 1/(1 - p), or by 0. */
void neap__dropout_gradient(const struct neap_net *net, const struct neap__group *group,
	const struct neap__layer *layer, int slot, const struct neap__view *view, real *ds);

#endif
