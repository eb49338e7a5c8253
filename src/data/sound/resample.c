/* SPDX-License-Identifier: Apache-2.0 */
/* resample.c: one stage of libsamplerate, or two where one does not reach (resample.h). */
#include "data/sound/resample.h"
#include "base/fail.h"
#include "base/grow.h"

#include <errno.h>
#include <math.h>
#include <samplerate.h>
#include <stdlib.h>
#include <string.h>

#define RATIO_MOST 256.0 /* of libsamplerate, up and down */
enum { ROOM = 4096 /* samples that are asked for at a time */, PIECE = 65536 };

struct rate_stage {
	SRC_STATE *state; /* NULL: samples as they are */
	double ratio;
	/* The last sample taken: the library ends a sound with samples alone, not without any. */
	float held;
	int holds;
	int64_t made; /* samples given in all */
	float *out;
	int64_t count, room;
};

struct neap__resampler {
	double from, to;
	struct rate_stage stage[2];
	int stages;
	int64_t taken;
};

/* Of n samples at rate `from`, at rate `to`. */
static int count_of(int64_t *count, int64_t n, double from, double to)
{
	double wanted = fmax(1, floor((double)n * to / from + 1e-9));
	if (!(wanted < 1e15))
		return neap__fail(NEAP_EOVERFLOW, "%.3g samples are too many", wanted);
	*count = (int64_t)wanted;
	return 0;
}

static int make_room(struct rate_stage *s, int64_t more)
{
	if (neap__grow(&s->out, &s->room, s->count + more, sizeof *s->out) < 0)
		return neap__fail_errno(ENOMEM, "resampling");
	return 0;
}

/* Appends what n samples bring, and at the end what is left. */
static int convert(struct rate_stage *s, const float *samples, int64_t n, int end)
{
	SRC_DATA data = {.data_in = samples,
		.input_frames = n,
		.output_frames = ROOM,
		.src_ratio = s->ratio,
		.end_of_input = end};

	do {
		NEAP_TRY(make_room(s, ROOM));
		data.data_out = s->out + s->count;
		int error = src_process(s->state, &data);
		if (error)
			return neap__fail(NEAP_EFORMAT, "resampling to %g of the rate: %s",
				s->ratio, src_strerror(error));
		data.data_in += data.input_frames_used;
		data.input_frames -= data.input_frames_used;
		s->count += data.output_frames_gen;
	} while (data.input_frames > 0 || data.output_frames_gen > 0);
	return 0;
}

/* Converts what was taken before, and holds the last of n samples back. */
static int take(struct rate_stage *s, const float *samples, int64_t n)
{
	if (n <= 0)
		return 0;
	if (s->holds)
		NEAP_TRY(convert(s, &s->held, 1, 0));
	if (n > 1)
		NEAP_TRY(convert(s, samples, n - 1, 0));
	s->held = samples[n - 1];
	s->holds = 1;
	return 0;
}

/* Takes n samples; `total` ends the stage with so many in all, as the library leaves out zeros or
 * gives more. -1: it goes on. */
static int run(struct rate_stage *s, const float *samples, int64_t n, int64_t total)
{
	s->count = 0;
	if (s->state) {
		NEAP_TRY(take(s, samples, n));
		if (total >= 0 && s->holds)
			NEAP_TRY(convert(s, &s->held, 1, 1));
	} else if (n > 0) {
		NEAP_TRY(make_room(s, n));
		memcpy(s->out, samples, (size_t)n * sizeof *s->out);
		s->count = n;
	}
	if (total >= 0) {
		int64_t left = total > s->made ? total - s->made : 0;
		int64_t missing = left > s->count ? left - s->count : 0;
		NEAP_TRY(make_room(s, missing));
		if (missing > 0)
			memset(s->out + s->count, 0, (size_t)missing * sizeof *s->out);
		s->count = left;
	}
	s->made += s->count;
	return 0;
}

static int make_stage(struct neap__resampler *r, double ratio)
{
	struct rate_stage *s = &r->stage[r->stages++];
	int error = 0;

	s->ratio = ratio;
	s->state = src_new(SRC_SINC_MEDIUM_QUALITY, 1, &error);
	return s->state ? 0 : neap__fail_errno(ENOMEM, "resampling: %s", src_strerror(error));
}

int neap__resampler_new(struct neap__resampler **out, double from, double to)
{
	struct neap__resampler *r = calloc(1, sizeof *r);
	double ratio = to / from;
	int rc = 0;

	if (!r)
		return neap__fail_errno(ENOMEM, "resampling");
	r->from = from;
	r->to = to;
	if (fabs(from - to) < 1e-9 * to) {
		r->stages = 1;
	} else if (ratio >= 1 / RATIO_MOST) {
		rc = make_stage(r, ratio);
	} else {
		rc = make_stage(r, 1 / RATIO_MOST);
		if (rc == 0)
			rc = make_stage(r, ratio * RATIO_MOST);
	}
	if (rc < 0)
		neap__resampler_free(r);
	else
		*out = r;
	return rc;
}

int neap__resampler_push(
	struct neap__resampler *r, const float *samples, int64_t n, float **out, int64_t *count)
{
	struct rate_stage *last = &r->stage[r->stages - 1];

	r->taken += n;
	NEAP_TRY(run(&r->stage[0], samples, n, -1));
	if (r->stages > 1)
		NEAP_TRY(run(last, r->stage[0].out, r->stage[0].count, -1));
	*out = last->out;
	*count = last->count;
	return 0;
}

int neap__resampler_end(struct neap__resampler *r, float **out, int64_t *count)
{
	struct rate_stage *last = &r->stage[r->stages - 1];
	int64_t total = 0, between = r->taken / (int64_t)RATIO_MOST + 1;

	NEAP_TRY(count_of(&total, r->taken, r->from, r->to));
	NEAP_TRY(run(&r->stage[0], NULL, 0, r->stages > 1 ? between : total));
	if (r->stages > 1)
		NEAP_TRY(run(last, r->stage[0].out, r->stage[0].count, total));
	*out = last->out;
	*count = last->count;
	return 0;
}

void neap__resampler_free(struct neap__resampler *r)
{
	if (!r)
		return;
	for (int i = 0; i < 2; i++) {
		if (r->stage[i].state)
			src_delete(r->stage[i].state);
		free(r->stage[i].out);
	}
	free(r);
}

/* Fills in out[count] from samples[n], piece by piece. */
static int resample_into(
	struct neap__resampler *r, float *out, int64_t count, const float *samples, int64_t n)
{
	float *piece;
	int64_t got, at = 0;

	for (int64_t i = 0; i < n; i += PIECE, at += got) {
		NEAP_TRY(neap__resampler_push(
			r, samples + i, n - i < PIECE ? n - i : PIECE, &piece, &got));
		got = got < count - at ? got : count - at;
		if (got > 0)
			memcpy(out + at, piece, (size_t)got * sizeof *out);
	}
	NEAP_TRY(neap__resampler_end(r, &piece, &got));
	got = got < count - at ? got : count - at;
	if (got > 0)
		memcpy(out + at, piece, (size_t)got * sizeof *out);
	return 0;
}

int neap__resample(
	float **out, int64_t *count, const float *samples, int64_t n, double from, double to)
{
	struct neap__resampler *r;

	NEAP_TRY(count_of(count, n, from, to));
	if (*count > (int64_t)1e11)
		return neap__fail(NEAP_EOVERFLOW, "%.3g samples are too many", (double)*count);
	float *all = malloc((size_t)*count * sizeof *all);
	if (!all)
		return neap__fail_errno(ENOMEM, "resampling");
	int rc = neap__resampler_new(&r, from, to);
	if (rc == 0) {
		rc = resample_into(r, all, *count, samples, n);
		neap__resampler_free(r);
	}
	if (rc < 0)
		free(all);
	else
		*out = all;
	return rc;
}
