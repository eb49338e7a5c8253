/* SPDX-License-Identifier: Apache-2.0 */
/* late_events.c: looks at the beginnings of samples, in memory that does not grow with them
 * (late_events.h). */
#include "data/events/late_events.h"
#include "base/print.h"
#include "base/show.h"

#include <math.h>
#include <unistd.h>

enum { SAMPLES = 20, EVENTS = 4096 /* that are read of each, at most; chosen */ };
/* Seconds. Chosen, as for recordings that are encoded (event_doubts.c): real ones begin earlier. */
static const double LATE = 0.1;

/* 1: spikes that a file lists; rows, characters and sounds begin at 0. */
static int has_times(const struct neap_dataset *set)
{
	return set->ops->part && set->ops->extent && !set->ops->values && !set->ops->adopt &&
	       !set->coded && !set->encoder.size && set->name && access(set->name, F_OK) == 0;
}

/* The first spike of sample `index` in the first half of its duration; INFINITY: there is
 * none; 0 if there are many; NaN if the sample has none at all or cannot be read. */
static double first_spike(struct neap_dataset *set, int64_t index, double *duration,
	struct neap__event_buffer *buffer)
{
	struct neap__sample_extent extent = {0};
	double first = INFINITY;

	if (neap__dataset_extent(set, index, 0, &extent) < 0 || extent.count == 0)
		return NAN;
	*duration = extent.duration;
	double until = extent.duration / 2;
	int rc = neap__dataset_part(set, index, 0, until, EVENTS, buffer);
	if (rc != 0)
		return rc < 0 ? NAN : 0;
	for (int64_t k = 0; k < buffer->events.count; k++)
		if (buffer->events.time[k] < until) /* a part may have some around it */
			first = fmin(first, buffer->events.time[k]);
	return first;
}

int neap__begin_late(struct neap_dataset *set)
{
	struct neap__event_buffer buffer = {0};
	double duration = 0;
	int late = 0, found = 0;

	for (int64_t i = 0; has_times(set) && i < set->info.samples && i < SAMPLES; i++) {
		double first = first_spike(set, i, &duration, &buffer);
		found += !isnan(first);
		late += isinf(first) && duration > 2 * LATE;
	}
	neap__event_buffer_free(&buffer);
	return 2 * late > found;
}

int neap__begin_behind_0(struct neap_dataset *set)
{
	struct neap__event_buffer buffer = {0};
	double duration = 0;
	int behind = 0;

	for (int64_t i = 0; has_times(set) && i < set->info.samples && i < SAMPLES; i++)
		behind |= first_spike(set, i, &duration, &buffer) > 0;
	neap__event_buffer_free(&buffer);
	return behind;
}

int neap__late_doubt(char line[NEAP__TAKEN_TEXT], struct neap_dataset *set, int of_model)
{
	char lasts[24];

	if (!neap__begin_late(set))
		return 0;
	neap__print(line, NEAP__TAKEN_TEXT,
		"warning: the samples of '%.200s' last up to %s, but have no spike in the first "
		"half: their times do not begin at 0, and the steps in front of them are empty. "
		"%s%s",
		set->name, neap__show_time(lasts, set->info.duration),
		set->from_first
			? "--crop or --polarity of encode left out the first events: remove these "
			  "events from the recordings"
		: set->has_time_unit
			? "Encode the recordings once more with --from-first-event"
			: "Subtract the first time of each sample from its times in spikes/times",
		of_model && !set->from_first ? ", unless the training data is as late" : "");
	return 1;
}
