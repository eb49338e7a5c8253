/* SPDX-License-Identifier: Apache-2.0 */
/* array_advice.h: errors about the kind and shape of arrays; each is one line with what to
 * save. */
#ifndef NEAP_DATA_FORMATS_ARRAY_ADVICE_H
#define NEAP_DATA_FORMATS_ARRAY_ADVICE_H

#include "data/formats/arrays.h"

/* The shape as Python prints it, such as "(8, 500)"; returns `room`. */
const char *neap__array_shape(char room[80], const struct neap__array *array);
/* NEAP_EFORMAT: another kind or shape; `must` says what it must be, and what to do. */
int neap__array_wrong(const char *path, const struct neap__array *array, const char *must);
/* NEAP_EFORMAT: y has another number of samples than x. */
int neap__array_wrong_count(
	const char *path, const struct neap__array *x, const struct neap__array *y);
/* NEAP_EFORMAT: y has a shape that no target of samples of `steps` steps has. */
int neap__array_wrong_y(const char *path, const struct neap__array *y, int64_t steps);

#endif
