/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row_reading.h: how a data set is read whose samples are rows of steps: which targets it gets, and
 * how its values are normalised.
 */
#ifndef NEAP_DATA_ROW_READING_H
#define NEAP_DATA_ROW_READING_H

#include "data/dataset.h"

/* Makes the values of the step after the targets of a set. 0, or NEAP_EUSAGE where it has none. */
int neap__rows_next(struct neap_dataset *set);
/* Normalises a set by mean and deviation of samples index[count] of its own; NULL: of all. */
int neap__rows_normalise(struct neap_dataset *set, const int64_t *index, int64_t count);
/* Normalises a set by numbers from malloc, which it owns then. 0, or -ENOMEM where one is NULL. */
int neap__rows_scale(struct neap_dataset *set, double *shift, double *scale);
/* Reads `set` as `from` is read, its coding included. 0, NEAP_EUSAGE or -ENOMEM. */
int neap__rows_copy(struct neap_dataset *set, const struct neap_dataset *from);
/*
 * What to do about a set with another number of features than the `names` [count] that are
 * expected: which to remove or to add, as far as both have names.
 */
#define NEAP__FEATURES_TEXT 1300
const char *neap__features_advice(char room[NEAP__FEATURES_TEXT], const struct neap_dataset *set,
	const char *const *names, int count);
/*
 * Compares the names of the features with those of other data, `whose` ("the model was trained on",
 * "'a.h5' has"). Features with the same names in another order are read in that order from then on;
 * `line` reports it, or warns of other names. 1; 0 where there is nothing to say, as where one of
 * them has no names; or -ENOMEM.
 */
int neap__rows_match(char line[NEAP__TAKEN_TEXT], struct neap_dataset *set,
	const char *const *names, int count, const char *whose);

#endif
