/* SPDX-License-Identifier: Apache-2.0 */
/* transfer_overhead.h: costs of steps in sweeps, and the transfer overhead beside them. */
#ifndef NEAP_MEASURE_TRANSFER_OVERHEAD_H
#define NEAP_MEASURE_TRANSFER_OVERHEAD_H

#include "measure/comparison.h"

/*
 * Makes a sweep under `stream` of the batch that is begun, with tapes as large as their mean.
 * *sweep is NULL where the budget has no such plan, no tier is there or costs are given.
 */
int neap__transfer_overhead_sweep(
	struct neap_sweep **sweep, struct neap__comparison *c, int64_t steps);

/*
 * Runs sweeps without and with transfers (`stream`, which may be NULL) in turns. Sets the costs of
 * steps, the seconds of the probe's sweep that they come from, and the tier's overhead and rates.
 * Begins and ends the batch; gradients are undefined.
 */
int neap__transfer_overhead_measure(struct neap__comparison *c, struct neap_sweep *stream);

#endif
