/* SPDX-License-Identifier: Apache-2.0 */
/* transfer_overhead.h: what steps cost in a sweep, and what transfers cost them. */
#ifndef NEAP_MEASURE_TRANSFER_OVERHEAD_H
#define NEAP_MEASURE_TRANSFER_OVERHEAD_H

#include "measure/comparison.h"

/*
 * A sweep under `stream` of the batch that is begun, tapes as large as their mean; *sweep
 * NULL where the budget has none, no tier is there or costs are given.
 */
int neap__overhead_sweep(struct neap_sweep **sweep, struct neap__comparison *c, int64_t steps);

/* The sweep without transfers once more: what it took, and the costs that it tells of. */
int neap__overhead_alone(
	struct neap__comparison *c, struct neap_sweep_stats *stats, struct neap__pace_now *turn);

/*
 * Sweeps without and with (stream; may be NULL) transfers take turns. Sets the costs of
 * steps and the seconds of the sweep without that they were taken from, and tells the tier
 * what transfers cost the computation and how fast it was. Begins and ends the batch;
 * gradients are undefined.
 */
int neap__overhead_measure(struct neap__comparison *c, struct neap_sweep *stream);

#endif
