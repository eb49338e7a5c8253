/* SPDX-License-Identifier: Apache-2.0 */
/* fingerprint.c: a hash that tells data sets apart, without reading all of them. */
#include "data/dataset.h"
#include "data/step_rows.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <xxhash.h>

enum { HASHED_WHOLE = 1 << 20, HASHED = 1 << 16 }; /* events */

/* Hashes a sample too long to be held: its size, and some events from three places. */
static int hash_parts(XXH3_state_t *hash, struct neap_dataset *set, int64_t index,
	const struct neap__sample_extent *extent)
{
	struct neap__event_buffer buffer = {0};
	double end = extent->duration > 0 ? extent->duration : extent->last;
	double length = end * HASHED / (double)extent->count;
	int rc = 0;

	XXH3_64bits_update(hash, extent, sizeof *extent);
	for (int i = 0; i < 3 && rc >= 0; i++) {
		double from = (end - length) * i / 2;
		rc = neap__dataset_part(
			set, index, from, from + length, (size_t)4 * HASHED, &buffer);
		if (rc != 0)
			continue; /* more events than fit: none are hashed */
		size_t n = (size_t)buffer.events.count;
		XXH3_64bits_update(hash, buffer.events.time, n * sizeof *buffer.events.time);
		XXH3_64bits_update(hash, buffer.events.unit, n * sizeof *buffer.events.unit);
	}
	neap__event_buffer_free(&buffer);
	return rc < 0 ? rc : 0;
}

/* Hashes the length of a sample of values, and its first and last rows. */
static int hash_values(XXH3_state_t *hash, struct neap_dataset *set, int64_t index)
{
	int64_t length = set->ops->length(set, index) - set->next;
	int64_t inputs = neap__features(set), most = HASHED / inputs + 1;
	int64_t rows = length < most ? length : most;
	float *values = malloc((size_t)(rows * inputs) * sizeof *values);
	int rc = values ? 0 : neap__fail_errno(ENOMEM, "%s", set->name);

	XXH3_64bits_update(hash, &length, sizeof length);
	for (int last = 0; last < 2 && rc == 0; last++) {
		int64_t from = last ? length - rows : 0;
		rc = neap__step_values(set, index, from, from + rows, values);
		if (rc == 0)
			XXH3_64bits_update(hash, values, (size_t)(rows * inputs) * sizeof *values);
	}
	free(values);
	return rc;
}

static int hash_sample(XXH3_state_t *hash, struct neap_dataset *set, int64_t index)
{
	struct neap_events events;
	struct neap__sample_extent extent;

	if (set->ops->values)
		return hash_values(hash, set, index);
	if (set->ops->part) {
		NEAP_TRY(neap__dataset_extent(set, index, 0, &extent));
		if (extent.count > HASHED_WHOLE)
			return hash_parts(hash, set, index, &extent);
	}
	NEAP_TRY(neap_dataset_read(set, index, &events));
	XXH3_64bits_update(hash, &events.count, sizeof events.count);
	if (events.count > 0) {
		size_t n = (size_t)events.count;
		XXH3_64bits_update(hash, events.time, n * sizeof *events.time);
		XXH3_64bits_update(hash, events.unit, n * sizeof *events.unit);
	}
	neap_events_free(&events);
	return 0;
}

/* Hashes all labels and speakers and the events of some samples, to tell data sets apart. */
int neap__data_fingerprint(uint64_t *fingerprint, struct neap_dataset *set)
{
	const struct neap_dataset_info *info = &set->info;
	const int64_t samples = info->samples, probes = samples < 32 ? samples : 32;
	int64_t numbers[5] = {samples, info->inputs, info->classes, info->speakers, info->events};
	XXH3_state_t *hash = XXH3_createState();
	int rc = 0;

	if (!hash)
		return neap__fail_errno(ENOMEM, "%s", info->name);
	XXH3_64bits_reset(hash);
	XXH3_64bits_update(hash, numbers, sizeof numbers);
	for (int64_t i = 0; i < samples; i++) {
		int pair[2] = {neap_dataset_label(set, i), neap_dataset_speaker(set, i)};
		XXH3_64bits_update(hash, pair, sizeof pair);
	}
	for (int64_t i = 0; i < probes && rc == 0; i++)
		rc = hash_sample(hash, set, i * (samples - 1) / (probes > 1 ? probes - 1 : 1));
	*fingerprint = XXH3_64bits_digest(hash);
	XXH3_freeState(hash);
	return rc;
}
