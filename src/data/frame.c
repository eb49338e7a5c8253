/* SPDX-License-Identifier: Apache-2.0 */
/* frame.c: reads the samples of a batch, or describes those of a long one. */
#include "data/frame.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>

int neap__batch_frame_init(struct neap__batch_frame *frame, const struct neap__source *source)
{
	frame->sequence = calloc((size_t)source->batch, sizeof *frame->sequence);
	return frame->sequence ? 0 : neap__fail_errno(ENOMEM, "loading '%s'", source->set->name);
}

void neap__batch_frame_free(struct neap__batch_frame *frame)
{
	free(frame->sequence);
	neap__bins_free(&frame->bins);
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
	NEAP_TRY(neap__dataset_extent(source->set, index, prepare, e));
	if (source->augment)
		neap__augment_extent(source->augment, index, e);
	int rc = neap__bins_length(
		e->duration, e->count, e->last, source->dt, source->steps, length);
	return rc < 0 ? fail_sample(source, index, rc) : 0;
}

/* Sets length and label of a sample without reading it; adds the bytes that it takes whole. */
static int describe(const struct neap__source *source, struct neap_sequence *s, int64_t index,
	int prepare, double *bytes)
{
	struct neap__sample_extent e;
	NEAP_TRY(neap__sample_size(source, index, prepare, &e, &s->length));
	s->start = NULL;
	s->unit = NULL;
	s->target = NULL;
	s->label = neap_dataset_label(source->set, index);
	s->index = index;
	*bytes += (double)(s->length + 1) * sizeof *s->start + (double)e.count * sizeof *s->unit;
	return 0;
}

/* Returns 1 where the batch is too long to be held whole; its samples are described and checked. */
static int long_batch(struct neap__batch_frame *frame, const struct neap__source *source,
	const int64_t *index, int size)
{
	double bytes = 0;
	frame->is_long = 0;
	if (!source->set->ops->part)
		return 0;
	for (int i = 0; i < size; i++)
		NEAP_TRY(describe(source, &frame->sequence[i], index[i], 0, &bytes));
	if (bytes <= (double)source->window_bytes / 2)
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

	NEAP_TRY(neap__dataset_read(source->set, index, source->events));
	int rc = source->augment ? add_augmented(frame, source, s, index)
				 : neap__bins_add(&frame->bins, events, source->inputs, source->dt,
					   source->steps, &s->length);
	if (rc < 0)
		return fail_sample(source, index, rc);
	s->label = events->label;
	s->target = NULL;
	s->index = index;
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
	frame->batch = (struct neap_batch){
		.size = size, .inputs = source->inputs, .sequences = frame->sequence};
	if (is_long) {
		frame->batch.steps = longest(frame, size);
		return 0;
	}
	for (int i = 0; i < size; i++) {
		if (cancelled(source))
			return NEAP_EINTERRUPTED;
		NEAP_TRY(add_sample(frame, source, &frame->sequence[i], index[i]));
	}
	point(frame, size);
	frame->batch.steps = longest(frame, size);
	frame->batch.bytes =
		neap__bins_bytes(&frame->bins) + (size_t)source->batch * sizeof *frame->sequence;
	return 0;
}
