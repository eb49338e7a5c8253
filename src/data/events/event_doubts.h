/* SPDX-License-Identifier: Apache-2.0 */
/*
 * event_doubts.h: what the times of recordings of events show that is probably a mistake: a unit
 * that differs, times that do not start at 0, and recordings without events.
 */
#ifndef NEAP_DATA_EVENTS_EVENT_DOUBTS_H
#define NEAP_DATA_EVENTS_EVENT_DOUBTS_H

#include "data/data_doubts.h"
#include "data/events/event_source.h"

/* All zero to begin with. */
struct neap__event_doubts {
	struct neap__first_names empty; /* without events after crop and polarity */
	double before, within;		/* seconds in front of first events, and from them on */
	double latest, length;		/* first event that is latest, seconds in that sample */
	char late[100];			/* name of that sample */
	int64_t events, belated;	/* of all; samples that begin late */
};

/* Takes note of a sample, whose events are sorted by time. */
void neap__event_doubts_see(
	struct neap__event_doubts *doubts, const struct neap_events *events, const char *name);
/* Calls options->doubt with at most one line of each kind. `path` is what is encoded. */
void neap__event_doubts_tell(const struct neap__event_doubts *doubts,
	const struct neap__event_source *source, const struct neap_event_options *options,
	const struct neap_event_report *report, const char *path);

/*
 * Python that leaves out events whose time is not finite, behind ": ", in the .npz file `path` or
 * in all of the folder, if it is not NULL; "" if there is none. `time` is the name of the array,
 * which no offsets divide.
 */
#define NEAP__FINITE_TEXT 520
const char *neap__event_finite(
	char room[NEAP__FINITE_TEXT], const char *path, const char *folder, const char *time);

#endif
