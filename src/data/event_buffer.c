/* SPDX-License-Identifier: Apache-2.0 */
/* event_buffer.c: the events of a sample (dataset.h): memory that grows, and their order in time.
 */
#include "data/dataset.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/grow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int neap__event_buffer_reserve(struct neap__event_buffer *buffer, size_t count)
{
	if (buffer->room > 0 && count <= (size_t)buffer->room)
		return 0;
	size_t room = count + count / 4 + 16, bytes;
	if (neap__mul_size(&bytes, room, sizeof(double)) < 0)
		return neap__fail(NEAP_EOVERFLOW, "%zu events are too many", count);
	double *time = malloc(bytes);
	uint16_t *unit = malloc(room * sizeof *unit);
	if (!time || !unit) {
		free(time);
		free(unit);
		return neap__fail_errno(ENOMEM, "room for %zu events", count);
	}
	free(buffer->events.time);
	free(buffer->events.unit);
	buffer->events.time = time;
	buffer->events.unit = unit;
	buffer->room = (int64_t)room;
	return 0;
}

int neap__event_buffer_grow(struct neap__event_buffer *buffer, int64_t count)
{
	int64_t times = buffer->room, units = buffer->room;
	if (neap__grow(&buffer->events.time, &times, count, sizeof *buffer->events.time) < 0 ||
		neap__grow(&buffer->events.unit, &units, count, sizeof *buffer->events.unit) < 0)
		return neap__fail_errno(ENOMEM, "room for %lld events", (long long)count);
	buffer->room = times;
	return 0;
}

void neap__event_buffer_free(struct neap__event_buffer *buffer)
{
	neap_events_free(&buffer->events);
	buffer->room = 0;
}

void neap_events_free(struct neap_events *events)
{
	if (!events)
		return;
	free(events->time);
	free(events->unit);
	memset(events, 0, sizeof *events);
}

struct event {
	double time;
	uint16_t unit;
};

static int by_time(const void *a, const void *b)
{
	const struct event *x = a, *y = b;
	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return (x->unit > y->unit) - (x->unit < y->unit);
}

int neap__events_sort(struct neap_events *events)
{
	int64_t n = events->count, i = 1;
	while (i < n && events->time[i - 1] <= events->time[i])
		i++;
	if (i >= n)
		return 0; /* most files are sorted already */
	struct event *all = malloc((size_t)n * sizeof *all);
	if (!all)
		return neap__fail_errno(ENOMEM, "sorting %lld events", (long long)n);
	for (i = 0; i < n; i++)
		all[i] = (struct event){events->time[i], events->unit[i]};
	qsort(all, (size_t)n, sizeof *all, by_time);
	for (i = 0; i < n; i++) {
		events->time[i] = all[i].time;
		events->unit[i] = all[i].unit;
	}
	free(all);
	return 0;
}
