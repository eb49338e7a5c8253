/* SPDX-License-Identifier: Apache-2.0 */
/* batch_sampling.h: what is learnt of a batch too long to be swept only to measure it. */
#ifndef NEAP_MEASURE_BATCH_SAMPLING_H
#define NEAP_MEASURE_BATCH_SAMPLING_H

#include <neap/net.h>
#include "measure/tape_sizes.h"

/* The first `steps` steps of a batch: one of its own, `sequences` with room for all samples. */
struct neap_batch neap__batch_cut(
	const struct neap_batch *batch, struct neap_sequence *sequences, int64_t steps);

/*
 * Tapes of stretches all along the batch, one behind the other in `tapes`: 64 of 256
 * steps. Before each the net runs for 256 steps from rest, so that it is as active as
 * it would be. *dearer: seconds that recording them takes over those of as many among the
 * `first` steps, in turns. The batch is begun; takes at most `room` bytes for tapes, or
 * one worst case.
 */
int neap__batch_sampling_measure(struct neap__tape_sizes *tapes, double *dearer,
	struct neap_net *net, const struct neap_batch *batch, int64_t first, size_t room);

#endif
