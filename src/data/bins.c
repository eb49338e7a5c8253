/* SPDX-License-Identifier: Apache-2.0 */
#include "data/bins.h"
#include "base/checked.h"
#include "base/fail.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Grows *array to at least `want` elements; keeps what it holds. */
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
 * Times on the border of a bin belong to the bin they begin, also when they went
 * through float32 (half a unit in the last place: 6e-8 of the value).
 */
static double bin_of(double time, double dt)
{
	double x = time / dt;
	return floor(x + 1e-6 + x * 6e-8);
}

static int sample_length(const struct neap_events *events, double dt, int64_t steps, int64_t *out)
{
	double length = 1;
	if (events->duration > 0) {
		double x = events->duration / dt;
		length = fmax(length, ceil(x - 1e-6 - x * 1e-9));
	}
	if (events->count > 0)
		length = fmax(length, bin_of(events->time[events->count - 1], dt) + 1);
	if (steps > 0)
		length = fmin(length, (double)steps);
	if (!(length <= NEAP__MOST_STEPS))
		return neap__fail(NEAP_EFORMAT,
			"%.3g steps of %g s; at most %d are accepted: take a longer dt or cut",
			length, dt, NEAP__MOST_STEPS);
	*out = (int64_t)length;
	return 0;
}

static int reserve_sort(struct neap__bins *bins, size_t n)
{
	size_t a = bins->sort_room, b = a, c = a, d = bins->count ? 65537 : 0;
	NEAP_TRY(grow(&bins->bin, &a, n, sizeof *bins->bin));
	NEAP_TRY(grow(&bins->spare_bin, &b, n, sizeof *bins->spare_bin));
	NEAP_TRY(grow(&bins->spare_unit, &c, n, sizeof *bins->spare_unit));
	NEAP_TRY(grow(&bins->count, &d, 65537, sizeof *bins->count));
	bins->sort_room = a;
	return 0;
}

/* By unit, keeping the order of equal ones, into the spare arrays; gives the events kept. */
static size_t sort_units(struct neap__bins *bins, const struct neap_events *events, int inputs,
	double dt, int64_t length)
{
	size_t n = 0, sum = 0;
	while (n < (size_t)events->count && bin_of(events->time[n], dt) < (double)length) {
		bins->bin[n] = (uint32_t)bin_of(events->time[n], dt);
		n++;
	}
	memset(bins->count, 0, (size_t)inputs * sizeof *bins->count);
	for (size_t i = 0; i < n; i++)
		bins->count[events->unit[i]]++;
	for (int u = 0; u < inputs; u++) {
		uint32_t count = bins->count[u];
		bins->count[u] = (uint32_t)sum;
		sum += count;
	}
	for (size_t i = 0; i < n; i++) {
		uint32_t to = bins->count[events->unit[i]]++;
		bins->spare_bin[to] = bins->bin[i];
		bins->spare_unit[to] = events->unit[i];
	}
	return n;
}

/*
 * Two counting sorts, by unit and then by bin: linear in spikes, steps and units,
 * whatever the file holds. Then repeated units of a step are dropped.
 */
int neap__bins_add(struct neap__bins *bins, const struct neap_events *events, int inputs, double dt,
	int64_t steps, int64_t *length)
{
	NEAP_TRY(sample_length(events, dt, steps, length));
	if (events->count >= UINT32_MAX)
		return neap__fail(NEAP_EFORMAT, "%lld spikes; fewer than 2^32 are accepted",
			(long long)events->count);
	size_t T = (size_t)*length;
	NEAP_TRY(grow(&bins->start, &bins->start_room, bins->starts + T + 1, sizeof(uint32_t)));
	NEAP_TRY(grow(&bins->unit, &bins->unit_room, bins->units + (size_t)events->count,
		sizeof(uint16_t)));
	NEAP_TRY(grow(&bins->first, &bins->first_room, (size_t)bins->samples + 1, sizeof(size_t)));
	NEAP_TRY(reserve_sort(bins, (size_t)events->count));
	size_t n = sort_units(bins, events, inputs, dt, *length), kept = 0;

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
	uint32_t from = 0;
	for (size_t t = 0; t < T; t++) {
		uint32_t end = start[t];
		start[t] = (uint32_t)kept;
		for (uint32_t i = from; i < end; i++)
			if (i == from || unit[i] != unit[kept - 1])
				unit[kept++] = unit[i];
		from = end;
	}
	start[T] = (uint32_t)kept;
	bins->first[bins->samples++] = bins->units;
	bins->starts += T + 1;
	bins->units += kept;
	return 0;
}
