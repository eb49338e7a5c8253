/* SPDX-License-Identifier: Apache-2.0 */
/* encode.c: `neap encode`: turns recordings, of sounds or of events, into a file of spikes. */
#include "cli.h"
#include "figure_file.h"
#include "json_report.h"
#include "rank_process.h"
#include "base/quote.h"
#include "base/text.h"

#include <neap/data.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char examples[] =
	"  neap encode digits/train --out train.h5 --label '([0-9]+)_.*' \\\n"
	"      --speaker '[0-9]+_([a-z]+)_.*'\n"
	"  neap encode commands --out commands.h5 --channels 256 --high 7000\n"
	"  neap encode commands --out commands.h5 --channels 700 --pool 5\n"
	"  neap encode digits/train --out long.h5 --label '([0-9]+)_.*' --concat 10s\n"
	"  neap encode commands --out valid.h5 --split commands/validation_list.txt\n"
	"  neap encode commands --out train.h5 --classes words.txt \\\n"
	"      --without commands/validation_list.txt \\\n"
	"      --without commands/testing_list.txt\n"
	"  neap encode hello.wav --out hello.h5\n"
	"  neap encode N-MNIST/Train --out train.h5 --pool 2\n"
	"  neap encode recordings --out train.h5 --sensor 128x128 --pool 4\n"
	"  neap encode events.npz --out train.h5 --sensor 34x34 --classes 10\n"
	"  neap encode series.csv --out series.h5 --sample-column id --target state\n"
	"  neap encode gestures/train --out train.h5 --drop time\n"
	"  (without --label, the class of a file is the folder it is in)\n";

enum { MOST_PATHS = 256 /* of a shell's pattern, to be refused with advice */ };

struct encode_request {
	struct neap_encode_options options;
	struct neap_event_options events;
	struct neap_table_options table;
	const char *out, *sensor, *crop, *classes;
	struct cli_list split, without;
	const char *dir;
	int is_long, parts_doubted; /* 1: recordings or events; doubt_parts is done */
	const char *given;	    /* the options as words of a command, for advice */
	int json, force, polarity, header, missing, strict;
	struct cli_skipped skipped;
	char *text;  /* of --classes */
	char **name; /* the names in it */
	int names;
	struct cli_progress progress;
};
/* The command line, which the options fill. */
static struct encode_request given = {.options = {.size = sizeof given.options},
	.events = {.size = sizeof given.events},
	.table = {.size = sizeof given.table}};
static const char *const missing[] = {"error", "previous", "zero", "drop", NULL};
static const char *const headers[] = {"auto", "yes", "no", NULL};
static const char *const polarities[] = {"split", "merge", "on", "off", NULL};

/* clang-format off */
static const struct cli_option options[] = {
	CLI_GROUP("Files and names"),
	{.name = "out", .letter = 'o', .kind = CLI_TEXT, .into = &given.out, .argument = "FILE.h5",
		.help = "data set to write; required"},
	{.name = "label", .kind = CLI_TEXT, .into = &given.options.label, .argument = "REGEX",
		.help = "regular expression on the file name whose group 1 is the class (default: the "
			"folder)"},
	{.name = "speaker", .kind = CLI_TEXT, .into = &given.options.speaker, .argument = "REGEX",
		.help = "regular expression on the file name whose group 1 is the speaker (default: "
			"none)"},
	{.name = "classes", .kind = CLI_TEXT, .into = &given.classes, .argument = "FILE|N",
		.help = "file of the class names in their order, one per line, or N for classes 0 to "
			"N-1 (default: those found)"},
	{.name = "split", .kind = CLI_LIST, .into = &given.split, .argument = "FILE",
		.help = "list of the files to encode, one path per line; repeatable (default: all); "
			"train or test of N-TIDIGITS"},
	{.name = "without", .kind = CLI_LIST, .into = &given.without, .argument = "FILE",
		.help = "list of files to leave out, one path per line; repeatable (default: none)"},
	{.name = "strict", .kind = CLI_FLAG, .into = &given.strict,
		.help = "stop at files that are not recordings, are damaged or have another class "
			"(default: skip them)"},
	CLI_GROUP("The ear"),
	{.name = "channels", .kind = CLI_COUNT, .into = &given.options.encoder.channels,
		.argument = "N", .help = "channels of the ear (default 128)", .low = 1, .high = 700},
	{.name = "low", .kind = CLI_NUMBER, .into = &given.options.encoder.low, .argument = "HZ",
		.help = "centre frequency of the lowest channel in Hz (default 80)", .low = 1, .high = 1e6},
	{.name = "high", .kind = CLI_NUMBER, .into = &given.options.encoder.high, .argument = "HZ",
		.help = "centre frequency of the highest channel in Hz, at most 0.45 of the sampling "
			"rate (default 3600)",
		.low = 2, .high = 1e6},
	{.name = "concat", .kind = CLI_TIME, .into = &given.options.concat, .argument = "TIME",
		.unit = "s",
		.help = "duration of a sample, concatenated from recordings of one class and speaker "
			"(default: one recording per sample)",
		.low = 1e-3, .high = 1e5},
	CLI_GROUP("Recordings and events"),
	{.name = "pool", .kind = CLI_COUNT, .into = &given.events.pool, .argument = "N",
		.help = "of recordings: number of adjacent channels of the ear whose spikes share one "
			"channel of the data set; of cameras: side of the squares of pixels that share "
			"a channel (default 1)",
		.low = 1, .high = 65536},
	CLI_GROUP("Events of cameras and the like"),
	{.name = "sensor", .kind = CLI_TEXT, .into = &given.sensor, .argument = "WxH",
		.help = "width and height of the event camera in pixels (default: as in the file)"},
	{.name = "crop", .kind = CLI_TEXT, .into = &given.crop, .argument = "WxH+X+Y",
		.help = "part of the sensor to use (default: all)"},
	{.name = "polarity", .kind = CLI_CHOICE, .into = &given.polarity, .argument = "WHAT",
		.help = "polarities to use, split into two channels per pixel, merged, or one alone",
		.choices = polarities,
		.differ = "split and merge keep all events; on and off drop one polarity"},
	{.name = "time-unit", .kind = CLI_TIME, .into = &given.events.time_unit, .argument = "TIME", .unit = "us",
		.help = "unit of the times in arrays and text (default: 1us for integers, 1s for floats)", .low = 1e-12, .high = 1e5},
	{.name = "from-first-event", .kind = CLI_FLAG, .into = &given.events.from_first,
		.help = "begin each recording at its first event, for times that count from elsewhere, "
			"such as a clock"},
	{.name = "inputs", .kind = CLI_COUNT, .into = &given.events.inputs, .argument = "N",
		.help = "number of channels of events without pixels (default: as in the file)", .low = 1, .high = 65536},
	CLI_GROUP("Tables of text"),
	{.name = "sample-column", .kind = CLI_TEXT, .into = &given.table.sample_column, .argument = "NAME",
		.help = "column that names the sample of a row (default: one sample per file)"},
	{.name = "target", .kind = CLI_TEXT, .into = &given.table.targets, .argument = "NAME[,NAME]",
		.help = "columns of targets, of the table of --labels if that is given: whole numbers and "
			"texts are classes, others numbers (default: none)"},
	{.name = "labels", .kind = CLI_TEXT, .into = &given.table.labels, .argument = "FILE.csv",
		.help = "table of targets: the name of a sample and its targets per line (default: "
			"none)"},
	{.name = "drop", .kind = CLI_TEXT, .into = &given.table.dropped, .argument = "NAME[,NAME]",
		.help = "columns to ignore, such as dates (default: none)"},
	{.name = "missing", .kind = CLI_CHOICE, .into = &given.missing, .argument = "WHAT",
		.help = "missing values of features: repeat the value of the previous row of the sample, "
			"write zero, or drop the row",
		.choices = missing},
	{.name = "numbers", .kind = CLI_FLAG, .into = &given.table.numbers,
		.help = "treat targets that are whole numbers as numbers, not as classes"},
	{.name = "header", .kind = CLI_CHOICE, .into = &given.header, .argument = "WHAT",
		.help = "whether the first row names the columns; auto: if one of its fields is not a "
			"number",
		.choices = headers},
	CLI_GROUP("Reading and reporting"),
	{.name = "any-sound", .kind = CLI_FLAG, .into = &given.options.any_sound,
		.help = "read every kind of sound file that libsndfile knows (ogg, mp3, ...)"},
	{.name = "threads", .kind = CLI_COUNT, .into = &given.options.threads, .argument = "N",
		.help = "encoding threads (default: one per processor)", .low = 1, .high = 1024},
	{.name = "force", .kind = CLI_FLAG, .into = &given.force,
		.help = "overwrite FILE.h5 if it exists"},
	CLI_JSON_OPTION(given.json),
	{0},
};
/* clang-format on */

static const struct cli_command command = {"encode", "DIR|FILE",
	"converts a recording (wav, flac, aiff) or a folder of them into spikes, in the\n"
	"HDF5 layout of the Spiking Heidelberg Digits: filters spaced as in the ear,\n"
	"compression, lateral inhibition, one integrate-and-fire neuron per channel.\n"
	"Events of cameras and the like are converted to the same layout: arrays in .npz,\n"
	".npy or HDF5, one file or a folder with a file for each recording; recordings as\n"
	"Prophesee RAW or DAT, AEDAT 4, or text (NAME_events.txt); N-MNIST, N-Caltech101,\n"
	"N-TIDIGITS and DVS Gesture (docs/events.md).\n"
	"Tables of numbers (.csv, .tsv), one or a folder of them, become HDF5 files of "
	"arrays\n"
	"(docs/data.md).",
	examples, options, 1, MOST_PATHS};

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void doubt(void *user, const char *line);

/* Once: a folder of parts, which is probably not meant to be encoded as a whole. */
static void doubt_parts(struct encode_request *r)
{
	int selected = r->split.count || r->without.count;
	if (!r->parts_doubted && !selected)
		cli_encoded_parts(r->dir,
			!r->options.label && !r->table.labels && !r->table.targets, r->given, doubt,
			r);
	r->parts_doubted = 1;
}

static int show(void *user, int64_t done, int64_t total)
{
	struct encode_request *r = user;
	if (r->is_long) /* before the time that it takes; errors of options are found by now */
		doubt_parts(r);
	if (total > 0) /* a table is counted first */
		cli_progress_show(&r->progress, (double)done, (double)total, NULL);
	return cli_interrupted();
}

static void warn(void *user, const char *line)
{
	struct encode_request *r = user;
	cli_progress_clear(&r->progress);
	cli_skipped_add(&r->skipped, line);
}

/* A line about what is probably a mistake; the encoding continues. */
static void doubt(void *user, const char *line)
{
	struct encode_request *r = user;
	char room[NEAP__PLAIN_TEXT];
	cli_progress_clear(&r->progress);
	fprintf(stderr, "neap encode: warning: %s\n", neap__plain_text(room, line));
}

/* Lists how many files were skipped, if any were; damaged[1]: of too low a sampling rate. */
static void show_skipped(int64_t others, const char *other, const int64_t damaged[2],
	int64_t strangers, int64_t unlisted)
{
	char room[NEAP__PLAIN_TEXT], kinds[NEAP_SKIPPED_NAME + 64];
	snprintf(kinds, sizeof kinds, "of other kinds (for example '%s')",
		neap__plain_text(room, other));
	const struct {
		int64_t count;
		const char *what;
	} row[] = {{others, kinds}, {damaged[0], "damaged"},
		{damaged[1], "with too low a sampling rate"}, {strangers, "of other classes"},
		{unlisted, "outside the split"}};
	const char *between = "skipped files: ";
	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		if (row[i].count) {
			printf("%s%" PRId64 " %s", between, row[i].count, row[i].what);
			between = ", ";
		}
	if (between[0] == ',')
		printf("\n");
}

/* What is probably a mistake in a data set that was written, unless its files were selected. */
static void doubt_written(struct encode_request *r, const char *dir)
{
	doubt_parts(r);
	if (r->split.count == 0 && r->without.count == 0)
		cli_encoded_doubts(r->out, dir, r->options.label, doubt, r);
}

static int report_json(const struct neap_encode_report *r, const char *out, double seconds)
{
	struct neap__json report = {0}, *to = &report;
	neap__json_begin(to, NULL, '{');
	neap__json_text(to, "out", out);
	neap__json_int(to, "files", r->files);
	neap__json_int(to, "samples", r->samples);
	neap__json_int(to, "classes", r->classes);
	neap__json_int(to, "speakers", r->speakers);
	neap__json_int(to, "events", r->events);
	neap__json_number(to, "spikes_per_file", (double)r->events / (double)r->files);
	neap__json_number(to, "active", r->active);
	neap__json_number(to, "seconds_of_audio", r->seconds_of_audio);
	neap__json_number(to, "seconds_left", r->seconds_left);
	neap__json_number(to, "seconds", seconds);
	neap__json_int(to, "skipped_others", r->others);
	neap__json_int(to, "skipped_damaged", r->damaged);
	neap__json_int(to, "skipped_low_rate", r->low_rates);
	neap__json_int(to, "skipped_classes", r->strangers);
	neap__json_int(to, "skipped_unlisted", r->unlisted);
	neap__json_end(to, '}');
	return cli_json_print(to, "encode");
}

static int report_text(const struct neap_encode_report *r, const char *out, double seconds)
{
	char room[NEAP__PLAIN_TEXT];
	char took[24], audio[24], left[24], speakers[40] = "";
	if (r->speakers)
		snprintf(speakers, sizeof speakers, ", %d speaker%s", r->speakers,
			r->speakers == 1 ? "" : "s");
	printf("%s: %" PRId64 " recording%s (%s), %d class%s%s\n", neap__plain_text(room, out),
		r->files, r->files == 1 ? "" : "s", neap__show_time(audio, r->seconds_of_audio),
		r->classes, r->classes == 1 ? "" : "es", speakers);
	cli_encoded_names(out);
	printf("%.0f spikes per recording, %.2f%% of (channel, 1 ms) bins active; %s, %.0f times "
	       "real time\n",
		(double)r->events / (double)r->files, 100 * r->active,
		neap__show_time(took, seconds), r->seconds_of_audio / seconds);
	if (r->samples != r->files)
		printf("%" PRId64 " sample%s of --concat; %s of the recordings left over\n",
			r->samples, r->samples == 1 ? "" : "s",
			neap__show_time(left, r->seconds_left));
	show_skipped(r->others, r->other, (int64_t[]){r->damaged, r->low_rates}, r->strangers,
		r->unlisted);
	return cli_finish("encode");
}

static int events_json(const struct neap_event_report *r, const char *out, double seconds)
{
	struct neap__json report = {0}, *to = &report;
	neap__json_begin(to, NULL, '{');
	neap__json_text(to, "out", out);
	neap__json_int(to, "samples", r->samples);
	neap__json_int(to, "classes", r->classes);
	neap__json_int(to, "channels", r->inputs);
	neap__json_int(to, "width", r->width);
	neap__json_int(to, "height", r->height);
	neap__json_int(to, "events", r->events);
	neap__json_int(to, "events_outside", r->outside);
	neap__json_int(to, "samples_empty", r->empty);
	neap__json_number(to, "longest", r->longest);
	neap__json_number(to, "seconds", seconds);
	neap__json_int(to, "skipped_others", r->others);
	neap__json_int(to, "skipped_damaged", r->damaged);
	neap__json_int(to, "skipped_classes", r->strangers);
	neap__json_int(to, "skipped_unlisted", r->unlisted);
	neap__json_end(to, '}');
	return cli_json_print(to, "encode");
}

static int events_text(const struct neap_event_report *r, const char *out, double seconds)
{
	char room[NEAP__PLAIN_TEXT], took[24], longest[24], pixels[64] = "";
	if (r->width)
		snprintf(pixels, sizeof pixels, " (%dx%d pixels)", r->width, r->height);
	printf("%s: %" PRId64 " sample%s, %d class%s, %d channels%s\n", neap__plain_text(room, out),
		r->samples, r->samples == 1 ? "" : "s", r->classes, r->classes == 1 ? "" : "es",
		r->inputs, pixels);
	cli_encoded_names(out);
	printf("%.0f events per sample, the longest %s; %s\n",
		(double)r->events / (double)r->samples, neap__show_time(longest, r->longest),
		neap__show_time(took, seconds));
	if (r->outside)
		printf("%" PRId64 " event%s dropped by --crop or --polarity\n", r->outside,
			r->outside == 1 ? " was" : "s were");
	show_skipped(r->others, r->other, (int64_t[]){r->damaged, 0}, r->strangers, r->unlisted);
	return cli_finish("encode");
}

/* "34x34" and "32x32+1+1": 1 where the whole text is one, with as many numbers as are accepted. */
static int parse_pixels(const char *text, int most, int number[4])
{
	static const char between[] = "x++";
	for (int i = 0; i < most; i++) {
		char *end;
		if (*text < '0' || *text > '9')
			return 0;
		long value = strtol(text, &end, 10);
		if (value < (i < 2) || value > 65536)
			return 0;
		number[i] = (int)value;
		if (*end == '\0' && (i == 1 || i == 3))
			return 1;
		if (i == most - 1 || *end != between[i])
			return 0;
		text = end + 1;
	}
	return 0;
}

static int settle_events(struct encode_request *r)
{
	int number[4] = {0};
	struct neap_event_options *e = &r->events;
	if (r->sensor && !parse_pixels(r->sensor, 2, number))
		return cli_usage("encode",
			"--sensor: '%s' is not WIDTHxHEIGHT in pixels, such as 34x34", r->sensor);
	e->width = number[0];
	e->height = number[1];
	memset(number, 0, sizeof number);
	if (r->crop && !parse_pixels(r->crop, 4, number))
		return cli_usage("encode",
			"--crop: '%s' is not WIDTHxHEIGHT or WIDTHxHEIGHT+X+Y in pixels, such as "
			"32x32+1+1",
			r->crop);
	e->crop_width = number[0];
	e->crop_height = number[1];
	e->crop_x = number[2];
	e->crop_y = number[3];
	e->polarity = (enum neap_polarity)r->polarity;
	e->warn = warn;
	e->doubt = doubt;
	return CLI_DONE;
}

static int encode_events(struct encode_request *r, const char *path)
{
	struct neap_event_report report = {.size = sizeof report};
	r->events.label = r->options.label;
	cli_progress_start(&r->progress, "encode", "samples");
	double started = now();
	int rc = neap_encode_events(&report, path, r->out, &r->events);
	double seconds = now() - started;
	cli_progress_clear(&r->progress);
	cli_skipped_end(&r->skipped, rc < 0);
	if (rc < 0)
		return cli_fail("encode", rc);
	doubt_written(r, path);
	return r->json ? events_json(&report, r->out, seconds)
		       : events_text(&report, r->out, seconds);
}

static int table_json(const struct neap_table_report *r, const char *out, double seconds)
{
	struct neap__json report = {0}, *to = &report;
	neap__json_begin(to, NULL, '{');
	neap__json_text(to, "out", out);
	neap__json_int(to, "files", r->files);
	neap__json_int(to, "samples", r->samples);
	neap__json_int(to, "steps", r->steps);
	neap__json_int(to, "longest", r->longest);
	neap__json_int(to, "features", r->features);
	neap__json_int(to, "classes", r->classes);
	neap__json_int(to, "numbers", r->numbers);
	neap__json_int(to, "step_targets", r->step_targets);
	neap__json_int(to, "missing_filled", r->filled);
	neap__json_int(to, "rows_left_out", r->left_out);
	neap__json_number(to, "seconds", seconds);
	neap__json_int(to, "skipped_others", r->others);
	neap__json_int(to, "skipped_classes", r->strangers);
	neap__json_int(to, "skipped_unlisted", r->unlisted);
	neap__json_end(to, '}');
	return cli_json_print(to, "encode");
}

/* `by_column`: --sample-column is given. */
static int table_text(
	const struct neap_table_report *r, const char *out, double seconds, int by_column)
{
	char room[NEAP__PLAIN_TEXT], took[24];
	char target[128] =
		"no targets (--target or --labels adds them; train --next-step needs none)";
	const char *each = r->step_targets ? "step" : "sample";
	if (r->classes)
		snprintf(target, sizeof target, "%d class%s, one per %s", r->classes,
			r->classes == 1 ? "" : "es", each);
	else if (r->numbers)
		snprintf(target, sizeof target, "%d number%s per %s as target", r->numbers,
			r->numbers > 1 ? "s" : "", each);
	printf("%s: %" PRId64 " sample%s, %d feature%s per step, %s\n", neap__plain_text(room, out),
		r->samples, r->samples == 1 ? "" : "s", r->features, r->features > 1 ? "s" : "",
		target);
	cli_encoded_names(out);
	if (r->named[0])
		printf("features: %s\n", neap__plain_text(room, r->named));
	printf("%" PRId64 " step%s, %" PRId64 " in the longest sample; %s\n", r->steps,
		r->steps == 1 ? "" : "s", r->longest, neap__show_time(took, seconds));
	if (r->filled || r->left_out)
		printf("missing values: %" PRId64 " filled in, %" PRId64 " row%s left out\n",
			r->filled, r->left_out, r->left_out == 1 ? "" : "s");
	if (r->files == 1 && r->samples == 1 && !by_column)
		puts("each row is a time step of one sample. If a column names the samples, pass "
		     "--sample-column NAME; if each row is a sample, save arrays "
		     "(docs/own-data.md)");
	show_skipped(r->others, r->other, (int64_t[]){0, 0}, r->strangers, r->unlisted);
	return cli_finish("encode");
}

static int encode_table(struct encode_request *r, const char *path)
{
	struct neap_table_report report = {.size = sizeof report};
	struct neap_table_options *t = &r->table;
	t->label = r->options.label;
	t->header = r->header == 2 ? -1 : r->header;
	t->missing = (enum neap_missing)r->missing;
	t->warn = doubt;
	cli_progress_start(&r->progress, "encode", "rows");
	double started = now();
	int rc = neap_encode_table(&report, path, r->out, t);
	double seconds = now() - started;
	cli_progress_clear(&r->progress);
	if (rc < 0)
		return cli_fail("encode", rc);
	doubt_written(r, path);
	return r->json ? table_json(&report, r->out, seconds)
		       : table_text(&report, r->out, seconds, t->sample_column != NULL);
}

/* CLI_DONE, or one line if the output cannot be written. */
static int check_out(const struct encode_request *r, int writes, const char *dir)
{
	int rc;
	static const char *const others[] = {".npz", ".npy", ".csv", ".tsv", ".txt", ".wav",
		".flac", ".aiff", ".aif", ".ogg", ".mp3"};
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (cli_ends_in(r->out, others[i]))
			return cli_usage("encode",
				"--out: '%s' has the extension of another kind of file, but encode "
				"writes HDF5. Use .h5",
				r->out);
	if (writes && (rc = cli_encoded_out(r->out)) != CLI_DONE)
		return rc;
	if (writes && (rc = cli_check_output("out", r->out, dir, "encode")) != CLI_DONE)
		return rc;
	/* A folder that does not exist is reported by its reader. */
	if (writes && !r->force && access(r->out, F_OK) == 0 && access(dir, F_OK) == 0)
		return cli_usage(
			"encode", "'%s' already exists. Pass --force to overwrite it", r->out);
	return CLI_DONE;
}

static int encode_recordings(struct encode_request *r, int writes, const char *dir)
{
	struct neap_encode_report report = {.size = sizeof report};

	cli_progress_start(&r->progress, "encode", "files");
	r->options.peers = cli_peers();
	r->options.encoder.pool = r->events.pool;
	r->options.warn = warn;
	r->options.doubt = doubt;
	double started = now();
	int rc = neap_encode_directory(&report, dir, r->out, &r->options);
	double seconds = now() - started;
	cli_progress_clear(&r->progress);
	cli_skipped_end(&r->skipped, rc < 0);
	if (rc < 0)
		return cli_fail("encode", rc);
	if (writes)
		doubt_written(r, dir);
	return r->json ? report_json(&report, r->out, seconds)
		       : report_text(&report, r->out, seconds);
}

static int encode(struct encode_request *r, const char *dir)
{
	const struct neap_peers *peers = cli_peers();
	int writes = !peers || peers->rank == 0;
	int rc = check_out(r, writes, dir);

	if (rc != CLI_DONE)
		return rc;
	cli_catch_signals();
	enum cli_encoded kind = cli_encoded_kind(dir);
	r->dir = dir;
	r->is_long = kind != CLI_TABLE;
	rc = cli_encoded_check(kind, options, dir);
	if (rc != CLI_DONE)
		return rc;
	if (kind == CLI_EVENTS) /* which rank 0 encodes alone, and tables as well */
		return writes ? encode_events(r, dir) : CLI_DONE;
	if (kind == CLI_TABLE && r->events.pool)
		return cli_usage("encode",
			"--pool applies to recordings and events, but '%s' contains tables. Remove "
			"the option",
			dir);
	if (kind == CLI_TABLE)
		return writes ? encode_table(r, dir) : CLI_DONE;
	return encode_recordings(r, writes, dir);
}

/* What the options of all kinds have in common. */
#define SHARE(o, r)                                                                                \
	((o)->split = (r)->split.text, (o)->nsplit = (r)->split.count,                             \
		(o)->without = (r)->without.text, (o)->nwithout = (r)->without.count,              \
		(o)->classes = (const char *const *)(r)->name, (o)->nclasses = (r)->names,         \
		(o)->strict = (r)->strict, (o)->progress = show, (o)->user = (r))

/* The options that say how to encode, behind blanks; `dir`: what is encoded. */
static void add_given(struct neap__text *to, int argc, char **argv, const char *dir)
{
	static const char *const others[] = {"--force", "--json", "--quiet", "-q"};

	for (int i = 1; i < argc; i++) {
		int is_other = strcmp(argv[i], dir) == 0 || strncmp(argv[i], "--out=", 6) == 0 ||
			       (strncmp(argv[i], "-o", 2) == 0 && argv[i][2]);
		for (size_t k = 0; k < sizeof others / sizeof others[0]; k++)
			is_other |= strcmp(argv[i], others[k]) == 0;
		if (strcmp(argv[i], "--out") == 0 || strcmp(argv[i], "-o") == 0)
			i++;
		else if (!is_other)
			neap__text_add(to, " %s", neap__word(argv[i]));
	}
}

int cli_encode(int argc, char **argv)
{
	struct encode_request *r = &given;
	const char *dir[MOST_PATHS];
	struct neap__text words = {0};
	int parsed = cli_parse(&command, argc, argv, dir);

	if (parsed < 0)
		return CLI_ENDED(parsed);
	if (parsed > 1)
		return cli_encoded_several(dir[0], dir[1], r->table.targets || r->table.dropped);
	if (!r->out)
		return cli_usage(
			"encode", "--out is missing. Pass the file to write: --out FILE.h5");
	cli_repeat_encode(options, dir[0], r->out, argc, argv);
	int rc = r->split.count ? cli_encoded_split(r->split.text[0]) : CLI_DONE;
	if (rc == CLI_DONE)
		rc = settle_events(r);
	if (rc == CLI_DONE)
		rc = cli_encoded_classes(&r->name, &r->names, &r->text, r->classes, dir[0]);
	add_given(&words, argc, argv, dir[0]);
	r->given = words.data && !words.error ? words.data : "";
	SHARE(&r->options, r);
	SHARE(&r->events, r);
	SHARE(&r->table, r);
	if (rc == CLI_DONE)
		rc = encode(r, dir[0]);
	cli_repeat_encode(NULL, NULL, NULL, 0, NULL);
	free(r->text);
	free(r->name);
	neap__text_free(&words);
	return rc;
}
