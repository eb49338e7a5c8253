/* SPDX-License-Identifier: Apache-2.0 */
/*
 * target_units.h: targets that are numbers, normalised for a net: each output to a mean of 0 and a
 * deviation of 1. Mean and deviation lead back to the units that the file has its targets in.
 */
#ifndef NEAP_DATA_TARGET_UNITS_H
#define NEAP_DATA_TARGET_UNITS_H

#include "data/dataset.h"

/* 1 where the targets of a set are numbers. */
static inline int neap__has_number_targets(const struct neap_dataset *set)
{
	return set->info.target == NEAP_TARGET_NUMBERS || set->info.target == NEAP_TARGET_SERIES;
}

/* A target as a batch has it. */
static inline double neap__target_value(const struct neap_dataset *set, int64_t output, double x)
{
	return set->target_mean ? (x - set->target_mean[output]) / set->target_deviation[output]
				: x;
}

/*
 * Normalises by the targets of samples index[count] of the set's own; NULL: of all. An output that
 * is constant gets a deviation of 1. Values of the step after are normalised as inputs are, and
 * their units are those. Nothing where targets are no numbers. 0 or a negative code.
 */
int neap__target_units_normalise(struct neap_dataset *set, const int64_t *index, int64_t count);
/* Normalises by numbers from malloc, [classes] each, which the set owns then. 0 or a negative code.
 */
int neap__target_units_take(struct neap_dataset *set, double *mean, double *deviation);
/* Makes numbers of a net, [outputs], those in the targets' own units; mean NULL: they are. */
void neap__target_units_own(double *z, int outputs, const double *mean, const double *deviation);

#endif
