/* SPDX-License-Identifier: Apache-2.0 */
/* bins.c: two counting sorts, by unit and by bin, and the growth of their arrays. */
#include "data/bins.h"
#include "base/checked.h"
#include "base/fail.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/*
 * Grows *array to at least `want` elements, by a quarter more instead of doubling (grow.h): the
 * arrays are the memory of a batch, and windows.c bounds its own with this rule.
 */
static int grow(void *array, size_t *room, size_t want, size_t element)
{
	void **at = array;
	size_t bytes, more;
	if (want <= *room && *at)
		return 0;
	more = want + want / 4 + 64;
	void *grown = neap__mul_size(&bytes, more, element) < 0 ? NULL : realloc(*at, bytes);
	if (!grown)
		return neap__fail_errno(ENOMEM, "room for %zu steps or spikes", want);
	*at = grown;
	*room = more;
	return 0;
}

void neap__bins_clear(struct neap__bins *bins)
{
	bins->starts = bins->units = 0;
	bins->samples = 0;
}

void neap__bins_free(struct neap__bins *bins)
{
	free(bins->start);
	free(bins->unit);
	free(bins->first);
	free(bins->bin);
	free(bins->spare_bin);
	free(bins->spare_unit);
	free(bins->count);
	memset(bins, 0, sizeof *bins);
}

size_t neap__bins_bytes(const struct neap__bins *bins)
{
	return bins->start_room * sizeof *bins->start + bins->unit_room * sizeof *bins->unit +
	       bins->first_room * sizeof *bins->first;
}

/*
 * The bin of a time. A time on the border of two bins belongs to the later one, also after
 * rounding to float32, which moves it by up to half a unit in the last place: 6e-8 of its value.
 */
static double bin_of(double time, double dt)
{
	double x = time / dt;
	return floor(x + 1e-6 + x * 6e-8);
}

static double length_of(double duration, int64_t count, double last, double dt)
{
	double length = 1;
	if (duration > 0) {
		double x = duration / dt;
		length = fmax(length, ceil(x - 1e-6 - x * 1e-9));
	}
	return count > 0 ? fmax(length, bin_of(last, dt) + 1) : length;
}

int64_t neap__bins_step(double time, double dt)
{
	return (int64_t)fmin(bin_of(time, dt), 9e15);
}

int64_t neap__bins_steps(double duration, int64_t count, double last, double dt)
{
	return (int64_t)fmin(length_of(duration, count, last, dt), 9e15);
}

int neap__bins_length(
	double duration, int64_t count, double last, double dt, int64_t steps, int64_t *out)
{
	double length = length_of(duration, count, last, dt);
	if (steps > 0)
		length = fmin(length, (double)steps);
	if (!(length <= NEAP__MOST_STEPS))
		return neap__fail(NEAP_EFORMAT,
			"the sample has %.3g steps of %g s, more than %d. Use a longer --dt, or "
			"truncate it with --max-steps",
			length, dt, NEAP__MOST_STEPS);
	*out = (int64_t)length;
	return 0;
}

static int reserve_sort(struct neap__bins *bins, size_t n, int inputs)
{
	size_t a = bins->sort_room, b = a, c = a;
	NEAP_TRY(grow(&bins->bin, &a, n, sizeof *bins->bin));
	NEAP_TRY(grow(&bins->spare_bin, &b, n, sizeof *bins->spare_bin));
	NEAP_TRY(grow(&bins->spare_unit, &c, n, sizeof *bins->spare_unit));
	bins->sort_room = a;
	return grow(&bins->count, &bins->count_room, (size_t)inputs, sizeof *bins->count);
}

/* Sorts events by unit into the spare arrays; equal units keep their order. Returns their number.
 */
static size_t sort_units(struct neap__bins *bins, const struct neap_events *events, int inputs,
	double dt, int64_t from, int64_t to)
{
	size_t n = (size_t)events->count, kept = 0, sum = 0;
	memset(bins->count, 0, (size_t)inputs * sizeof *bins->count);
	for (size_t i = 0; i < n; i++) {
		double bin = bin_of(events->time[i], dt);
		int inside = bin >= (double)from && bin < (double)to;
		bins->bin[i] = inside ? (uint32_t)((int64_t)bin - from) : UINT32_MAX;
		if (inside)
			bins->count[events->unit[i]]++;
	}
	for (int u = 0; u < inputs; u++) {
		uint32_t count = bins->count[u];
		bins->count[u] = (uint32_t)sum;
		sum += count;
	}
	for (size_t i = 0; i < n; i++) {
		if (bins->bin[i] == UINT32_MAX)
			continue;
		uint32_t place = bins->count[events->unit[i]]++;
		bins->spare_bin[place] = bins->bin[i];
		bins->spare_unit[place] = events->unit[i];
		kept++;
	}
	return kept;
}

/*
 * Sorts by unit and then by bin with counting sorts, whose time is linear in spikes, steps and
 * units for any input. Repeated units of a step are dropped afterwards.
 */
int neap__bins_add_part(struct neap__bins *bins, const struct neap_events *events, int inputs,
	double dt, int64_t from, int64_t to)
{
	if (events->count >= UINT32_MAX)
		return neap__fail(NEAP_EFORMAT,
			"the sample has %lld spikes; fewer than 2^32 are supported",
			(long long)events->count);
	size_t T = (size_t)(to - from);
	NEAP_TRY(grow(&bins->start, &bins->start_room, bins->starts + T + 1, sizeof(uint32_t)));
	NEAP_TRY(grow(&bins->unit, &bins->unit_room, bins->units + (size_t)events->count,
		sizeof(uint16_t)));
	NEAP_TRY(grow(&bins->first, &bins->first_room, (size_t)bins->samples + 1, sizeof(size_t)));
	NEAP_TRY(reserve_sort(bins, (size_t)events->count, inputs));
	size_t n = sort_units(bins, events, inputs, dt, from, to), kept = 0;

	uint32_t *start = bins->start + bins->starts;
	uint16_t *unit = bins->unit + bins->units;
	memset(start, 0, (T + 1) * sizeof *start);
	for (size_t i = 0; i < n; i++)
		start[bins->spare_bin[i] + 1]++;
	for (size_t t = 0; t < T; t++)
		start[t + 1] += start[t];
	for (size_t i = 0; i < n;
		i++) /* start[t] runs to the end of step t, which is start[t + 1] */
		unit[start[bins->spare_bin[i]]++] = bins->spare_unit[i];
	uint32_t begin = 0;
	for (size_t t = 0; t < T; t++) {
		uint32_t end = start[t];
		start[t] = (uint32_t)kept;
		for (uint32_t i = begin; i < end; i++)
			if (i == begin || unit[i] != unit[kept - 1])
				unit[kept++] = unit[i];
		begin = end;
	}
	start[T] = (uint32_t)kept;
	bins->first[bins->samples++] = bins->units;
	bins->starts += T + 1;
	bins->units += kept;
	return 0;
}

int neap__bins_add(struct neap__bins *bins, const struct neap_events *events, int inputs, double dt,
	int64_t steps, int64_t *length)
{
	int64_t n = events->count;
	NEAP_TRY(neap__bins_length(
		events->duration, n, n > 0 ? events->time[n - 1] : 0, dt, steps, length));
	return neap__bins_add_part(bins, events, inputs, dt, 0, *length);
}
