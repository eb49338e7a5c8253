/* SPDX-License-Identifier: Apache-2.0 */
/* raw_events.c: the events of a recording as its file has them (event_source.h), which grow. */
#include "data/events/event_source.h"
#include "base/fail.h"
#include "base/grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int neap__raw_events_grow(struct neap__raw_events *events, int64_t count)
{
	int64_t time = events->room, x = time, y = time, p = time;
	if (neap__grow(&events->time, &time, count, sizeof *events->time) < 0 ||
		neap__grow(&events->x, &x, count, sizeof *events->x) < 0 ||
		neap__grow(&events->y, &y, count, sizeof *events->y) < 0 ||
		neap__grow(&events->p, &p, count, sizeof *events->p) < 0)
		return neap__fail_errno(ENOMEM, "room for %lld events", (long long)count);
	events->room = time;
	return 0;
}

int neap__raw_events_add(
	struct neap__raw_events *events, double time, int x, int y, unsigned polarity)
{
	if (!(time <= NEAP__EVENTS_LONGEST))
		return neap__fail(NEAP_EFORMAT,
			"event %lld is %g s after the start, but a recording may last %g s; the "
			"file may be damaged. Replace it with an intact copy",
			(long long)events->count, time, NEAP__EVENTS_LONGEST);
	NEAP_TRY(neap__raw_events_grow(events, events->count + 1));
	int64_t n = events->count++;
	events->time[n] = time;
	events->x[n] = x;
	events->y[n] = y;
	events->p[n] = polarity != 0;
	return 0;
}

void neap__raw_events_free(struct neap__raw_events *events)
{
	free(events->time);
	free(events->x);
	free(events->y);
	free(events->p);
	memset(events, 0, sizeof *events);
}
