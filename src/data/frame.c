/* SPDX-License-Identifier: Apache-2.0 */
/* frame.c: reads the samples of a batch, or describes those of a long one. */
#include "data/frame.h"
#include "data/step_rows.h"
#include "base/checked.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>

int neap__batch_frame_init(struct neap__batch_frame *frame, const struct neap__source *source)
{
	frame->sequence = calloc((size_t)source->batch, sizeof *frame->sequence);
	return frame->sequence ? 0 : neap__fail_errno(ENOMEM, "loading '%s'", source->set->name);
}

static void free_rows(struct neap__step_store *rows)
{
	free(rows->values);
	free(rows->labels);
	free(rows->series);
	*rows = (struct neap__step_store){0};
}

/* Makes room for so many steps of a batch; what was there is lost where there was too little. */
static int make_rows(struct neap__step_store *rows, const struct neap_dataset *set, int64_t steps)
{
	const struct neap_dataset_info *info = &set->info;
	size_t n = (size_t)steps, bytes;

	if (steps <= rows->room)
		return 0;
	free_rows(rows);
	if (neap__mul_size(&bytes, n, neap__step_bytes(set)) < 0)
		return neap__fail(NEAP_EOVERFLOW, "'%s': a batch of %zu steps", set->name, n);
	if (info->values)
		rows->values = malloc(n * (size_t)info->inputs * sizeof *rows->values);
	if (info->target == NEAP_TARGET_LABELS)
		rows->labels = malloc(n * sizeof *rows->labels);
	if (info->target == NEAP_TARGET_SERIES)
		rows->series = malloc(n * (size_t)info->classes * sizeof *rows->series);
	if ((info->values && !rows->values) ||
		(info->target == NEAP_TARGET_LABELS && !rows->labels) ||
		(info->target == NEAP_TARGET_SERIES && !rows->series))
		return neap__fail_errno(ENOMEM, "'%s': a batch of %zu steps", set->name, n);
	rows->room = steps;
	return 0;
}

void neap__batch_frame_free(struct neap__batch_frame *frame)
{
	free(frame->sequence);
	neap__bins_free(&frame->bins);
	free_rows(&frame->rows);
}

static int cancelled(const struct neap__source *source)
{
	return __atomic_load_n(source->cancel, __ATOMIC_RELAXED);
}

static int fail_sample(const struct neap__source *source, int64_t index, int rc)
{
	return neap__fail_in(rc, "'%s': sample %lld: ", source->set->name, (long long)index);
}

int neap__sample_size(const struct neap__source *source, int64_t index, int prepare,
	struct neap__sample_extent *e, int64_t *length)
{
	if (source->set->info.values) {
		*e = (struct neap__sample_extent){0};
		*length = neap__steps_of(source->set, index, source->steps);
		return 0;
	}
	NEAP_TRY(neap__dataset_extent(source->set, index, prepare, e));
	if (source->augment)
		neap__augment_extent(source->augment, index, e);
	int rc = neap__bins_length(
		e->duration, e->count, e->last, source->dt, source->steps, length);
	return rc < 0 ? fail_sample(source, index, rc) : 0;
}

/* The label of a sample, and its numbers where these are the target. */
static void name_targets(const struct neap_dataset *set, struct neap_sequence *s)
{
	s->label = neap_dataset_label(set, s->index);
	s->target = set->numbers ? set->numbers + s->index * set->info.classes : NULL;
}

/* Sets length and label of a sample without reading it; adds the bytes that it takes whole. */
static int describe(const struct neap__source *source, struct neap_sequence *s, int64_t index,
	int prepare, double *bytes)
{
	struct neap__sample_extent e;
	NEAP_TRY(neap__sample_size(source, index, prepare, &e, &s->length));
	int64_t length = s->length;
	*s = (struct neap_sequence){.length = length, .index = index, .counted = length};
	name_targets(source->set, s);
	if (prepare)
		NEAP_TRY(neap__step_count(source->set, index, length, &s->counted));
	*bytes += (double)length * (double)neap__step_bytes(source->set);
	if (!source->set->info.values)
		*bytes +=
			(double)(length + 1) * sizeof *s->start + (double)e.count * sizeof *s->unit;
	return 0;
}

/* Returns 1 where the batch is too long to be held whole; its samples are described and checked. */
static int long_batch(struct neap__batch_frame *frame, const struct neap__source *source,
	const int64_t *index, int size)
{
	double bytes = 0;
	frame->is_long = 0;
	if (!source->set->ops->part && !source->set->ops->values)
		return 0;
	for (int i = 0; i < size; i++)
		NEAP_TRY(describe(source, &frame->sequence[i], index[i], 0, &bytes));
	if (bytes <= (double)source->whole_bytes)
		return 0;
	frame->is_long = 1;
	for (int i = 0; i < size; i++) {
		if (cancelled(source))
			return NEAP_EINTERRUPTED;
		NEAP_TRY(describe(source, &frame->sequence[i], index[i], 1, &bytes));
	}
	return 1;
}

static int64_t longest(const struct neap__batch_frame *frame, int size)
{
	int64_t steps = 0;
	for (int i = 0; i < size; i++)
		if (frame->sequence[i].length > steps)
			steps = frame->sequence[i].length;
	return steps;
}

/* The length follows from the augmented extent; events that move beyond it are dropped. */
static int add_augmented(struct neap__batch_frame *frame, const struct neap__source *source,
	struct neap_sequence *s, int64_t index)
{
	struct neap_events *events = &source->events->events;
	int64_t n = events->count;
	struct neap__sample_extent e = {n, events->duration, n > 0 ? events->time[n - 1] : 0};

	neap__augment_extent(source->augment, index, &e);
	NEAP_TRY(neap__bins_length(
		e.duration, e.count, e.last, source->dt, source->steps, &s->length));
	neap__augment_apply(source->augment, index, events);
	return neap__bins_add_part(&frame->bins, events, source->inputs, source->dt, 0, s->length);
}

/* Reads one sample and appends its bins. */
static int add_sample(struct neap__batch_frame *frame, const struct neap__source *source,
	struct neap_sequence *s, int64_t index)
{
	struct neap_events *events = &source->events->events;

	source->events->dt = source->augment ? 0 : source->dt;
	NEAP_TRY(neap__dataset_read(source->set, index, source->events));
	int rc = source->augment ? add_augmented(frame, source, s, index)
				 : neap__bins_add(&frame->bins, events, source->inputs, source->dt,
					   source->steps, &s->length);
	if (rc < 0)
		return fail_sample(source, index, rc);
	int64_t length = s->length;
	*s = (struct neap_sequence){.length = length, .index = index, .counted = length};
	name_targets(source->set, s);
	return 0;
}

/* Reads values and targets of the steps of all samples, whose lengths are known. */
static int add_rows(struct neap__batch_frame *frame, const struct neap__source *source, int size)
{
	struct neap_dataset *set = source->set;
	const struct neap_dataset_info *info = &set->info;
	int64_t at = 0;

	for (int i = 0; i < size; i++)
		at += frame->sequence[i].length;
	NEAP_TRY(make_rows(&frame->rows, set, at));
	at = 0;
	for (int i = 0; i < size; i++) {
		struct neap_sequence *s = &frame->sequence[i];
		if (cancelled(source))
			return NEAP_EINTERRUPTED;
		float *values = info->values ? frame->rows.values + at * info->inputs : NULL;
		int32_t *labels = frame->rows.labels ? frame->rows.labels + at : NULL;
		float *series = frame->rows.series ? frame->rows.series + at * info->classes : NULL;
		if (values)
			NEAP_TRY(neap__step_values(set, s->index, 0, s->length, values));
		NEAP_TRY(neap__step_targets(set, s->index, 0, s->length, labels, series));
		s->values = values;
		s->labels = labels;
		s->series = series;
		if (neap__has_step_targets(set))
			s->counted = neap__count_targets(set, labels, series, s->length);
		at += s->length;
	}
	return 0;
}

/* Fills a frame whose inputs are values; lengths are those that long_batch described. */
static int fill_values(struct neap__batch_frame *frame, const struct neap__source *source, int size)
{
	NEAP_TRY(add_rows(frame, source, size));
	frame->batch.steps = longest(frame, size);
	frame->batch.bytes = (size_t)frame->rows.room * neap__step_bytes(source->set) +
			     (size_t)source->batch * sizeof *frame->sequence;
	return 0;
}

/* Sets the pointers of all samples, once the arrays grow no more. */
static void point(struct neap__batch_frame *frame, int size)
{
	size_t at = 0;
	for (int i = 0; i < size; i++) {
		struct neap_sequence *s = &frame->sequence[i];
		s->start = frame->bins.start + at;
		s->unit = frame->bins.unit + frame->bins.first[i];
		at += (size_t)s->length + 1;
	}
}

int neap__batch_frame_fill(struct neap__batch_frame *frame, const struct neap__source *source,
	const int64_t *index, int size)
{
	neap__bins_clear(&frame->bins);
	int is_long = long_batch(frame, source, index, size);
	NEAP_TRY(is_long);
	frame->batch = (struct neap_batch){.size = size,
		.inputs = source->inputs,
		.sequences = frame->sequence,
		.values = source->set->info.values,
		.target = source->set->info.target};
	if (is_long) {
		frame->batch.steps = longest(frame, size);
		return 0;
	}
	if (source->set->info.values)
		return fill_values(frame, source, size);
	for (int i = 0; i < size; i++) {
		if (cancelled(source))
			return NEAP_EINTERRUPTED;
		NEAP_TRY(add_sample(frame, source, &frame->sequence[i], index[i]));
	}
	point(frame, size);
	if (neap__has_step_targets(source->set))
		NEAP_TRY(add_rows(frame, source, size));
	frame->batch.steps = longest(frame, size);
	frame->batch.bytes = neap__bins_bytes(&frame->bins) +
			     (size_t)frame->rows.room * neap__step_bytes(source->set) +
			     (size_t)source->batch * sizeof *frame->sequence;
	return 0;
}
