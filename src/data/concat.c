/* SPDX-License-Identifier: Apache-2.0 */
/* concat.c: cuts and joins events at the ends of samples. */
#include "data/concat.h"
#include "base/fail.h"

#include <math.h>

/* Begins a sample; an unfinished one is dropped. */
static void begin(struct neap__concat *c, int label, int speaker)
{
	struct neap_events *sample = &c->sample.events;
	c->left += sample->duration;
	sample->count = 0;
	sample->duration = 0;
	sample->label = label;
	sample->speaker = speaker;
}

/* Appends events from the i-th on up to the end of the sample; leaves *i at the first event after.
 */
static int append(struct neap__concat *c, const struct neap_events *e, int64_t *i, double offset)
{
	struct neap_events *sample = &c->sample.events;
	NEAP_TRY(neap__event_buffer_grow(&c->sample, sample->count + e->count - *i));
	for (; *i < e->count && offset + e->time[*i] < c->seconds; ++*i) {
		sample->time[sample->count] = fmax(offset + e->time[*i], 0); /* rounding */
		sample->unit[sample->count++] = e->unit[*i];
	}
	return 0;
}

int neap__concat_add(struct neap__concat *c, const struct neap_events *events)
{
	struct neap_events *sample = &c->sample.events;
	double taken = 0; /* seconds of the recording that are in samples */
	int64_t i = 0;

	if (c->seconds <= 0) {
		c->written++;
		return neap_shd_add(c->writer, events);
	}
	if (sample->duration <= 0 || events->label != sample->label ||
		events->speaker != sample->speaker)
		begin(c, events->label, events->speaker);
	while (events->duration > taken) {
		double offset = sample->duration - taken, rest = events->duration - taken;
		NEAP_TRY(append(c, events, &i, offset));
		if (sample->duration + rest < c->seconds) {
			sample->duration += rest;
			break;
		}
		taken += c->seconds - sample->duration;
		sample->duration = c->seconds;
		NEAP_TRY(neap_shd_add(c->writer, sample));
		c->written++;
		sample->duration = 0;
		begin(c, events->label, events->speaker);
	}
	return 0;
}

void neap__concat_end(struct neap__concat *c)
{
	c->left += c->sample.events.duration;
	neap__event_buffer_free(&c->sample);
}
