/* SPDX-License-Identifier: Apache-2.0 */
/*
 * augment.h: training samples varied anew in every epoch. One kind a file, one row each
 * in the table of augment.c. What becomes of an event is a function of (seed, epoch, sample,
 * the event's time and unit) alone: it does not matter in what order, in what batch
 * or in which window the event is read.
 */
#ifndef NEAP_DATA_AUGMENT_H
#define NEAP_DATA_AUGMENT_H

#include "data/dataset.h"

/* What all samples of an epoch share. */
struct neap__augment {
	struct neap_augment options;
	int inputs;
	double dt;
	uint64_t seed;
	uint32_t epoch;
};

/* A kind; unused ones are passed over. `key` stands for seed, epoch, sample and kind. */
struct neap__augmentation {
	uint32_t number; /* of its own, for the key: it must never change */
	int (*check)(const struct neap_augment *options);
	int (*used)(const struct neap_augment *options);
	/* Events as they become, in place; they need not stay in order. */
	void (*apply)(
		const struct neap__augment *augment, uint64_t key, struct neap_events *events);
	/* All that may come to lie in [from, to) lies in the wider [from, to). NULL: the same. */
	void (*reach)(const struct neap__augment *augment, uint64_t key, double *from, double *to);
	/* What becomes of a sample's length. NULL: the same. */
	void (*extent)(const struct neap__augment *augment, uint64_t key,
		struct neap__sample_extent *extent);
	/* The longest that a sample of so many seconds may become. NULL: the same. */
	double (*longest)(const struct neap_augment *options, double duration);
};

extern const struct neap__augmentation neap__time_stretch, neap__time_jitter, neap__channel_shift;

/* NEAP_EUSAGE with a line about the first option out of its range. */
int neap__augment_check(const struct neap_augment *options);
/* 1 where any is used. */
int neap__augment_used(const struct neap_augment *options);
NEAP_API double neap__augment_longest(const struct neap_augment *options, double duration);

/* The rows, one after the other, on sample `index`; reach in the opposite order. */
NEAP_API void neap__augment_apply(
	const struct neap__augment *augment, int64_t index, struct neap_events *events);
void neap__augment_reach(
	const struct neap__augment *augment, int64_t index, double *from, double *to);
NEAP_API void neap__augment_extent(
	const struct neap__augment *augment, int64_t index, struct neap__sample_extent *extent);

#endif
