/* SPDX-License-Identifier: Apache-2.0 */
/* spikes_of.c: spikes of an array of numbers, as lists of events (neap/ports.h). */
#include <neap/ports.h>
#include "base/fail.h"

#include <string.h>

enum { BLOCK = 16 }; /* numbers looked at together; chosen: most blocks have no spike */

/* Spikes of a row; -1: a number is neither 0 nor 1. */
static int64_t count_floats(const float *x, int n)
{
	int count = 0, others = 0;

	for (int i = 0; i < n; i++) {
		count += x[i] == 1;
		others += !(x[i] == 0 || x[i] == 1);
	}
	return others ? -1 : count;
}

static int64_t count_doubles(const double *x, int n)
{
	int count = 0, others = 0;

	for (int i = 0; i < n; i++) {
		count += x[i] == 1;
		others += !(x[i] == 0 || x[i] == 1);
	}
	return others ? -1 : count;
}

static void list_floats(uint16_t *unit, const float *x, int n)
{
	for (int i = 0; i < n; i += BLOCK) {
		int to = i + BLOCK < n ? i + BLOCK : n, any = 0;
		for (int k = i; k < to; k++)
			any |= x[k] != 0;
		for (int k = i; any && k < to; k++)
			if (x[k] != 0)
				*unit++ = (uint16_t)k;
	}
}

static void list_doubles(uint16_t *unit, const double *x, int n)
{
	for (int k = 0; k < n; k++)
		if (x[k] != 0)
			*unit++ = (uint16_t)k;
}

int neap_spikes_list(enum neap_precision precision, const void *x, int64_t steps, int samples,
	int inputs, int64_t first, uint32_t *start, int64_t *offset, uint16_t *unit)
{
	NEAP_NEED(x, start, offset);
	const float *floats = x;
	const double *doubles = x;
	size_t row = 0, length = (size_t)(first + steps + 1);

	for (int64_t t = 0; t < steps && unit; t++)
		for (int b = 0; b < samples; b++, row += (size_t)inputs) {
			uint16_t *to = unit + offset[b] + start[b * length + (size_t)(first + t)];
			if (precision == NEAP_DOUBLE)
				list_doubles(to, doubles + row, inputs);
			else
				list_floats(to, floats + row, inputs);
		}
	if (unit)
		return 0;
	for (int b = 0; b < samples; b++)
		memset(start + b * length, 0, (size_t)(first + 1) * sizeof *start);
	for (int64_t t = 0; t < steps; t++)
		for (int b = 0; b < samples; b++, row += (size_t)inputs) {
			int64_t count = precision == NEAP_DOUBLE
						? count_doubles(doubles + row, inputs)
						: count_floats(floats + row, inputs);
			uint32_t *at = start + b * length + (size_t)(first + t);
			if (count < 0 || at[0] > UINT32_MAX - (uint64_t)count)
				return 1;
			at[1] = at[0] + (uint32_t)count;
		}
	offset[0] = 0;
	for (int b = 0; b < samples; b++)
		offset[b + 1] = offset[b] + start[(b + 1) * length - 1];
	return 0;
}
