/* SPDX-License-Identifier: Apache-2.0 */
/*
 * augment.h: augmentation: training samples that vary from epoch to epoch. Each kind is one file
 * and one row in the table of augment.c. How an event changes is a function of (seed, epoch,
 * sample, the event's time and unit) alone, so the order, the batch and the window in which the
 * event is read do not matter.
 */
#ifndef NEAP_DATA_AUGMENT_AUGMENT_H
#define NEAP_DATA_AUGMENT_AUGMENT_H

#include <neap/data.h>
#include "data/augment/sample_extent.h"

/* What all samples of an epoch have in common. */
struct neap__augment {
	struct neap_augment options;
	int inputs;
	double dt;
	uint64_t seed;
	uint32_t epoch;
};

/* A kind of augmentation. `key` is the random key of seed, epoch, sample and kind. */
struct neap__augmentation {
	uint32_t number; /* part of the key: it must never change, or old runs draw other numbers */
	int (*check)(const struct neap_augment *options);
	int (*used)(const struct neap_augment *options);
	/* Changes events in place; they need not stay in order. */
	void (*apply)(
		const struct neap__augment *augment, uint64_t key, struct neap_events *events);
	/* Widens [from, to) until it holds all events that may move into it. NULL: no change. */
	void (*reach)(const struct neap__augment *augment, uint64_t key, double *from, double *to);
	/* Changes a sample's length. NULL: no change. */
	void (*extent)(const struct neap__augment *augment, uint64_t key,
		struct neap__sample_extent *extent);
	/* Returns the longest that a sample of so many seconds may become. NULL: no change. */
	double (*longest)(const struct neap_augment *options, double duration);
};

extern const struct neap__augmentation neap__time_stretch, neap__time_jitter, neap__channel_shift;

/* 0, or NEAP_EUSAGE with a line about the first option out of its range. */
int neap__augment_check(const struct neap_augment *options);
/* 1 where any kind is used. */
int neap__augment_used(const struct neap_augment *options);
double neap__augment_longest(const struct neap_augment *options, double duration);

/* Apply the rows of the table to sample `index` one after the other; reach in reverse order. */
void neap__augment_apply(
	const struct neap__augment *augment, int64_t index, struct neap_events *events);
void neap__augment_reach(
	const struct neap__augment *augment, int64_t index, double *from, double *to);
void neap__augment_extent(
	const struct neap__augment *augment, int64_t index, struct neap__sample_extent *extent);

#endif
