/* SPDX-License-Identifier: Apache-2.0 */
/* coded_rows.c: reads rows in pieces and gives their spikes as events (coded_rows.h). */
#include "data/coded_rows.h"
#include "data/bins.h"
#include "data/step_rows.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_CHANNELS = 65536, PIECE = 4096 /* numbers that are kept at a time */ };

struct neap__coded_rows {
	struct neap__coding coding;
	int64_t most;			       /* steps of a sample; 0: all */
	struct neap__dataset_ops ops;	       /* those of the format, but for events */
	const struct neap__dataset_ops *plain; /* those of the format */
	float *piece;			       /* rows [first, end) of one sample */
	int64_t first, end;
	float *now, *before; /* [features] */
	int8_t *spike;	     /* [features] */
};

static int64_t steps_of(const struct neap_dataset *set, int64_t index)
{
	return neap__steps_of(set, index, set->coded->most);
}

static int64_t period_of(const struct neap_dataset *set, int64_t index)
{
	int64_t period = (int64_t)set->coded->coding.values.period;
	return period > 0 ? period : steps_of(set, index);
}

static int64_t piece_rows(const struct neap_dataset *set)
{
	return set->features < PIECE ? PIECE / set->features : 1;
}

/* Copies a row to `to`; those before `last` are read along. */
static int copy_row(struct neap_dataset *set, int64_t index, int64_t row, int64_t last, float *to)
{
	struct neap__coded_rows *c = set->coded;
	size_t features = (size_t)set->features;

	if (row < c->first || row >= c->end) {
		int64_t most = piece_rows(set);
		c->first = row;
		c->end = row + 1 > last ? row + 1 : last - row < most ? last : row + most;
		int rc = neap__rows_read(set, index, row, c->end, c->piece);
		if (rc < 0)
			c->end = c->first;
		NEAP_TRY(rc);
	}
	memcpy(to, c->piece + (size_t)(row - c->first) * features, features * sizeof *to);
	return 0;
}

/* Adds the spikes of a step. 1 where there are more than `most`, which does not make room. */
static int add_spikes(const struct neap_dataset *set, int64_t step, size_t most,
	struct neap__event_buffer *buffer)
{
	struct neap_events *events = &buffer->events;

	for (int f = 0; f < set->features; f++) {
		int spike = set->coded->spike[f];
		if (!spike)
			continue;
		if (most > 0 && events->count == (int64_t)most)
			return 1;
		if (events->count == buffer->room)
			NEAP_TRY(neap__event_buffer_grow(buffer, events->count + 1));
		events->time[events->count] = (double)step + 0.5;
		events->unit[events->count++] = (uint16_t)(spike > 0 ? f : set->features + f);
	}
	return 0;
}

/* Gives the events of steps [from, to) of a sample; most 0: however many. */
static int code_steps(struct neap_dataset *set, int64_t index, int64_t from, int64_t to,
	size_t most, struct neap__event_buffer *buffer)
{
	struct neap__coded_rows *c = set->coded;
	const struct neap__coding_kind *kind = c->coding.kind;
	const struct neap__coding_values *values = &c->coding.values;
	int64_t period = period_of(set, index), at = -1, was = -1;
	int64_t last = kind->has_periods ? 0 : (to - 1) / set->repeat + 1;
	struct neap__coding_step s = {.sample = index, .features = set->features};

	c->first = c->end = 0;
	buffer->events.count = 0;
	buffer->events.duration = (double)steps_of(set, index);
	for (int64_t t = from; t < to; t++) {
		s.step = t;
		s.within = kind->has_periods ? t % period : 0;
		int64_t row = (t - s.within) / set->repeat;
		int64_t prior = t > 0 && kind->looks_back ? (t - 1) / set->repeat : -1;
		if (row != at) {
			float *swap = c->before;
			c->before = c->now;
			c->now = swap;
			was = at;
			at = row;
			if (prior >= 0 && prior != row && prior != was) {
				NEAP_TRY(copy_row(set, index, prior, last, c->before));
				was = prior;
			}
			NEAP_TRY(copy_row(set, index, row, last, c->now));
			if (kind->prepare)
				kind->prepare(values, period, set->features, c->now);
		}
		s.now = c->now;
		s.before = prior < 0 ? NULL : prior == at ? c->now : c->before;
		kind->spikes(values, &s, c->spike);
		int rc = add_spikes(set, t, most, buffer);
		if (rc != 0)
			return rc;
	}
	return 0;
}

static int coded_read(struct neap_dataset *set, int64_t index, struct neap__event_buffer *buffer)
{
	if (buffer->room == 0)
		NEAP_TRY(neap__event_buffer_reserve(buffer, 1));
	return code_steps(set, index, 0, steps_of(set, index), 0, buffer);
}

/* How many events there are is known once they are made: this is the most there can be. */
static int coded_extent(struct neap_dataset *set, int64_t index, struct neap__sample_extent *extent)
{
	int64_t steps = steps_of(set, index), rows = steps;

	if (set->coded->coding.kind->has_periods)
		rows = (steps - 1) / period_of(set, index) + 1;
	*extent = (struct neap__sample_extent){rows * set->features, (double)steps, 0};
	return 0;
}

static int coded_part(struct neap_dataset *set, int64_t index, double from, double to, size_t most,
	struct neap__event_buffer *buffer)
{
	int64_t steps = steps_of(set, index);
	int64_t first = neap__step_at(from, steps), last = neap__step_at(to, steps);

	NEAP_TRY(neap__event_buffer_reserve(buffer, most));
	return code_steps(set, index, first, last, most, buffer);
}

static void release(struct neap__coded_rows *c)
{
	if (!c)
		return;
	free(c->piece);
	free(c->now);
	free(c->before);
	free(c->spike);
	free(c);
}

static void coded_close(struct neap_dataset *set)
{
	struct neap__coded_rows *c = set->coded;

	c->plain->close(set);
	set->ops = c->plain;
	set->coded = NULL;
	release(c);
}

static int check(const struct neap_dataset *set, const struct neap__coding *coding)
{
	const struct neap_dataset_info *info = &set->info;
	double steps = (double)info->steps * coding->values.repeat;

	if (!set->ops->values || set->coded)
		return neap__fail(NEAP_EUSAGE,
			"--encode converts numbers into spikes, but the inputs of '%s' already are "
			"spikes. Remove --encode",
			set->name);
	if (info->inputs * neap__coding_channels(coding) > MOST_CHANNELS)
		return neap__fail(NEAP_EUSAGE,
			"--encode: '%s' has %d features, of which each becomes two channels, more "
			"than %d in total. Pass off=0 for one channel each",
			set->name, info->inputs, MOST_CHANNELS);
	if (coding->values.repeat > 1 && neap__has_step_targets(set))
		return neap__fail(NEAP_EUSAGE,
			"--encode: '%s' has targets per step, which repeat=%g would leave most "
			"steps without. Remove repeat",
			set->name, coding->values.repeat);
	if (steps > NEAP__MOST_STEPS)
		return neap__fail(NEAP_EUSAGE,
			"--encode: '%s' has %.15g steps with repeat=%g, more than %d. Use a "
			"smaller repeat, or --max-steps",
			set->name, steps, coding->values.repeat, NEAP__MOST_STEPS);
	return 0;
}

int neap__rows_encode(struct neap_dataset *set, const struct neap__coding *coding, int64_t most)
{
	struct neap_dataset_info *info = &set->info;

	if (!coding->kind)
		return 0;
	NEAP_TRY(check(set, coding));
	size_t features = (size_t)info->inputs;
	size_t piece = features > PIECE ? features : PIECE;
	struct neap__coded_rows *c = calloc(1, sizeof *c);
	if (c) {
		c->piece = malloc(piece * sizeof *c->piece);
		c->now = calloc(features, sizeof *c->now);
		c->before = calloc(features, sizeof *c->before);
		c->spike = calloc(features, sizeof *c->spike);
	}
	if (!c || !c->piece || !c->now || !c->before || !c->spike) {
		release(c);
		return neap__fail_errno(ENOMEM, "'%s'", set->name);
	}
	c->coding = *coding;
	c->most = most;
	c->plain = set->ops;
	c->ops = *set->ops;
	c->ops.read = coded_read;
	c->ops.extent = coded_extent;
	c->ops.part = coded_part;
	c->ops.prepare = NULL;
	c->ops.close = coded_close;
	set->ops = &c->ops;
	set->coded = c;
	set->features = info->inputs;
	set->repeat = (int64_t)coding->values.repeat;
	set->read_bytes += piece * sizeof *c->piece + features * (2 * sizeof(float) + 1);
	info->values = 0;
	info->inputs *= neap__coding_channels(coding);
	info->steps *= set->repeat;
	return 0;
}

struct neap__coding neap__rows_coding(const struct neap_dataset *set, int64_t *most)
{
	*most = set->coded ? set->coded->most : 0;
	return set->coded ? set->coded->coding : (struct neap__coding){.kind = NULL};
}
