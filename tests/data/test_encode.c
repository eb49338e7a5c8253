/* SPDX-License-Identifier: Apache-2.0 */
/* The auditory model and folders of recordings. */
#include "spikes.h"
#include "data/sound/encoder.h"
#include "data/recordings.h"
#include "data/sound/sound_file.h"

#include <dirent.h>
#include <errno.h>
#include <sndfile.h>
#include <sys/stat.h>

#define PI 3.141592653589793

/* A chirp from 100 to 3500 Hz in n samples, with a beat. */
static float *chirp(int64_t n, double rate)
{
	float *x = malloc((size_t)n * sizeof *x);
	for (int64_t i = 0; i < n; i++) {
		double t = (double)i / rate, T = (double)n / rate;
		double phase = 2 * PI * (100 * t + (3400 / (2 * T)) * t * t);
		x[i] = (float)(0.1 * (1 + 0.5 * sin(2 * PI * 4 * t)) * sin(phase) + 0.02);
	}
	return x;
}

static struct neap_events encode(const float *x, int64_t n, double rate)
{
	struct neap_events e;
	ok(neap_encode(&e, x, n, rate, NULL));
	return e;
}

/* Counts may move by a spike or two with the mathematical library; not by more. */
static void golden_chirp(void **state)
{
	(void)state;
	float *x = chirp(8000, 8000);
	struct neap_events e = encode(x, 8000, 8000);
	int quarter[4] = {0};
	for (int64_t i = 0; i < e.count; i++) {
		assert_true(e.time[i] >= 0 && e.time[i] < 1 && e.unit[i] < 128);
		assert_true(i == 0 || e.time[i - 1] <= e.time[i]);
		quarter[e.unit[i] / 32]++;
	}
	assert_true(e.duration == 1);
	print_message("# %lld spikes: %d %d %d %d\n", (long long)e.count, quarter[0], quarter[1],
		quarter[2], quarter[3]);
	static const int golden[4] = {67, 169, 520, 1088};
	for (int q = 0; q < 4; q++)
		assert_true(abs(quarter[q] - golden[q]) <= 2 + golden[q] / 100);
	/* Levels and offsets do not matter. */
	for (int i = 0; i < 8000; i++)
		x[i] = 7 * x[i] - 0.3f;
	struct neap_events louder = encode(x, 8000, 8000);
	assert_true(llabs(louder.count - e.count) <= 1 + e.count / 200);
	/* A channel rests 1 ms. */
	double last[128];
	for (int k = 0; k < 128; k++)
		last[k] = -1;
	for (int64_t i = 0; i < e.count; i++) {
		assert_true(e.time[i] - last[e.unit[i]] > 0.9999e-3);
		last[e.unit[i]] = e.time[i];
	}
	neap_events_free(&e);
	neap_events_free(&louder);
	free(x);
}

/* The same sound at other rates: like spikes. */
static void rates_agree(void **state)
{
	(void)state;
	float *x = chirp(8000, 8000);
	struct neap_events base = encode(x, 8000, 8000);
	static const double rates[] = {16000, 22050, 44100, 48000};
	for (int r = 0; r < 4; r++) {
		float *y = chirp((int64_t)rates[r], rates[r]);
		struct neap_events e = encode(y, (int64_t)rates[r], rates[r]);
		int a[128] = {0}, b[128] = {0}, apart = 0;
		for (int64_t i = 0; i < base.count; i++)
			a[base.unit[i]]++;
		for (int64_t i = 0; i < e.count; i++)
			b[e.unit[i]]++;
		for (int k = 0; k < 128; k++)
			apart += abs(a[k] - b[k]);
		print_message("# %g Hz: %lld spikes for %lld, %d apart\n", rates[r],
			(long long)e.count, (long long)base.count, apart);
		assert_true(llabs(e.count - base.count) < base.count / 20);
		assert_true(apart < base.count / 10);
		neap_events_free(&e);
		free(y);
	}
	neap_events_free(&base);
	free(x);
}

static void silence_and_edges(void **state)
{
	(void)state;
	float zero[4000] = {0}, one[1] = {0.5f};
	struct neap_events e = encode(zero, 4000, 8000);
	assert_int_equal(e.count, 0);
	assert_true(e.duration == 0.5);
	neap_events_free(&e);
	e = encode(one, 1, 8000);
	neap_events_free(&e);
	for (int i = 0; i < 4000; i++)
		zero[i] = -3;
	e = encode(zero, 4000, 44100);
	assert_int_equal(e.count, 0);
	neap_events_free(&e);
	refused(neap_encode(&e, zero, 0, 8000, NULL), NEAP_EFORMAT, "empty");
	refused(neap_encode(&e, zero, 9, 4000, NULL), NEAP_EUSAGE, "8000 Hz");
	refused(neap_encode(&e, zero, 9, NAN, NULL), NEAP_EUSAGE, "sampling rate");
	zero[5] = NAN;
	refused(neap_encode(&e, zero, 9, 8000, NULL), NEAP_EFORMAT, "sample 5");
	struct neap_encoder_options o = {.size = sizeof o, .channels = 701};
	refused(neap_encode(&e, one, 1, 8000, &o), NEAP_EUSAGE, "channels is 701");
	o = (struct neap_encoder_options){.size = sizeof o, .low = 4000};
	refused(neap_encode(&e, one, 1, 8000, &o), NEAP_EUSAGE, "must be below");
	o = (struct neap_encoder_options){.size = sizeof o, .tau = -1};
	refused(neap_encode(&e, one, 1, 8000, &o), NEAP_EUSAGE, "tau");
	o = (struct neap_encoder_options){.size = sizeof o, .channels = 700, .high = 7000};
	ok(neap_encode(&e, one, 1, 16000, &o));
	neap_events_free(&e);
}

/* Each number is taken up to its bounds, and no further. */
static void numbers_have_bounds(void **state)
{
	static const struct {
		size_t at;
		double least, most;
	} bounds[] = {
		{offsetof(struct neap_encoder_options, rms), 1e-6, 1e6},
		{offsetof(struct neap_encoder_options, preemphasis), 0, 1},
		{offsetof(struct neap_encoder_options, gain), 1e-6, 1e6},
		{offsetof(struct neap_encoder_options, tau), 1e-4, 1e3},
		{offsetof(struct neap_encoder_options, refractory), 0, 1},
		{offsetof(struct neap_encoder_options, inhibition), 0, 100},
		{offsetof(struct neap_encoder_options, compression), 1e-3, 10},
	};
	(void)state;
	for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
		struct neap_encoder_options o = {.size = sizeof o}, settled;
		double *value = (double *)((char *)&o + bounds[i].at);
		*value = bounds[i].most;
		ok(neap__encoder_settle(&settled, &o));
		*value = nextafter(bounds[i].most, INFINITY);
		refused(neap__encoder_settle(&settled, &o), NEAP_EUSAGE, "it must be between");
		*value = bounds[i].least;
		ok(neap__encoder_settle(&settled, &o));
		if (bounds[i].least > 0) {
			*value = nextafter(bounds[i].least, 0);
			refused(neap__encoder_settle(&settled, &o), NEAP_EUSAGE,
				"it must be between");
		}
	}
}

/* ---- folders ---- */

static void sound(const char *path, const float *x, int64_t n, int rate, int channels)
{
	SF_INFO info = {.samplerate = rate,
		.channels = channels,
		.format = SF_FORMAT_WAV | SF_FORMAT_PCM_16};
	SNDFILE *file = sf_open(path, SFM_WRITE, &info);
	assert_non_null(file);
	assert_int_equal(sf_writef_float(file, x, n), n);
	sf_close(file);
}

static char folder[64];

static const char *in(const char *name)
{
	static char path[4][200];
	static int turn;
	char *p = path[turn++ % 4];
	snprintf(p, sizeof path[0], "%s/%s", folder, name);
	return p;
}

static void clear(const char *dir)
{
	char path[600];
	DIR *d = opendir(dir);
	struct dirent *entry;
	while (d && (entry = readdir(d)) != NULL) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		snprintf(path, sizeof path, "%s/%s", dir, entry->d_name);
		if (unlink(path) < 0)
			clear(path);
	}
	if (d)
		closedir(d);
	rmdir(dir);
}

static int make_folder(void **state)
{
	(void)state;
	strcpy(folder, "/tmp/neap-test-encode-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	float *x = chirp(2000, 8000);
	for (int digit = 0; digit < 12; digit++)
		for (int who = 0; who < 2; who++) {
			char name[40];
			snprintf(
				name, sizeof name, "%d_%s_%d.wav", digit, who ? "bob" : "ann", who);
			sound(in(name), x, 1000 + 50 * digit, 8000, 1);
		}
	free(x);
	return 0;
}

static int remove_folder(void **state)
{
	(void)state;
	clear(folder);
	return 0;
}

static struct neap_encode_options by_name(int threads)
{
	return (struct neap_encode_options){.size = sizeof(struct neap_encode_options),
		.threads = threads,
		.label = "([0-9]+)_.*",
		.speaker = "[0-9]+_([a-z]+)_.*"};
}

static int same_files(const char *a, const char *b)
{
	FILE *f = fopen(a, "rb"), *g = fopen(b, "rb");
	int x, y;
	do {
		x = fgetc(f);
		y = fgetc(g);
	} while (x == y && x != EOF);
	fclose(f);
	fclose(g);
	return x == y;
}

static void folder_to_file(void **state)
{
	(void)state;
	struct neap_encode_report report = {.size = sizeof report};
	struct neap_encode_options o = by_name(1);
	const char *one = scratch("one.h5"), *two = scratch("two.h5");
	ok(neap_encode_directory(&report, folder, one, &o));
	assert_int_equal(report.files, 24);
	assert_int_equal(report.classes, 12);
	assert_int_equal(report.speakers, 2);
	assert_true(report.events > 1000 && report.active > 0.005 && report.active < 0.1);
	o.threads = 3;
	ok(neap_encode_directory(&report, folder, two, &o));
	assert_true(same_files(one, two));
	struct neap_dataset *set;
	struct neap_dataset_info info = {.size = sizeof info};
	ok(neap_dataset_open(&set, one));
	neap_dataset_info(set, &info);
	assert_int_equal(info.samples, 24);
	assert_int_equal(info.inputs, 128);
	assert_int_equal(info.events, report.events);
	/* Numbers in order of value: 10 is after 9. */
	assert_string_equal(neap_dataset_class_name(set, 2), "2");
	assert_string_equal(neap_dataset_class_name(set, 10), "10");
	assert_string_equal(neap_dataset_speaker_name(set, 0), "ann");
	struct neap_events e;
	ok(neap_dataset_read(set, 1, &e)); /* 0_bob_1.wav */
	assert_int_equal(e.label, 0);
	assert_int_equal(e.speaker, 1);
	assert_true(e.duration == 0.125);
	neap_events_free(&e);
	neap_dataset_close(set);
	unlink(one);
	unlink(two);
}

static void stereo_and_folders(void **state)
{
	(void)state;
	char dir[100], path[200];
	const char *out = scratch("folders.h5");
	snprintf(dir, sizeof dir, "%s-tree", folder);
	mkdir(dir, 0700);
	static const char *const classes[] = {"yes", "no"};
	float *x = chirp(4000, 16000), stereo[8000];
	for (int i = 0; i < 4000; i++)
		stereo[2 * i] = stereo[2 * i + 1] = x[i];
	for (int c = 0; c < 2; c++) {
		snprintf(path, sizeof path, "%s/%s", dir, classes[c]);
		mkdir(path, 0700);
		snprintf(path, sizeof path, "%s/%s/a.wav", dir, classes[c]);
		sound(path, c ? stereo : x, 4000, 16000, c + 1);
	}
	struct neap_encode_options o = {.size = sizeof o};
	struct neap_encode_report report = {.size = sizeof report};
	ok(neap_encode_directory(&report, dir, out, &o));
	struct neap_dataset *set;
	struct neap_events a, b;
	ok(neap_dataset_open(&set, out));
	assert_string_equal(neap_dataset_class_name(set, 0), "no");
	ok(neap_dataset_read(set, 0, &a));
	ok(neap_dataset_read(set, 1, &b));
	assert_int_equal(a.count, b.count);
	assert_int_equal(a.speaker, -1);
	neap_events_free(&a);
	neap_events_free(&b);
	neap_dataset_close(set);
	free(x);
	clear(dir);
	unlink(out);
}

static int stop_at(void *user, int64_t done, int64_t total)
{
	(void)total;
	return done >= *(int *)user;
}

/* Files are read in blocks of 65536 frames, of which the last may have a single one. */
static void every_frame_is_read(void **state)
{
	(void)state;
	enum { FRAMES = 2 * 65536 + 1 };
	float *x = calloc(FRAMES, sizeof *x), *read;
	int64_t n;
	double rate;
	const char *path = in("frames.wav");
	x[FRAMES - 1] = 0.5f;
	sound(path, x, FRAMES, 8000, 1);
	ok(neap__sound_read(&read, &n, &rate, path, 0));
	assert_int_equal(n, FRAMES);
	assert_true(fabsf(read[FRAMES - 1] - 0.5f) < 1e-3f);
	free(read);
	free(x);
	unlink(path);
}

static void folder_mistakes(void **state)
{
	(void)state;
	struct neap_encode_report report = {.size = sizeof report};
	const char *out = scratch("mistakes.h5");
	struct neap_encode_options o = by_name(2);
	int limit = 5;
	o.progress = stop_at;
	o.user = &limit;
	refused(neap_encode_directory(&report, folder, out, &o), NEAP_EINTERRUPTED, "interrupted");
	assert_int_equal(report.files, 5);
	o = by_name(2);
	o.label = "([0-9+_.*";
	refused(neap_encode_directory(&report, folder, out, &o), NEAP_EUSAGE, "--label");
	o.label = "[0-9]+_.*";
	refused(neap_encode_directory(&report, folder, out, &o), NEAP_EUSAGE, "no group");
	o.label = "([x-z]+)_";
	refused(neap_encode_directory(&report, folder, out, &o), NEAP_EUSAGE, ".wav");
	o.label = NULL;
	refused(neap_encode_directory(&report, folder, out, &o), NEAP_EUSAGE, "--label");
	/* Tries that grow exponentially with the name end soon. */
	o.label = "((a*)*)*b";
	refused(neap_encode_directory(&report, folder, out, &o), NEAP_EUSAGE, "does not match");
	o.label = "^((.*.*.*.*)*)*$(?=x)";
	refused(neap_encode_directory(&report, folder, out, &o), NEAP_EUSAGE, "takes too long");
	o.label = "((((.{1,999}){1,999}){1,999}){1,999})";
	refused(neap_encode_directory(&report, folder, out, &o), NEAP_EUSAGE, "too large");
	o = by_name(2);
	o.speaker = "(x*)";
	refused(neap_encode_directory(&report, folder, out, &o), NEAP_EUSAGE, "--speaker");
	o = by_name(2);
	refused(neap_encode_directory(&report, "/no/such/place", out, &o), -ENOENT,
		"/no/such/place");
	refused(neap_encode_directory(&report, folder, "/no/such/place.h5", &o), -ENOENT,
		"/no/such/place.h5");
	refused(neap_encode_directory(&report, folder, folder, &o), -EISDIR, folder);
	o.encoder.channels = 900;
	refused(neap_encode_directory(&report, folder, out, &o), NEAP_EUSAGE, "channels is 900");
	o = by_name(2);
	o.encoder.high = 3700;
	refused(neap_encode_directory(&report, folder, out, &o), NEAP_EFORMAT,
		"Lower --high to 3600 Hz or less");

	/* Files that are none: text, an empty one, a cut one; a hidden one is passed over. */
	struct {
		const char *name;
		const char *word;
	} odd[] = {{"1_readme_.txt", "of a kind that encode does not read"},
		{"1_empty_.wav", "1_empty_.wav"}, {"1_cut_.wav", "1_cut_.wav"}};
	for (int i = 0; i < 3; i++) {
		const char *path = in(odd[i].name);
		if (i < 2) {
			FILE *f = fopen(path, "w");
			if (i == 0)
				fputs("These are recordings.\n", f);
			fclose(f);
		} else {
			float x[10] = {0};
			sound(path, x, 10, 8000, 1);
			assert_int_equal(truncate(path, 44), 0); /* header, no samples */
		}
		refused(neap_encode_directory(&report, folder, out, &o), NEAP_EFORMAT,
			"ower --high to 3600 Hz or less");
		struct neap_encode_options plain = by_name(2);
		ok(neap_encode_directory(&report, folder, out, &plain));
		assert_int_equal(report.others, i == 0);
		assert_int_equal(report.damaged, i > 0);
		plain.strict = 1;
		refused(neap_encode_directory(&report, folder, out, &plain), NEAP_EFORMAT,
			odd[i].word);
		unlink(path);
	}
	/* Its name says wav, its bytes another kind, which libsndfile would decode. */
	FILE *f = fopen(in("1_vorbis_.wav"), "w");
	fwrite("OggS\0\2\0\0\0\0\0\0", 1, 12, f);
	fclose(f);
	o = by_name(2);
	o.strict = 1;
	refused(neap_encode_directory(&report, folder, out, &o), NEAP_EFORMAT,
		"does not begin as a wav file does");
	o.any_sound = 1;
	refused(neap_encode_directory(&report, folder, out, &o), NEAP_EFORMAT,
		"not a readable recording");
	unlink(in("1_vorbis_.wav"));
	f = fopen(in(".hidden"), "w");
	fclose(f);
	o = by_name(0);
	ok(neap_encode_directory(&report, folder, out, &o));
	assert_int_equal(report.damaged, 0);
	assert_true(report.files > 1);
	/* One recording; classes that are given; a list of files. */
	ok(neap_encode_directory(&report, in("0_ann_0.wav"), out, &o));
	assert_int_equal(report.files, 1);
	static const char *const given[] = {"two", "0"};
	o.classes = given;
	o.nclasses = 2;
	ok(neap_encode_directory(&report, folder, out, &o));
	assert_int_equal(report.classes, 2);
	assert_true(report.strangers > 0);
	o.strict = 1;
	refused(neap_encode_directory(&report, folder, out, &o), NEAP_EUSAGE, "--classes");
	o = by_name(0);
	const char *list = in(".list");
	o.split = &list;
	o.nsplit = 1;
	f = fopen(list, "w");
	fputs("0_ann_0.wav\r\n\n", f);
	fclose(f);
	ok(neap_encode_directory(&report, folder, out, &o));
	assert_int_equal(report.files, 1);
	int64_t unlisted = report.unlisted;
	o.without = &list;
	o.nwithout = 1;
	o.nsplit = 0;
	ok(neap_encode_directory(&report, folder, out, &o));
	assert_int_equal(report.files, unlisted);
	f = fopen(list, "w");
	fputs("0_ann_0.wav\n9_none_9.wav\n", f);
	fclose(f);
	o.nsplit = 1;
	o.nwithout = 0;
	refused(neap_encode_directory(&report, folder, out, &o), NEAP_EUSAGE, "9_none_9.wav");
	unlink(list);
	o = by_name(0);
	unlink(out);
	char empty[100];
	snprintf(empty, sizeof empty, "%s/sub", folder);
	mkdir(empty, 0700);
	refused(neap_encode_directory(&report, empty, out, &o), NEAP_EFORMAT, "is empty");
	/* A link in circles. */
	char loop[120];
	snprintf(loop, sizeof loop, "%s/loop", empty);
	assert_int_equal(symlink(empty, loop), 0);
	refused(neap_encode_directory(&report, empty, out, &o), NEAP_EFORMAT,
		"nested more than 32 deep");
	clear(empty);
	assert_int_equal(access(out, F_OK), -1);
}

/* Real speech: what the recipe's numbers were measured on. */
static void spoken_digits(void **state)
{
	(void)state;
	char dir[4200], path[4300];
	const char *data = test_data();
	snprintf(dir, sizeof dir, "%s/data/fsdd/test", data ? data : "");
	if (!data || access(dir, R_OK) != 0) {
		print_message("# SKIP no recordings at NEAP_DATA or ../shared\n");
		skip();
	}
	double events = 0, seconds = 0, active = 0;
	int files = 0;
	static const char *const who[] = {
		"george", "jackson", "lucas", "nicolas", "theo", "yweweler"};
	for (int k = 0; k < 60; k++, files++) {
		float *x;
		int64_t n;
		double rate;
		struct neap_events e;
		snprintf(path, sizeof path, "%s/%d_%s_3.wav", dir, k / 6, who[k % 6]);
		ok(neap__sound_read(&x, &n, &rate, path, 0));
		ok(neap_encode(&e, x, n, rate, NULL));
		struct neap_events *p = &e;
		double last[128];
		for (int c = 0; c < 128; c++)
			last[c] = -1;
		for (int64_t i = 0; i < p->count; i++) {
			double bin = floor(p->time[i] * 1000 + 1e-6);
			active += bin != last[p->unit[i]];
			last[p->unit[i]] = bin;
		}
		events += (double)e.count;
		seconds += e.duration;
		neap_events_free(&e);
		free(x);
	}
	double rate = events / seconds / 128, share = active / (seconds * 1000 * 128);
	print_message("# %.0f spikes a recording, %.1f a channel and second, %.2f%% active\n",
		events / files, rate, 100 * share);
	assert_true(rate > 27 && rate < 32);
	assert_true(share > 0.027 && share < 0.032);
	assert_true(events / files > 1400 && events / files < 1900);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_have_bounds),
		cmocka_unit_test(golden_chirp),
		cmocka_unit_test(rates_agree),
		cmocka_unit_test(silence_and_edges),
		cmocka_unit_test(folder_to_file),
		cmocka_unit_test(stereo_and_folders),
		cmocka_unit_test(every_frame_is_read),
		cmocka_unit_test(folder_mistakes),
		cmocka_unit_test(spoken_digits),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
