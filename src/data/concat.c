/* SPDX-License-Identifier: Apache-2.0 */
#include "data/concat.h"
#include "base/fail.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

/* A sample begins; what there was of another is dropped. */
static void begin(struct neap__concat *c, int label, int speaker)
{
	c->left += c->sample.duration;
	c->sample.count = 0;
	c->sample.duration = 0;
	c->sample.label = label;
	c->sample.speaker = speaker;
}

static int reserve(struct neap__concat *c, int64_t more)
{
	int64_t want = c->sample.count + more;
	if (want <= c->room)
		return 0;
	size_t room = (size_t)want + (size_t)want / 2;
	double *time = realloc(c->sample.time, room * sizeof *time);
	c->sample.time = time ? time : c->sample.time;
	uint16_t *unit = realloc(c->sample.unit, room * sizeof *unit);
	c->sample.unit = unit ? unit : c->sample.unit;
	if (!time || !unit)
		return neap__fail_errno(ENOMEM, "a sample of %lld events", (long long)want);
	c->room = (int64_t)room;
	return 0;
}

/* Appends events from the i-th on, those before `seconds`; the first that was not. */
static int append(struct neap__concat *c, const struct neap_events *e, int64_t *i, double offset)
{
	NEAP_TRY(reserve(c, e->count - *i));
	for (; *i < e->count && offset + e->time[*i] < c->seconds; ++*i) {
		c->sample.time[c->sample.count] = fmax(offset + e->time[*i], 0); /* rounding */
		c->sample.unit[c->sample.count++] = e->unit[*i];
	}
	return 0;
}

int neap__concat_add(struct neap__concat *c, const struct neap_events *events)
{
	double taken = 0; /* seconds of the recording that are in samples */
	int64_t i = 0;

	if (c->seconds <= 0) {
		c->written++;
		return neap_shd_add(c->writer, events);
	}
	if (c->sample.duration <= 0 || events->label != c->sample.label ||
		events->speaker != c->sample.speaker)
		begin(c, events->label, events->speaker);
	while (events->duration > taken) {
		double offset = c->sample.duration - taken, rest = events->duration - taken;
		NEAP_TRY(append(c, events, &i, offset));
		if (c->sample.duration + rest < c->seconds) {
			c->sample.duration += rest;
			break;
		}
		taken += c->seconds - c->sample.duration;
		c->sample.duration = c->seconds;
		NEAP_TRY(neap_shd_add(c->writer, &c->sample));
		c->written++;
		c->sample.duration = 0;
		begin(c, events->label, events->speaker);
	}
	return 0;
}

void neap__concat_end(struct neap__concat *c)
{
	c->left += c->sample.duration;
	neap_events_free(&c->sample);
}
