/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_lists.h: deferred events of a weight gradient and their sum, and the rows of d(in) and
 * outputs that they refer to (deferred_sums.h). Steps count down from the end of a range: row 0 is
 * the adjoint that the range begins with.
 */
#ifndef NEAP_NN_GRADIENTS_EVENT_LISTS_H
#define NEAP_NN_GRADIENTS_EVENT_LISTS_H

#include "nn/core/precision.h"
#include "nn/gradients/deferred_sums.h"

#define neap__deferred_row NEAP_R(neap__deferred_row)
#define neap__deferred_outputs NEAP_R(neap__deferred_outputs)
#define neap__deferred_inputs NEAP_R(neap__deferred_inputs)
#define neap__event_list_append NEAP_R(neap__event_list_append)
#define neap__event_list_sum NEAP_R(neap__event_list_sum)

/* d(in) [widths.sums] of a layer, a step and a sample's row. */
real *neap__deferred_row(const struct neap_net *net, const struct neap__deferred *deferred,
	int layer, int step, int row);
/* Outputs [n] of a layer; `up`: those that dropout lets pass to the layer above, 0 elsewhere. */
real *neap__deferred_outputs(const struct neap_net *net, const struct neap__deferred *deferred,
	int layer, int step, int row, int up);
/* Room for the input values of a row, where they are no floats. */
real *neap__deferred_inputs(
	const struct neap_net *net, const struct neap__deferred *deferred, int row);
/*
 * Defers the events of a list, each of which adds row `from` of d(in) to the row slot[id] of the
 * sums, or to row first + id where slot is NULL.
 */
void neap__event_list_append(struct neap__deferred *deferred, int tensor, int first,
	const struct neap__list *list, const uint16_t *slot, uint32_t from);
/* Adds the deferred events of a layer's tensor; `source_rows` rows of d(in) are in use. */
void neap__event_list_sum(struct neap_net *net, struct neap__grads *grads,
	struct neap__deferred *deferred, int layer, int tensor, int source_rows);

#endif
