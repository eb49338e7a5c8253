/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shd_part.c: reads parts of a sample in the layout of the Heidelberg Digits. HDF5 reads such a
 * sample whole only. But a sample lies in one piece of the file, and in almost all files its times
 * ascend, so a part is found by bisection and read directly. A sample whose times do not ascend is
 * refused where it is too long to be read whole.
 */
#include "data/formats/shd.h"
#include "base/fail.h"

#include <math.h>

enum { PIECE = 4096 }; /* elements on the stack */

static int check_time(const struct neap__shd *shd, int64_t index, double time)
{
	if (time >= 0 && time <= NEAP__LONGEST_SECONDS)
		return 0;
	return neap__fail(NEAP_EFORMAT,
		"'%s': /spikes/times of sample %lld has %g; times must be between 0 and %g s",
		shd->path, (long long)index, time, NEAP__LONGEST_SECONDS);
}

static int time_at(struct neap__shd *shd, const struct neap__vlen_place *times, uint32_t i,
	int64_t index, double *time)
{
	NEAP_TRY(neap__vlen_part(&shd->times, times, i, 1, time));
	return check_time(shd, index, *time);
}

/* Where times and units of a sample lie. */
static int find(struct neap__shd *shd, int64_t index, struct neap__vlen_place *times,
	struct neap__vlen_place *units)
{
	NEAP_TRY(neap__vlen_place(&shd->times, index, times));
	NEAP_TRY(neap__vlen_place(&shd->units, index, units));
	if (times->length == units->length)
		return 0;
	return neap__fail(NEAP_EFORMAT,
		"'%s': sample %lld has %u /spikes/times, but %u /spikes/units", shd->path,
		(long long)index, times->length, units->length);
}

static int extent(struct neap__shd *shd, int64_t index, struct neap__sample_extent *extent)
{
	struct neap__vlen_place times;
	*extent = (struct neap__sample_extent){0};
	NEAP_TRY(neap__vlen_place(&shd->times, index, &times));
	extent->count = times.length;
	if (times.length > 0)
		NEAP_TRY(time_at(shd, &times, times.length - 1, index, &extent->last));
	extent->duration = shd->duration ? fmax(shd->duration[index], extent->last) : 0;
	return 0;
}

static int in_order(struct neap__shd *shd, int64_t index)
{
	struct neap__vlen_place times;
	double time[PIECE], before = 0;
	NEAP_TRY(neap__vlen_place(&shd->times, index, &times));
	for (uint32_t i = 0, n; i < times.length; i += n) {
		n = times.length - i < PIECE ? times.length - i : PIECE;
		NEAP_TRY(neap__vlen_part(&shd->times, &times, i, n, time));
		for (uint32_t k = 0; k < n; before = time[k++]) {
			NEAP_TRY(check_time(shd, index, time[k]));
			if (time[k] < before)
				return neap__fail(NEAP_EFORMAT,
					"'%s': /spikes/times of sample %lld are not ascending at "
					"%u, and too many to be sorted here. Sort them in the file",
					shd->path, (long long)index, i + k);
		}
	}
	return 0;
}

/* The first event at `time` or after. */
static int bisect(struct neap__shd *shd, const struct neap__vlen_place *times, int64_t index,
	double time, uint32_t *out)
{
	uint32_t low = 0, high = times->length;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		double found;
		NEAP_TRY(time_at(shd, times, middle, index, &found));
		if (found < time)
			low = middle + 1;
		else
			high = middle;
	}
	*out = low;
	return 0;
}

static int units_of(struct neap__shd *shd, const struct neap__vlen_place *units, int64_t index,
	uint32_t first, uint32_t count, uint16_t *out)
{
	int64_t unit[PIECE];
	for (uint32_t i = 0, n; i < count; i += n) {
		n = count - i < PIECE ? count - i : PIECE;
		NEAP_TRY(neap__vlen_part(&shd->units, units, first + i, n, unit));
		for (uint32_t k = 0; k < n; k++) {
			if (unit[k] < 0 || unit[k] >= shd->set.info.inputs)
				return neap__fail(NEAP_EFORMAT,
					"'%s': /spikes/units of sample %lld has %lld, but units "
					"must be between 0 and %d. Increase the attribute 'inputs' "
					"of the file",
					shd->path, (long long)index, (long long)unit[k],
					shd->set.info.inputs - 1);
			out[i + k] = (uint16_t)unit[k];
		}
	}
	return 0;
}

static int part(struct neap__shd *shd, int64_t index, double from, double to, size_t most,
	struct neap__event_buffer *buffer)
{
	struct neap__vlen_place times, units;
	uint32_t first, end;
	NEAP_TRY(find(shd, index, &times, &units));
	NEAP_TRY(bisect(shd, &times, index, from, &first));
	NEAP_TRY(bisect(shd, &times, index, to, &end));
	uint32_t count = end > first ? end - first : 0;
	if (count > most)
		return 1;
	NEAP_TRY(neap__event_buffer_reserve(buffer, most));
	buffer->events.count = count;
	NEAP_TRY(neap__vlen_part(&shd->times, &times, first, count, buffer->events.time));
	return units_of(shd, &units, index, first, count, buffer->events.unit);
}

int neap__shd_extent(struct neap_dataset *set, int64_t index, struct neap__sample_extent *out)
{
	struct neap__h5_guard guard;
	neap__h5_enter(&guard);
	int rc = extent((struct neap__shd *)set, index, out);
	neap__h5_leave(&guard);
	return rc;
}

int neap__shd_prepare(struct neap_dataset *set, int64_t index)
{
	struct neap__h5_guard guard;
	neap__h5_enter(&guard);
	int rc = in_order((struct neap__shd *)set, index);
	neap__h5_leave(&guard);
	return rc;
}

int neap__shd_part(struct neap_dataset *set, int64_t index, double from, double to, size_t most,
	struct neap__event_buffer *buffer)
{
	struct neap__h5_guard guard;
	neap__h5_enter(&guard);
	int rc = part((struct neap__shd *)set, index, from, to, most, buffer);
	neap__h5_leave(&guard);
	return rc;
}
