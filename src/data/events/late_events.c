/* SPDX-License-Identifier: Apache-2.0 */
/* late_events.c: looks at the first spikes of samples (late_events.h). */
#include "data/events/late_events.h"
#include "base/print.h"
#include "base/show.h"

enum { SAMPLES = 20 /* that are read; chosen */ };
/* Seconds in front of the first spike. Chosen, as for recordings that are encoded
 * (events/event_doubts.c): real ones begin earlier. */
static const double LATE = 0.1;

/* Counts the samples with spikes among the first ones, and those that begin late or not at 0;
 * `latest`: the last beginning. */
static int64_t look(struct neap_dataset *set, int64_t *late, int64_t *behind, double *latest)
{
	struct neap_events events = {0};
	int64_t found = 0;

	*late = *behind = 0;
	*latest = 0;
	if (set->ops->values || set->ops->adopt || set->coded || set->encoder.size)
		return 0; /* rows, characters and sounds begin at 0 */
	for (int64_t i = 0; i < set->info.samples && i < SAMPLES; i++) {
		if (neap_dataset_read(set, i, &events) < 0)
			continue;
		double first = events.count ? events.time[0] : 0;
		found += events.count > 0;
		*behind += first > 0;
		*late += first > LATE && first > events.duration - first;
		*latest = first > *latest ? first : *latest;
		neap_events_free(&events);
	}
	return found;
}

int neap__begin_late(struct neap_dataset *set)
{
	int64_t late, behind;
	double latest;
	int64_t found = look(set, &late, &behind, &latest);
	return 2 * late > found;
}

int neap__begin_behind_0(struct neap_dataset *set)
{
	int64_t late, behind;
	double latest;
	return look(set, &late, &behind, &latest) > 0 && behind > 0;
}

int neap__late_doubt(char line[NEAP__TAKEN_TEXT], struct neap_dataset *set)
{
	char first[24], lasts[24];
	int64_t late, behind;
	double latest;
	int64_t found = look(set, &late, &behind, &latest);

	if (!(2 * late > found))
		return 0;
	neap__print(line, NEAP__TAKEN_TEXT,
		"warning: the samples of '%.200s' have no spike until %s (the longest lasts %s): "
		"their times do not begin at 0, and the steps in front of them are empty. %s",
		set->name, neap__show_time(first, latest),
		neap__show_time(lasts, set->info.duration),
		set->has_time_unit
			? "Encode the recordings once more with --from-first-event"
			: "Subtract the first time of each sample from its times in spikes/times");
	return 1;
}
