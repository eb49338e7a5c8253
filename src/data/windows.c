/* SPDX-License-Identifier: Apache-2.0 */
/*
 * windows.c: windows of a long batch in four frames of one size: the window in use, the next one
 * in the direction of the sweep, and two earlier ones, which a sweep that turns or recomputes
 * needs again. A window begins at a multiple of its width. A window whose events do not fit its
 * frame is halved, so its bounds are a function of data and options alone. The caller's thread
 * decides which window is read into which frame; one background thread reads, and owns a frame
 * from the request to the end of the wait for it.
 */
#include "data/windows.h"
#include "data/bins.h"
#include "data/step_rows.h"
#include "base/fail.h"
#include "sys/clock.h"
#include "sys/pool.h"
#include "sys/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FRAMES = 4, NARROW = 64, WIDE = 16384 };

struct frame {
	int64_t asked;	/* the step it is read for */
	int64_t ticket; /* -1: not being read */
	int ready;
	int64_t from, to;
	uint64_t used;			/* when */
	double seconds;			/* of a processor that reading it took */
	struct neap_sequence *sequence; /* [batch] */
	uint32_t *start;		/* [batch * (wide + 1)] of spikes */
	uint16_t *unit;			/* [units] of spikes */
	float *values, *series;		/* [batch * wide * inputs], [batch * wide * classes] */
	int32_t *labels;		/* [batch * wide] */
};

struct neap_windows {
	struct neap__windows_options options;
	struct neap__worker *worker;
	int64_t wide; /* steps of a window, a power of two times 64 */
	size_t units; /* spikes a frame has room for */
	size_t most;  /* events of one sample and window */
	uint64_t bytes;

	/* Of the batch bound. */
	const struct neap_sequence *sequences;
	int size;
	int64_t steps;

	struct frame frame[FRAMES];
	struct frame *held; /* by the caller */
	int down;	    /* 1: the sweep goes to earlier steps */
	uint64_t clock;
	double waited;
	double read_seconds; /* of a processor, of all windows read */
	int64_t read_steps;

	/* The reader's. */
	struct neap__event_buffer events;
	struct neap__bins bins;
	struct neap__processor_loan loan;
};

/* Bytes that reading one event of a sample takes, beside the frames. */
#define EVENT_BYTES                                                                                \
	(sizeof(double) + 2 * sizeof(uint16_t) + 2 * sizeof(uint32_t) + 2 * sizeof(uint16_t))

/* Bytes that reading numbers takes, beside the frames. */
static uint64_t bytes_of_rows(const struct neap_dataset *set)
{
	return set->read_bytes +
	       sizeof(double) * (uint64_t)(NEAP__PIECE_NUMBERS + neap__features(set));
}

/* Chooses the widest windows of values and targets that the bound on memory allows. */
static int share_values(struct neap_windows *w, uint64_t row)
{
	const struct neap__windows_options *o = &w->options;
	uint64_t reading = bytes_of_rows(o->set);

	for (w->wide = WIDE;; w->wide /= 2) {
		uint64_t sample = (uint64_t)w->wide * row + sizeof(struct neap_sequence);
		w->bytes = FRAMES * (uint64_t)o->batch * sample + reading;
		if (w->bytes <= o->bytes || w->wide == NARROW)
			break;
	}
	if (w->bytes <= o->bytes)
		return 0;
	return neap__fail(NEAP_EUSAGE,
		"--inputs of %llu bytes is too small for windows of %d samples. Use at least %llu "
		"bytes",
		(unsigned long long)o->bytes, o->batch, (unsigned long long)w->bytes);
}

/*
 * Chooses the widest windows whose arrays of starts take at most a quarter of the bound on
 * memory. The rest is for events: of the frames, and of the sample that is being read.
 */
static int share_out(struct neap_windows *w)
{
	const struct neap__windows_options *o = &w->options;
	uint64_t batch = (uint64_t)o->batch, fixed = 0, row = neap__step_bytes(o->set);
	uint64_t reading = o->set->coded ? bytes_of_rows(o->set) : 0;

	if (o->set->info.values)
		return share_values(w, row);
	for (w->wide = WIDE;; w->wide /= 2) {
		uint64_t steps = (uint64_t)w->wide + 1;
		/* Room grows by a quarter and 64 more than asked for (bins.c). */
		fixed = FRAMES * batch *
				(steps * (sizeof(uint32_t) + row) + sizeof(struct neap_sequence)) +
			(steps * 5 / 4 + 64) * sizeof(uint32_t) +
			(uint64_t)o->inputs * 5 / 4 * sizeof(uint32_t) + 4096 + reading;
		if (fixed <= o->bytes / 4 || w->wide == NARROW)
			break;
	}
	uint64_t share = batch < 8 ? batch : 8;
	uint64_t one = FRAMES * sizeof(uint16_t) + (EVENT_BYTES * 5 / 4 + 1) / share;
	uint64_t left = o->bytes > fixed ? o->bytes - fixed : 0;
	w->units = (size_t)(left / one);
	w->most = w->units / share;
	if (w->most < 64)
		return neap__fail(NEAP_EUSAGE,
			"--inputs of %llu bytes is too small for windows of %d samples. Use at "
			"least %llu bytes",
			(unsigned long long)o->bytes, o->batch,
			(unsigned long long)(fixed + 64 * share * one));
	w->bytes = fixed + w->units * one;
	return 0;
}

enum { FITS, TOO_MANY };

/* Reads and augments the events of [from, to) seconds of a sample, and some around them. */
static int read_part(struct neap_windows *w, int64_t index, double from, double to)
{
	const struct neap__windows_options *o = &w->options;

	w->events.dt = o->augment ? 0 : o->dt;
	if (o->augment)
		neap__augment_reach(o->augment, index, &from, &to);
	int rc = neap__dataset_part(o->set, index, from, to, w->most, &w->events);
	if (rc == 0 && o->augment)
		neap__augment_apply(o->augment, index, &w->events.events);
	return rc;
}

/* Reads values and targets of steps [from, last) of sample i; labels are checked by their set. */
static int read_rows(struct neap_windows *w, struct frame *frame, int i, int64_t from, int64_t last)
{
	struct neap_dataset *set = w->options.set;
	struct neap_sequence *s = &frame->sequence[i];
	size_t at = (size_t)i * (size_t)w->wide;
	float *values = frame->values ? frame->values + at * (size_t)set->info.inputs : NULL;
	float *series = frame->series ? frame->series + at * (size_t)set->info.classes : NULL;
	int32_t *labels = frame->labels ? frame->labels + at : NULL;

	s->values = values;
	s->series = series;
	s->labels = labels;
	if (last <= from)
		return 0;
	if (values)
		NEAP_TRY(neap__step_values(set, s->index, from, last, values));
	return neap__step_targets(set, s->index, from, last, labels, series);
}

/* Reads [from, to) into a frame; TOO_MANY where it is not large enough. */
static int read_window(struct neap_windows *w, struct frame *frame, int64_t from, int64_t to)
{
	const struct neap__windows_options *o = &w->options;
	/* Steps begin a little earlier than their time says (bins.c). */
	double begin = ((double)from * (1 - 1e-6) - 0.01) * o->dt,
	       end = ((double)to + 0.01) * o->dt;
	size_t stride = (size_t)w->wide + 1, units = 0;

	for (int i = 0; i < w->size; i++) {
		struct neap_sequence *s = &frame->sequence[i];
		uint32_t *start = frame->start ? frame->start + (size_t)i * stride : NULL;
		*s = w->sequences[i];
		int64_t last = s->length < to ? s->length : to;
		NEAP_TRY(read_rows(w, frame, i, from, last));
		if (o->set->info.values)
			continue;
		s->start = start;
		s->unit = frame->unit + units;
		memset(start, 0, (size_t)(to - from + 1) * sizeof *start);
		if (last <= from)
			continue;
		int rc = read_part(w, s->index, begin, end);
		if (rc != 0)
			return rc < 0 ? rc : TOO_MANY;
		neap__bins_clear(&w->bins);
		NEAP_TRY(neap__bins_add_part(
			&w->bins, &w->events.events, o->inputs, o->dt, from, last));
		if (w->bins.units > w->units - units)
			return TOO_MANY;
		memcpy(start, w->bins.start, (size_t)(last - from + 1) * sizeof *start);
		for (int64_t t = last; t < to; t++)
			start[t + 1 - from] = start[last - from];
		memcpy(frame->unit + units, w->bins.unit, w->bins.units * sizeof *frame->unit);
		units += w->bins.units;
	}
	frame->from = from;
	frame->to = to;
	return FITS;
}

/* Reads the widest window around the step asked for that fits the frame. */
static int read_asked(struct neap_windows *w, struct frame *frame)
{
	for (int64_t wide = w->wide; wide >= NARROW; wide /= 2) {
		int64_t from = frame->asked / wide * wide;
		int64_t to = from + wide < w->steps ? from + wide : w->steps;
		int rc = read_window(w, frame, from, to);
		if (rc <= 0)
			return rc;
	}
	return neap__fail(NEAP_EFORMAT,
		"'%s': the events of steps %lld to %lld of a batch do not fit in windows of %llu "
		"bytes. Raise --inputs, or use a shorter --dt",
		w->options.set->name, (long long)(frame->asked / NARROW * NARROW),
		(long long)(frame->asked / NARROW * NARROW + NARROW),
		(unsigned long long)w->options.bytes);
}

static int run(void *self, const struct neap__job *job)
{
	struct neap_windows *w = self;
	struct frame *frame = &w->frame[job->kind];
	double start = neap__thread_seconds();

	neap__processor_loan_begin(&w->loan);
	int rc = read_asked(w, frame);
	neap__processor_loan_end(&w->loan);
	frame->seconds = neap__thread_seconds() - start;
	return rc;
}

static int make_frames(struct neap_windows *w)
{
	const struct neap_dataset_info *info = &w->options.set->info;
	size_t batch = (size_t)w->options.batch, steps = batch * (size_t)w->wide;
	int short_of = 0;

	for (int i = 0; i < FRAMES; i++) {
		struct frame *frame = &w->frame[i];
		frame->ticket = -1;
		frame->sequence = calloc(batch, sizeof *frame->sequence);
		short_of |= !frame->sequence;
		if (info->values) {
			frame->values = malloc(steps * (size_t)info->inputs * sizeof(float));
			short_of |= !frame->values;
		} else {
			frame->start = malloc(batch * ((size_t)w->wide + 1) * sizeof *frame->start);
			frame->unit = malloc(w->units * sizeof *frame->unit);
			short_of |= !frame->start || !frame->unit;
		}
		if (info->target == NEAP_TARGET_LABELS) {
			frame->labels = malloc(steps * sizeof *frame->labels);
			short_of |= !frame->labels;
		}
		if (info->target == NEAP_TARGET_SERIES) {
			frame->series = malloc(steps * (size_t)info->classes * sizeof(float));
			short_of |= !frame->series;
		}
	}
	if (short_of)
		return neap__fail_errno(ENOMEM, "windows of '%s'", w->options.set->name);
	return info->values ? 0 : neap__event_buffer_reserve(&w->events, w->most);
}

int neap__windows_create(struct neap_windows **out, const struct neap__windows_options *options)
{
	struct neap_windows *w = calloc(1, sizeof *w);
	*out = NULL;
	if (!w)
		return neap__fail_errno(ENOMEM, "windows of '%s'", options->set->name);
	w->options = *options;
	int rc = share_out(w);
	if (rc == 0)
		rc = make_frames(w);
	if (rc == 0)
		rc = neap__worker_create(&w->worker, FRAMES, run, w);
	if (rc < 0)
		neap__windows_free(w);
	else
		*out = w;
	return rc;
}

/* Waits until a frame is read; a failure leaves it empty. */
static int settle(struct neap_windows *w, struct frame *frame)
{
	if (frame->ticket < 0)
		return 0;
	int rc = neap__worker_wait(w->worker, frame->ticket);
	frame->ticket = -1;
	frame->ready = rc == 0;
	if (rc == 0) {
		w->read_seconds += frame->seconds;
		w->read_steps += frame->to - frame->from;
	}
	return rc;
}

void neap__windows_bind(
	struct neap_windows *w, const struct neap_sequence *sequences, int size, int64_t steps)
{
	for (int i = 0; i < FRAMES; i++) {
		(void)settle(w, &w->frame[i]);
		w->frame[i].ready = 0;
	}
	w->sequences = sequences;
	w->size = size;
	w->steps = steps;
	w->held = NULL;
	w->down = 0;
}

void neap__windows_free(struct neap_windows *w)
{
	if (!w)
		return;
	neap__worker_free(w->worker);
	for (int i = 0; i < FRAMES; i++) {
		free(w->frame[i].sequence);
		free(w->frame[i].start);
		free(w->frame[i].unit);
		free(w->frame[i].values);
		free(w->frame[i].labels);
		free(w->frame[i].series);
	}
	neap__event_buffer_free(&w->events);
	neap__bins_free(&w->bins);
	free(w);
}

uint64_t neap__windows_bytes(const struct neap_windows *w)
{
	return w->bytes;
}

void neap__windows_settle(struct neap_windows *w)
{
	for (int i = 0; i < FRAMES; i++)
		(void)settle(w, &w->frame[i]);
}

double neap__windows_cost(const struct neap_windows *w)
{
	return w->read_steps > 0 ? w->read_seconds / (double)w->read_steps : 0;
}

int64_t neap__windows_read(const struct neap_windows *w)
{
	return w->read_steps;
}

int64_t neap__windows_held(const struct neap_windows *w)
{
	return FRAMES * w->wide;
}

double neap_windows_waited(const struct neap_windows *w)
{
	if (!w)
		return 0;
	return w->waited;
}

int64_t neap_windows_steps(const struct neap_windows *w)
{
	if (!w)
		return 0;
	return w->wide;
}

static struct frame *find(struct neap_windows *w, int64_t t)
{
	for (int i = 0; i < FRAMES; i++) {
		struct frame *frame = &w->frame[i];
		if (frame->ready && frame->from <= t && t < frame->to)
			return frame;
	}
	return NULL;
}

/*
 * 1 if a frame is being filled with the window of step t. A window that is halved may turn out to
 * end before t: a later call requests the rest.
 */
static int is_filled_with(const struct neap_windows *w, const struct frame *frame, int64_t t)
{
	return frame->ticket >= 0 && frame->asked / w->wide == t / w->wide;
}

/* Requests the window of step t, into the frame used longest ago, unless a frame has it or is
 * being filled with it. */
static int fetch(struct neap_windows *w, int64_t t)
{
	struct frame *oldest = NULL;

	if (t < 0 || t >= w->steps || find(w, t))
		return 0;
	for (int i = 0; i < FRAMES; i++) {
		struct frame *frame = &w->frame[i];
		if (is_filled_with(w, frame, t))
			return 0;
		if (frame->ticket < 0 && frame != w->held &&
			(!oldest || !frame->ready || (oldest->ready && frame->used < oldest->used)))
			oldest = frame;
	}
	if (!oldest)
		return 0; /* all frames are being read: a later call requests it */
	struct neap__job job = {.kind = (int)(oldest - w->frame)};
	oldest->ready = 0;
	oldest->asked = t;
	oldest->used = w->clock;
	int rc = neap__worker_post(w->worker, &job, &oldest->ticket);
	if (rc < 0)
		oldest->ticket = -1;
	return rc;
}

/* Finds the frame that holds step t; waits for it, or reads it now. */
static int obtain(struct neap_windows *w, int64_t t, struct frame **out)
{
	double start;

	if ((*out = find(w, t)) != NULL)
		return 0;
	start = neap__seconds();
	w->held = NULL;
	for (int i = 0; i < FRAMES && !*out; i++) { /* it may be being read */
		(void)settle(w, &w->frame[i]);
		*out = find(w, t);
	}
	if (!*out) {
		NEAP_TRY(fetch(w, t));
		for (int i = 0; i < FRAMES; i++)
			NEAP_TRY(settle(w, &w->frame[i]));
		*out = find(w, t);
	}
	w->waited += neap__seconds() - start;
	return *out ? 0 : neap__fail(NEAP_EMODEL, "window of step %lld", (long long)t);
}

int neap_windows_take(struct neap_windows *w, int64_t t, struct neap_window *window)
{
	NEAP_NEED(w, window);
	struct frame *frame, *before = w->held;
	int64_t from = before ? before->from : 0;

	if (t < 0 || t >= w->steps)
		return neap__fail(
			NEAP_EUSAGE, "step %lld of %lld", (long long)t, (long long)w->steps);
	NEAP_TRY(obtain(w, t, &frame));
	if (before && frame->from != from)
		w->down = frame->from < from;
	w->held = frame;
	frame->used = ++w->clock;
	*window = (struct neap_window){frame->from, frame->to, frame->sequence};
	return fetch(w, w->down ? frame->from - 1 : frame->to);
}

void neap_windows_expect(struct neap_windows *w, int64_t t0, int64_t t1)
{
	if (!w)
		return;
	/* A sweep jumps to the start of a range and reaches its end step by step. */
	if (t0 < t1)
		(void)fetch(w, t0);
}
