/* SPDX-License-Identifier: Apache-2.0 */
/* live_sound.c: the passes over a recording, and what becomes of a piece (live_sound.h). */
#include "data/sound/live_sound.h"
#include "data/sound/ear.h"
#include "data/sound/encoder.h"
#include "data/sound/resample.h"
#include "data/sound/sound_file.h"
#include "base/fail.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 4096 /* samples of a recording that are read at a time */ };
#define PIECE 0.01 /* seconds of the standard input that are waited for at a time */

/* A sum over the samples so far, and how many these are. */
struct running {
	double sum;
	int64_t count;
};

struct neap__live_sound {
	struct neap__live_sound_options options;
	struct neap_encoder_options encoder;
	int once; /* read as it comes */
	struct neap__sound_pump *pump;
	struct neap__sound *file;
	struct neap__resampler *resampler;
	struct neap__emphasis emphasis;
	struct neap__ear ear;
	double rate; /* of the sound, Hz */
	double mean; /* of a recording */
	float scale; /* unless the level is that so far */
	double level;
	struct running input, square;
	int64_t block;
	float *samples; /* [block] */
	int64_t spikes;
	double last;
	int ended;
};

static int interrupted(const struct neap__live_sound *s)
{
	return neap__fail(
		NEAP_EINTERRUPTED, "interrupted at %.3f s", (double)s->input.count / s->rate);
}

/* Puts the sound's name before what is wrong with its numbers. */
static int name_it(const struct neap__live_sound *s, int rc)
{
	return rc < 0 ? neap__fail_in(rc, "'%s': ", s->options.name) : 0;
}

/* Refuses what cannot be read three times. */
static int check_file(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return neap__fail_errno(errno, "cannot read '%s'", path);
	if (S_ISREG(st.st_mode))
		return 0;
	return neap__fail(
		NEAP_EFORMAT, "'%s' is not a regular file. Read a pipe as standard input: -", path);
}

/* Opens the sound at its beginning. */
static int open_sound(struct neap__live_sound *s)
{
	unsigned char head[NEAP__SOUND_HEAD] = {0};

	if (strcmp(s->options.name, "-") != 0) {
		NEAP_TRY(check_file(s->options.name));
		return neap__sound_open(&s->file, s->options.name, 0);
	}
	NEAP_TRY(neap__sound_pump_start(&s->pump, STDIN_FILENO, head, &s->options.ask));
	int rc = neap__sound_open_pipe(&s->file, neap__sound_pump_fd(s->pump), head);
	return rc < 0 && neap__sound_pump_end(s->pump) < 0 ? neap__sound_pump_end(s->pump) : rc;
}

/* Begins a pass over the sound. */
static int begin(struct neap__live_sound *s)
{
	if (!s->file)
		NEAP_TRY(open_sound(s));
	s->rate = neap__sound_rate(s->file);
	NEAP_TRY(name_it(s, neap__encoder_takes(&s->encoder, s->rate)));
	s->emphasis = neap__emphasis_of(&s->encoder);
	s->input = s->square = (struct running){0};
	neap__resampler_free(s->resampler);
	s->resampler = NULL;
	return neap__resampler_new(&s->resampler, s->rate, neap__encoder_rate(&s->encoder));
}

static void end_pass(struct neap__live_sound *s)
{
	neap__sound_close(s->file);
	s->file = NULL;
}

/* Reads the next samples as they are: how many, 0 at the end, or a negative code. */
static int64_t read_block(struct neap__live_sound *s)
{
	int64_t n = neap__sound_take(s->file, s->samples, s->block);

	if (s->pump &&
		n <= 0) { /* why the socket ended comes before what that makes of the sound */
		int rc = neap__sound_pump_end(s->pump);
		if (rc == NEAP_EINTERRUPTED)
			return interrupted(s);
		NEAP_TRY(rc);
	}
	if (neap__asked_to_end(&s->options.ask))
		return interrupted(s);
	NEAP_TRY((int)(n < 0 ? n : 0));
	NEAP_TRY(name_it(s, neap__encoder_hears(s->samples, n, s->input.count)));
	return n;
}

/* Adds up the samples read, as neap_encode does. */
static void add_samples(struct neap__live_sound *s, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		s->input.sum += s->samples[i];
	s->input.count += n;
}

static int find_mean(struct neap__live_sound *s)
{
	int64_t n;

	NEAP_TRY(begin(s));
	while ((n = read_block(s)) > 0)
		add_samples(s, n);
	NEAP_TRY((int)n);
	s->mean = s->input.sum / (double)s->input.count;
	end_pass(s);
	return 0;
}

/* Takes the mean from the samples read. */
static void centre(struct neap__live_sound *s, int64_t n)
{
	for (int64_t i = 0; i < n; i++) {
		double mean = s->mean;
		if (s->once) {
			s->input.sum += s->samples[i];
			mean = s->input.sum / (double)(s->input.count + i + 1);
		}
		s->samples[i] = (float)(s->samples[i] - mean);
	}
	s->input.count += n;
}

/* Reads a piece up to the emphasis: 1, 0 at the end with what was left, or a negative code. */
static int read_piece(struct neap__live_sound *s, float **x, int64_t *count)
{
	int64_t n = read_block(s);

	NEAP_TRY((int)(n < 0 ? n : 0));
	if (n == 0) {
		NEAP_TRY(neap__resampler_end(s->resampler, x, count));
	} else {
		centre(s, n);
		NEAP_TRY(neap__resampler_push(s->resampler, s->samples, n, x, count));
	}
	neap__emphasise(&s->emphasis, *x, *count);
	return n > 0;
}

static int find_level(struct neap__live_sound *s)
{
	float *x;
	int64_t count;
	int more;

	NEAP_TRY(begin(s));
	do {
		NEAP_TRY(more = read_piece(s, &x, &count));
		for (int64_t i = 0; i < count; i++)
			s->square.sum += (double)x[i] * x[i];
		s->square.count += count;
	} while (more);
	s->level = sqrt(s->square.sum / (double)s->square.count);
	end_pass(s);
	return 0;
}

/* Sets the level of a piece. */
static void set_level(struct neap__live_sound *s, float *x, int64_t count)
{
	for (int64_t i = 0; i < count; i++) {
		float scale = s->scale;
		if (s->once && s->options.level <= 0) {
			s->square.sum += (double)x[i] * x[i];
			s->square.count++;
			scale = neap__encoder_scale(
				&s->encoder, sqrt(s->square.sum / (double)s->square.count));
		}
		x[i] *= scale;
	}
}

static int open_all(struct neap__live_sound *s)
{
	s->once = s->options.level > 0 || strcmp(s->options.name, "-") == 0;
	s->level = s->options.level;
	s->block = s->options.block > 0 ? s->options.block : BLOCK;
	NEAP_TRY(neap__ear_init(&s->ear, &s->encoder));
	if (s->once)
		NEAP_TRY(begin(s));
	if (s->options.block <= 0 && strcmp(s->options.name, "-") == 0)
		s->block = (int64_t)fmin(BLOCK, fmax(1, s->rate * PIECE));
	s->samples = malloc((size_t)s->block * sizeof *s->samples);
	if (!s->samples)
		return neap__fail_errno(ENOMEM, "%lld samples", (long long)s->block);
	if (!s->once) {
		NEAP_TRY(find_mean(s));
		NEAP_TRY(find_level(s));
		NEAP_TRY(begin(s));
	}
	s->scale = neap__encoder_scale(&s->encoder, s->level);
	return 0;
}

int neap__live_sound_open(
	struct neap__live_sound **out, const struct neap__live_sound_options *options)
{
	struct neap__live_sound *s = calloc(1, sizeof *s);

	if (!s)
		return neap__fail_errno(ENOMEM, "%s", options->name);
	s->options = *options;
	s->encoder = *options->encoder;
	int rc = open_all(s);
	if (rc < 0)
		neap__live_sound_close(s);
	else
		*out = s;
	return rc;
}

static int hear(struct neap__live_sound *s)
{
	struct neap_events *events = &s->ear.out.events;
	int64_t before = events->count, count;
	float *x;
	int more;

	NEAP_TRY(more = read_piece(s, &x, &count));
	set_level(s, x, count);
	if (s->once || s->scale > 0)
		NEAP_TRY(neap__ear_listen(&s->ear, x, count));
	else
		s->ear.heard += count;
	s->spikes += events->count - before;
	if (events->count > before)
		s->last = events->time[events->count - 1];
	events->duration = (double)s->input.count / s->rate;
	s->ended = !more;
	return more;
}

int neap__live_sound_hear(struct neap__live_sound *s)
{
	return s->ended ? 0 : hear(s);
}

const struct neap_events *neap__live_sound_events(const struct neap__live_sound *s)
{
	return &s->ear.out.events;
}

void neap__live_sound_drop(struct neap__live_sound *s, int64_t count)
{
	struct neap_events *e = &s->ear.out.events;

	if (count <= 0)
		return;
	e->count -= count;
	memmove(e->time, e->time + count, (size_t)e->count * sizeof *e->time);
	memmove(e->unit, e->unit + count, (size_t)e->count * sizeof *e->unit);
}

double neap__live_sound_known(const struct neap__live_sound *s)
{
	return s->ended ? INFINITY : (double)s->ear.heard / s->ear.rate;
}

int64_t neap__live_sound_spikes(const struct neap__live_sound *s, double *last)
{
	*last = s->last;
	return s->spikes;
}

double neap__live_sound_level(const struct neap__live_sound *s)
{
	return s->level;
}

void neap__live_sound_close(struct neap__live_sound *s)
{
	if (!s)
		return;
	neap__sound_close(s->file);
	neap__sound_pump_free(s->pump);
	neap__resampler_free(s->resampler);
	neap__ear_free(&s->ear);
	free(s->samples);
	free(s);
}
