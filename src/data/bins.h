/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bins.h: event lists by step: the units that spike in step t = floor(time / dt), each once and
 * ascending. Samples, or parts of samples, stand one behind the other in arrays that never shrink.
 */
#ifndef NEAP_DATA_BINS_H
#define NEAP_DATA_BINS_H

#include <neap/data.h>

/* Longest sample in steps: the array of starts, 4 bytes a step, stays below 1.6 GB. */
#define NEAP__MOST_STEPS 400000000

/* All zero to begin with. */
struct neap__bins {
	uint32_t *start;      /* length + 1 of each sample */
	uint16_t *unit;	      /* of all samples */
	size_t *first;	      /* [samples] where a sample's units begin */
	size_t starts, units; /* used */
	int samples;
	size_t start_room, unit_room, first_room;
	uint32_t *bin, *spare_bin; /* while sorting */
	uint16_t *spare_unit;
	size_t sort_room;
	uint32_t *count; /* [inputs] */
	size_t count_room;
};

void neap__bins_clear(struct neap__bins *bins);
/*
 * Adds one sample and sets its length in steps: to the end of its duration, or to its last spike;
 * at least 1, at most `steps` unless that is 0. 0, NEAP_EFORMAT for too many steps, or -ENOMEM.
 */
int neap__bins_add(struct neap__bins *bins, const struct neap_events *events, int inputs, double dt,
	int64_t steps, int64_t *length);
/* Sets the length of a sample of `count` events, the last of them at `last` seconds. */
int neap__bins_length(
	double duration, int64_t count, double last, double dt, int64_t steps, int64_t *length);
/* The same of a sample of any length. */
int64_t neap__bins_steps(double duration, int64_t count, double last, double dt);
/* The step that a time belongs to. */
int64_t neap__bins_step(double time, double dt);
/* Adds steps [from, to) of a sample; events of other steps are left out. */
int neap__bins_add_part(struct neap__bins *bins, const struct neap_events *events, int inputs,
	double dt, int64_t from, int64_t to);
/* Bytes of the arrays that a batch consists of. */
size_t neap__bins_bytes(const struct neap__bins *bins);
void neap__bins_free(struct neap__bins *bins);

#endif
