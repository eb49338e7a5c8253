/* SPDX-License-Identifier: Apache-2.0 */
/* call_cost.h: seconds that a call of the model takes besides its steps. */
#ifndef NEAP_MEASURE_CALL_COST_H
#define NEAP_MEASURE_CALL_COST_H

#include "measure/net_steps.h"

/*
 * Measures costs->call with sweeps of the first 512 steps at most, within `memory` bytes
 * (16 MiB at most): one
 * calls the net step by step, one for ranges. Scales costs->slot_write and slot_read so that they
 * agree with the copies measured. costs->advance, record and backward are known. Where a step
 * takes so long that a call does not count (2 ms), or no such sweep fits, call becomes 0 and
 * nothing else changes. Begins and ends the batch; gradients are undefined. 0 or a negative code.
 */
int neap__call_cost_measure(struct neap__costs *costs, struct neap_net *net,
	const struct neap_batch *batch, const struct neap_objective *objective, uint64_t memory);

#endif
