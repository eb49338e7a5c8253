/* SPDX-License-Identifier: Apache-2.0 */
/* Sound that is resampled and encoded piece by piece: the samples and spikes of the whole. */
#include "spikes.h"
#include "data/sound/encoder.h"
#include "data/sound/live_sound.h"
#include "data/sound/resample.h"
#include "data/sound/sound_file.h"

#include <errno.h>
#include <math.h>
#include <samplerate.h>
#include <sndfile.h>

/* Noise with a tone that swells, and a mean that is not 0. */
static float *noise(int64_t n, double rate)
{
	float *x = malloc((size_t)n * sizeof *x);
	for (int64_t i = 0; i < n; i++) {
		double u =
			(double)neap__random_below(5, NEAP__STREAM_TEST, 0, (uint64_t)i, 1u << 20);
		double t = (double)i / rate;
		x[i] = (float)(0.02 + 0.05 * (u / (1 << 20) - 0.5) +
			       0.1 * sin(2 * 3.141592653589793 * 700 * t) * sin(9 * t));
	}
	return x;
}

/* The pieces of a sound of n samples give what the whole gives, to the bit. */
static void compare_pieces(double from, double to, int64_t n, int64_t block)
{
	struct neap__resampler *r;
	float *x = noise(n, from), *whole, *out;
	int64_t count, got, at = 0;

	ok(neap__resample(&whole, &count, x, n, from, to));
	ok(neap__resampler_new(&r, from, to));
	for (int64_t i = 0; i <= n; i += block) {
		int64_t m = n - i < block ? n - i : block;
		ok(neap__resampler_push(r, x + i, m, &out, &got));
		assert_true(at + got <= count);
		assert_memory_equal(out, whole + at, (size_t)got * sizeof *out);
		at += got;
	}
	ok(neap__resampler_end(r, &out, &got));
	assert_true(at + got == count);
	assert_memory_equal(out, whole + at, (size_t)got * sizeof *out);
	neap__resampler_free(r);
	free(whole);
	free(x);
}

/* What libsamplerate makes of the whole; beyond 1.5 MHz its own call leaves the end out. */
static void compare_library(double from, int64_t n)
{
	float *x = noise(n, from), *whole;
	int64_t count;

	ok(neap__resample(&whole, &count, x, n, from, 8000));
	SRC_DATA data = {.data_in = x,
		.data_out = calloc((size_t)count, sizeof(float)),
		.input_frames = n,
		.output_frames = count,
		.src_ratio = 8000 / from};
	assert_int_equal(src_simple(&data, SRC_SINC_MEDIUM_QUALITY, 1), 0);
	assert_memory_equal(data.data_out, whole, (size_t)count * sizeof(float));
	free(data.data_out);
	free(whole);
	free(x);
}

static void pieces_are_resampled(void **state)
{
	(void)state;
	static const double rates[] = {8000, 4000, 11025, 16000, 22050, 44100, 48000, 192000};
	static const int64_t lengths[] = {1, 2, 130, 4097, 30000}, blocks[] = {1, 7, 160, 4096};

	for (size_t r = 0; r < sizeof rates / sizeof *rates; r++)
		for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
			for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++)
				compare_pieces(rates[r], 8000, lengths[l], blocks[b]);
	for (size_t r = 1; r < sizeof rates / sizeof *rates; r++)
		compare_library(rates[r], 200000);
	compare_pieces(4000000, 8000, 300000, 997); /* two stages */
	compare_pieces(100, 8000, 300, 1);
}

static const char *write_sound(
	const char *name, const float *x, int64_t frames, int rate, int channels, int format)
{
	const char *path = scratch(name);
	SF_INFO info = {.samplerate = rate, .channels = channels, .format = format};
	SNDFILE *file = sf_open(path, SFM_WRITE, &info);
	assert_non_null(file);
	assert_true(sf_writef_float(file, x, frames) == frames);
	sf_close(file);
	return path;
}

/* Hears a recording with blocks of one size; drops what was compared with the whole. */
static void compare_spikes(const char *path, const struct neap_events *whole, int64_t block)
{
	struct neap_encoder_options encoder;
	struct neap__live_sound *sound;
	int64_t at = 0;
	double last;
	int more;

	ok(neap__encoder_settle(&encoder, NULL));
	struct neap__live_sound_options options = {
		.name = path, .encoder = &encoder, .block = block};
	ok(neap__live_sound_open(&sound, &options));
	do {
		ok(more = neap__live_sound_hear(sound));
		const struct neap_events *e = neap__live_sound_events(sound);
		assert_true(at + e->count <= whole->count);
		if (e->count > 0) {
			assert_memory_equal(
				e->time, whole->time + at, (size_t)e->count * sizeof(double));
			assert_memory_equal(
				e->unit, whole->unit + at, (size_t)e->count * sizeof(uint16_t));
		}
		at += e->count;
		assert_true(at == whole->count || whole->time[at] >= neap__live_sound_known(sound));
		assert_true(e->duration <= whole->duration);
		neap__live_sound_drop(sound, e->count);
	} while (more);
	assert_int_equal(at, whole->count);
	assert_int_equal(neap__live_sound_spikes(sound, &last), whole->count);
	assert_true(at == 0 || last == whole->time[at - 1]);
	assert_true(neap__live_sound_events(sound)->duration == whole->duration);
	neap__live_sound_close(sound);
}

static void pieces_are_encoded(void **state)
{
	(void)state;
	static const int64_t blocks[] = {1, 63, 4096, 100000};
	static const struct {
		int rate, channels, format;
	} kinds[] = {{8000, 1, SF_FORMAT_WAV | SF_FORMAT_PCM_16},
		{16000, 2, SF_FORMAT_AIFF | SF_FORMAT_PCM_24},
		{44100, 1, SF_FORMAT_FLAC | SF_FORMAT_PCM_16},
		{48000, 3, SF_FORMAT_WAV | SF_FORMAT_FLOAT},
		{8000, 1, SF_FORMAT_WAV | SF_FORMAT_FLOAT}};
	static const char *const names[] = {"a.wav", "b.aiff", "c.flac", "d.wav", "silent.wav"};

	for (int k = 0; k < 5; k++) {
		int64_t frames = kinds[k].rate / 2 + 11, n = frames * kinds[k].channels, count;
		float *x = noise(n, kinds[k].rate), *samples;
		double rate;
		for (int64_t i = 0; k == 4 && i < n; i++)
			x[i] = 0.25f; /* a mean alone */
		const char *path = write_sound(
			names[k], x, frames, kinds[k].rate, kinds[k].channels, kinds[k].format);
		struct neap_events whole;
		ok(neap__sound_read(&samples, &count, &rate, path, 0));
		ok(neap_encode(&whole, samples, count, rate, NULL));
		assert_true(k == 4 ? whole.count == 0 : whole.count > 100);
		for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++)
			compare_spikes(path, &whole, blocks[b]);
		neap_events_free(&whole);
		free(samples);
		free(x);
		remove(path);
	}
}

/* Where a level is given the sound is read once: no later sample changes an earlier spike. */
static void what_comes_changes_nothing(void **state)
{
	(void)state;
	struct neap_encoder_options encoder;
	float *x = noise(16000, 8000);
	const char *paths[2] = {
		write_sound("long.wav", x, 16000, 8000, 1, SF_FORMAT_WAV | SF_FORMAT_FLOAT),
		write_sound("short.wav", x, 9000, 8000, 1, SF_FORMAT_WAV | SF_FORMAT_FLOAT)};
	struct neap__live_sound *sound[2];

	ok(neap__encoder_settle(&encoder, NULL));
	for (int i = 0; i < 2; i++) {
		struct neap__live_sound_options options = {.name = paths[i],
			.encoder = &encoder,
			.level = 0.03,
			.block = i ? 1000 : 77};
		ok(neap__live_sound_open(&sound[i], &options));
		while (neap__live_sound_hear(sound[i]) > 0)
			;
	}
	const struct neap_events *e = neap__live_sound_events(sound[0]),
				 *part = neap__live_sound_events(sound[1]);
	assert_true(part->count > 100 && part->count < e->count);
	assert_memory_equal(e->time, part->time, (size_t)part->count * sizeof(double));
	assert_memory_equal(e->unit, part->unit, (size_t)part->count * sizeof(uint16_t));
	for (int i = 0; i < 2; i++) {
		neap__live_sound_close(sound[i]);
		remove(paths[i]);
	}
	free(x);
}

static int always(void *user)
{
	(void)user;
	return 1;
}

static void refusals(void **state)
{
	(void)state;
	struct neap_encoder_options encoder;
	struct neap__live_sound *sound;
	float x[400] = {[100] = NAN};

	ok(neap__encoder_settle(&encoder, NULL));
	struct neap__live_sound_options options = {.name = "/nowhere/a.wav", .encoder = &encoder};
	refused(neap__live_sound_open(&sound, &options), -ENOENT, "/nowhere/a.wav");
	options.name = write_sound("nan.wav", x, 400, 8000, 1, SF_FORMAT_WAV | SF_FORMAT_FLOAT);
	refused(neap__live_sound_open(&sound, &options), NEAP_EFORMAT, "sample 100 is nan");
	options.ask.interrupted = always;
	refused(neap__live_sound_open(&sound, &options), NEAP_EINTERRUPTED, "interrupted");
	remove(options.name);
	options.ask.interrupted = NULL;
	options.name = write_sound("slow.wav", x, 0, 4000, 1, SF_FORMAT_WAV | SF_FORMAT_PCM_16);
	refused(neap__live_sound_open(&sound, &options), NEAP_EUSAGE, "4000 Hz");
	remove(options.name);
	options.name = write_sound("empty.wav", x, 0, 8000, 1, SF_FORMAT_WAV | SF_FORMAT_PCM_16);
	refused(neap__live_sound_open(&sound, &options), NEAP_EFORMAT, "no samples");
	remove(options.name);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_are_resampled),
		cmocka_unit_test(pieces_are_encoded),
		cmocka_unit_test(what_comes_changes_nothing),
		cmocka_unit_test(refusals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
