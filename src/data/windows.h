/* SPDX-License-Identifier: Apache-2.0 */
/* windows.h: the events of a long batch, a window of steps at a time; the next one is prefetched.
 */
#ifndef NEAP_DATA_WINDOWS_H
#define NEAP_DATA_WINDOWS_H

#include "data/augment/augment.h"
#include "data/dataset.h"

struct neap__windows_options {
	struct neap_dataset *set; /* borrowed; its samples can be read in part */
	int batch, inputs;
	double dt;
	const struct neap__augment *augment; /* borrowed; NULL: none */
	uint64_t bytes;			     /* bound on all memory of the windows */
};

/* 0, NEAP_EUSAGE with the least bound where the bound is too small for 64 steps, or -ENOMEM. */
int neap__windows_create(
	struct neap_windows **windows, const struct neap__windows_options *options);
/* Binds the windows to a batch, whose sequences (length, index) are borrowed. */
void neap__windows_bind(struct neap_windows *windows, const struct neap_sequence *sequences,
	int size, int64_t steps);
/* Seconds of a processor that reading a step of the batch took on average; 0: nothing was read. */
double neap__windows_cost(const struct neap_windows *windows);
/* Steps that all frames hold at once: a sweep over fewer of them reads each once. */
int64_t neap__windows_held(const struct neap_windows *windows);
/* Waits until no window is being read. For measurements; what fails is told by the next take. */
void neap__windows_settle(struct neap_windows *windows);
/* Steps of all windows read so far, of all batches, but those that are still being read. */
int64_t neap__windows_read(const struct neap_windows *windows);
uint64_t neap__windows_bytes(const struct neap_windows *windows);
void neap__windows_free(struct neap_windows *windows);

#endif
