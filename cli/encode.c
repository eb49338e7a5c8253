/* SPDX-License-Identifier: Apache-2.0 */
/* encode.c: `neap encode`: turns a folder of recordings into a file of spikes. */
#include "cli.h"
#include "json_report.h"

#include <neap/data.h>

#include <inttypes.h>
#include <time.h>
#include <unistd.h>

static const char examples[] =
	"  neap encode digits/train --out train.h5 --label '([0-9]+)_.*' \\\n"
	"      --speaker '[0-9]+_([a-z]+)_.*'\n"
	"  neap encode commands --out commands.h5 --channels 256 --high 7000\n"
	"  neap encode digits/train --out long.h5 --label '([0-9]+)_.*' --concat 10s\n"
	"  (without --label, a recording's class is the folder it is in)\n";

struct encode_request {
	struct neap_encode_options options;
	const char *out;
	int json, force;
};

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int show(void *user, int64_t done, int64_t total)
{
	cli_progress_show(user, (double)done, (double)total, NULL);
	return cli_interrupted();
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
	neap__json_end(to, '}');
	return cli_json_print(to, "encode");
}

static int report_text(const struct neap_encode_report *r, const char *out, double seconds)
{
	char room[NEAP__PLAIN_TEXT];
	char took[24], audio[24], left[24], speakers[40] = "";
	if (r->speakers)
		snprintf(speakers, sizeof speakers, ", %d speakers", r->speakers);
	printf("%s: %" PRId64 " recordings (%s), %d classes%s\n", neap__plain_text(room, out),
		r->files, cli_show_time(audio, r->seconds_of_audio), r->classes, speakers);
	printf("%.0f spikes a recording, %.2f%% of (channel, 1 ms) bins active; %s, %.0f times "
	       "real "
	       "time\n",
		(double)r->events / (double)r->files, 100 * r->active, cli_show_time(took, seconds),
		r->seconds_of_audio / seconds);
	if (r->samples != r->files)
		printf("%" PRId64 " samples of one length; %s of the recordings made none\n",
			r->samples, cli_show_time(left, r->seconds_left));
	return cli_finish("encode");
}

static int encode(struct encode_request *r, const char *dir)
{
	struct cli_progress progress;
	struct neap_encode_report report = {.size = sizeof report};
	if (!r->force && access(r->out, F_OK) == 0)
		return cli_usage("encode", "'%s' exists; --force replaces it", r->out);
	cli_catch_signals();
	cli_progress_start(&progress, "encode", "files");
	r->options.progress = show;
	r->options.user = &progress;
	double started = now();
	int rc = neap_encode_directory(&report, dir, r->out, &r->options);
	double seconds = now() - started;
	cli_progress_clear(&progress);
	if (rc < 0)
		return cli_fail("encode", rc);
	return r->json ? report_json(&report, r->out, seconds)
		       : report_text(&report, r->out, seconds);
}

int cli_encode(int argc, char **argv)
{
	struct encode_request r = {.options = {.size = sizeof r.options}};
	struct neap_encode_options *o = &r.options;
	/* clang-format off */
	const struct cli_option options[] = {
		CLI_GROUP("Files and names"),
		{.name = "out", .letter = 'o', .kind = CLI_TEXT, .into = &r.out, .argument = "FILE.h5",
			.help = "where the spikes go"},
		{.name = "label", .kind = CLI_TEXT, .into = &o->label, .argument = "REGEX",
			.help = "on the file name: group 1 is the class [the folder]"},
		{.name = "speaker", .kind = CLI_TEXT, .into = &o->speaker, .argument = "REGEX",
			.help = "on the file name: group 1 is the speaker [none]"},
		CLI_GROUP("The ear"),
		{.name = "channels", .kind = CLI_COUNT, .into = &o->encoder.channels,
			.argument = "N", .help = "of the ear [128]", .low = 1, .high = 700},
		{.name = "low", .kind = CLI_NUMBER, .into = &o->encoder.low, .argument = "HZ",
			.help = "centre of the lowest channel [80]", .low = 1, .high = 1e6},
		{.name = "high", .kind = CLI_NUMBER, .into = &o->encoder.high, .argument = "HZ",
			.help = "centre of the highest, at most 0.45 of the sampling rate [3600]",
			.low = 2, .high = 1e6},
		{.name = "concat", .kind = CLI_TIME, .into = &o->concat, .argument = "TIME",
			.unit = "s",
			.help = "samples so long, of a class's and speaker's recordings end to end [no]",
			.low = 1e-3, .high = 1e5},
		CLI_GROUP("Reading and reporting"),
		{.name = "any-sound", .kind = CLI_FLAG, .into = &o->any_sound,
			.help = "read every kind of sound file that libsndfile knows (ogg, mp3, ...)"},
		{.name = "threads", .kind = CLI_COUNT, .into = &o->threads, .argument = "N",
			.help = "[one a processor]", .low = 1, .high = 1024},
		{.name = "force", .kind = CLI_FLAG, .into = &r.force,
			.help = "replace FILE.h5 if it exists"},
		CLI_JSON_OPTION(r.json),
		{0},
	};
	/* clang-format on */
	const struct cli_command command = {"encode", "DIR",
		"turns a folder of recordings (wav, flac, aiff) into spikes, in the HDF5 layout "
		"of\n"
		"the Heidelberg Digits: filters spaced as in the ear, compression, lateral\n"
		"inhibition, one integrate-and-fire neuron a channel.",
		examples, options, 1, 1};
	const char *dir;
	int parsed = cli_parse(&command, argc, argv, &dir);
	if (parsed < 0)
		return CLI_ENDED(parsed);
	if (!r.out)
		return cli_usage("encode", "--out is missing: the file to write");
	return encode(&r, dir);
}
