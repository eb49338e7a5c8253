/* SPDX-License-Identifier: Apache-2.0 */
/* call_cost.h: what a call of the model takes besides its steps. */
#ifndef NEAP_MEASURE_CALL_COST_H
#define NEAP_MEASURE_CALL_COST_H

#include "measure/net_steps.h"

/*
 * Sweeps of a few hundred first steps within `memory` bytes: one that calls the net for
 * one step at a time, and one that calls it for ranges. What the first one takes longer,
 * a call, is costs->call; what its copies take sets costs->slot_write and slot_read, as
 * long as those are said not to be 0, in their proportion. costs->advance, record
 * and backward are known. Nothing but call, 0, where steps take so long that a call
 * does not count, or where no such sweep fits. Begins and ends the batch; gradients are
 * undefined.
 */
NEAP_API int neap__call_cost_measure(struct neap__costs *costs, struct neap_net *net,
	const struct neap_batch *batch, const struct neap_objective *objective, uint64_t memory);

#endif
