/* SPDX-License-Identifier: Apache-2.0 */
/* batch_sampling.h: tape sizes and costs of a batch too long to be swept only to measure it. */
#ifndef NEAP_MEASURE_BATCH_SAMPLING_H
#define NEAP_MEASURE_BATCH_SAMPLING_H

#include <neap/net.h>
#include "measure/tape_sizes.h"

/* The first `steps` steps of a batch as a batch; `sequences` holds its samples. */
struct neap_batch neap__batch_cut(
	const struct neap_batch *batch, struct neap_sequence *sequences, int64_t steps);

/*
 * Records 64 ranges of 256 steps spread over the batch and puts their tape sizes into `tapes`, one
 * behind the other. Before each the net runs for 256 steps from rest, so that it is about as
 * active as in a sweep. *cost_ratio: seconds of recording them over those of as many ranges of
 * the first `first` steps, measured in turns. The batch is begun. Maps at most `memory` bytes,
 * and at most 16 MiB beyond what one step takes.
 * 0 or a negative code.
 */
int neap__batch_sampling_measure(struct neap__tape_sizes *tapes, double *cost_ratio,
	struct neap_net *net, const struct neap_batch *batch, int64_t first, uint64_t memory);

#endif
