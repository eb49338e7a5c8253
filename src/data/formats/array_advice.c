/* SPDX-License-Identifier: Apache-2.0 */
/* array_advice.c: what is wrong with the shape of an array, and what to save instead. */
#include "data/formats/array_advice.h"
#include "base/fail.h"
#include "base/print.h"

const char *neap__array_shape(char room[80], const struct neap__array *array)
{
	size_t n = 0;
	for (int i = 0; i < array->dims; i++)
		n += (size_t)neap__print(
			room + n, 80 - n, "%s%lld", i ? ", " : "(", (long long)array->size[i]);
	neap__print(room + n, 80 - n, ")");
	return room;
}

int neap__array_wrong(const char *path, const struct neap__array *array, const char *must)
{
	char shape[80];
	const char *kind = array->kind == NEAP__ARRAY_INTEGERS ? "integers"
			   : array->kind == NEAP__ARRAY_REALS  ? "real numbers"
							       : "texts";

	return neap__fail(NEAP_EFORMAT, "'%s': '%s' contains %s of shape %s, but must be %s", path,
		array->name, kind, neap__array_shape(shape, array), must);
}

int neap__array_wrong_count(
	const char *path, const struct neap__array *x, const struct neap__array *y)
{
	char a[80], b[80];
	const char *remedy = "Save one target per sample, in the order of x";
	if (x->size[0] == 1 && y->size[0] == x->size[1])
		remedy = "If x is one series with a target per step, save y[None]; numbers need "
			 "y[None, :, None]";
	else if (y->size[0] == x->size[1])
		remedy = x->dims == 3 ? "If the axes of x are (step, sample, feature), save "
					"x.transpose(1, 0, 2)"
				      : "If the axes of x are (step, sample), save x.T";
	return neap__fail(NEAP_EFORMAT,
		"'%s': 'y' has shape %s and 'x' has shape %s: %lld targets for %lld sample%s. %s",
		path, neap__array_shape(a, y), neap__array_shape(b, x), (long long)y->size[0],
		(long long)x->size[0], x->size[0] == 1 ? "" : "s", remedy);
}

int neap__array_wrong_y(const char *path, const struct neap__array *y, int64_t steps)
{
	const char *must = "integers of shape (samples) or (samples, steps), texts of shape "
			   "(samples), or real numbers of shape (samples), (samples, d) or "
			   "(samples, steps, d)";
	char room[300];
	if (y->dims == 3 || (y->dims == 2 && y->kind == NEAP__ARRAY_INTEGERS && y->size[1] > 1)) {
		neap__print(room, sizeof room,
			"of %lld steps like 'x' if it has a target per step, not of %lld. Save one "
			"target "
			"per step of x; if y is one-hot, save y.argmax(%d); if it has several "
			"numbers "
			"per %s, save y.astype(float)",
			(long long)steps, (long long)y->size[1], y->dims - 1,
			y->dims == 3 ? "step" : "sample");
		if (y->size[1] != steps)
			must = room;
	}
	if (must == room)
		return neap__array_wrong(path, y, must);
	if (y->kind == NEAP__ARRAY_INTEGERS && y->dims == 2 && y->size[1] == 1)
		must = "of shape (samples) for one class per sample. Save y[:, 0]; numbers are "
		       "saved as reals: y.astype(float)";
	else if (y->kind == NEAP__ARRAY_INTEGERS && y->dims == 2)
		must = "of shape (samples) or (samples, steps) for classes. If y is one-hot, save "
		       "y.argmax(1); if it has several numbers per sample, save y.astype(float)";
	else if (y->kind == NEAP__ARRAY_INTEGERS && y->dims == 3 && y->size[1] == steps)
		must = "of shape (samples, steps) for one class per step. If y is one-hot, save "
		       "y.argmax(2); if it has numbers per step, save y.astype(float)";
	else if (y->kind == NEAP__ARRAY_TEXTS && y->dims == 1)
		must = "integers that count from 0 in the order of 'classes'. Remove the array "
		       "'classes', or number y";
	return neap__array_wrong(path, y, must);
}
