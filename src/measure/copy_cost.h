/* SPDX-License-Identifier: Apache-2.0 */
/* copy_cost.h: seconds that a copy of the state into a slot and back takes. */
#ifndef NEAP_MEASURE_COPY_COST_H
#define NEAP_MEASURE_COPY_COST_H

#include <neap/train.h>

/*
 * Measures the seconds of a copy of `bytes` to a slot, and back, in the memory of the states of
 * `net`, with slots all over `memory` bytes (16 MiB at most), which hold the state too: medians
 * of `repeats` (99 at most) passes over all slots. 0 or -ENOMEM.
 */
int neap__copy_cost_measure(struct neap_timing *write, struct neap_timing *read,
	const struct neap_net *net, uint64_t bytes, uint64_t memory, int repeats);

#endif
