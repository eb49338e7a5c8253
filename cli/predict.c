/* SPDX-License-Identifier: Apache-2.0 */
/* predict.c: `neap predict`: a line a sample or step with what a trained net answers. */
#include "net_options.h"
#include "answer_files.h"
#include "figure_file.h"
#include "json_report.h"
#include "predict_traces.h"
#include "sample_figure.h"
#include "base/fail.h"
#include "base/quote.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <neap/train.h>

static const char examples[] = "  neap predict run test.h5\n"
			       "  neap predict run test.h5 --out answers.csv\n"
			       "  neap predict run test.h5 --out answers.npz\n"
			       "  neap predict run test.h5 --softmax\n"
			       "  neap predict run test.h5 --json | head\n"
			       "  neap predict run test.h5 --spikes spikes.npz --membranes u.npz\n"
			       "  neap predict run test.h5 --sample 3 --plot sample.svg\n"
			       "  neap predict run table.csv\n"
			       "  neap predict run five.wav six.wav\n"
			       "  neap predict run recordings --out answers.csv\n"
			       "  arecord -d 1 -f S16_LE -r 8000 | neap predict run -\n"
			       "  neap predict run hour.wav --every 1s\n"
			       "  arecord -f S16_LE -r 8000 | neap predict run - --every 100ms\n";

/* What is reported at the end: inputs that were skipped, and names that are missing. */
struct at_end {
	size_t count; /* of skipped inputs */
	int code;
	int unnamed; /* 1: a sample has a name, but the lines have no column for it */
	char why[NEAP__PLAIN_TEXT]; /* the line about the first one */
	char others[200];	    /* names of the next ones, as many as fit */
	size_t listed;		    /* their number */
	int64_t samples;	    /* that were answered */
};

struct predicting {
	struct neap_eval_options options;
	struct cli_progress bar;
	struct cli_sample_figure *figure; /* NULL: none */
	int json;
	int headed;	    /* the first line of CSV is written */
	int has_recordings; /* with the column of samples' names */
	int deaf;	    /* nobody reads the lines any more */
	struct cli_answer_files files;
	struct at_end *at_end;
	const char *shown; /* name of the file that is answered for, if answers show it; NULL */
	int64_t before;	   /* samples of the files before it */
	int64_t samples;   /* of this file, so far */
	int64_t answered;  /* of all files: samples with an answer */
	int64_t last;	   /* index of the one answered last in this file; -1: none */
	size_t files_done;
	int (*write)(void *file, const char *text, size_t length);
	void *file;
};

/* The command line, which the options fill. */
static struct {
	struct predicting p;
	struct cli_given_model model;
	struct cli_traces traces;
	const char *out;
} given = {.p.options = {.size = sizeof given.p.options}, .out = "-"};

/* clang-format off */
static const struct cli_option options[] = {
	CLI_GROUP("Output"),
	{.name = "out", .letter = 'o', .kind = CLI_TEXT, .into = &given.out, .argument = "FILE",
		.help = "file to write, replaced if it exists: .csv for lines, .npz for NumPy arrays, - for "
			"standard output (default -)"},
	{.name = "json", .kind = CLI_FLAG, .into = &given.p.json,
		.help = "print one JSON object per line instead of CSV"},
	{.name = "softmax", .kind = CLI_FLAG, .into = &given.p.options.softmax,
		.help = "write probabilities of the classes: the softmax of the scores (default: the scores)"},
	CLI_TRACE_OPTIONS(given.p.options, given.traces),
	CLI_GROUP("Decisions on the way"),
	{.name = "every", .kind = CLI_TIME, .into = &given.p.options.every, .argument = "TIME", .unit = "ms",
		.help = "interval at which the answer so far is printed within a sample or sound, and "
			"at its end (default: none)",
		.low = 1e-9, .high = CLI_SECONDS_MOST},
	{.name = "window", .kind = CLI_TIME, .into = &given.p.options.window, .argument = "TIME", .unit = "ms",
		.help = "duration that an answer covers, a multiple of --every (default: everything "
			"so far)",
		.low = 1e-9, .high = CLI_SECONDS_MOST},
	{.name = "level", .kind = CLI_NUMBER, .into = &given.p.options.level, .argument = "X",
		.help = "root mean square level of a sound relative to full scale (default: measured; "
			"for -: that so far)", .low = 1e-9, .high = 1e6},
	CLI_EVAL_OPTIONS(given.p.options, given.model),
	{0},
};
/* clang-format on */

static const char about[] =
	"prints one line per sample, or per step for targets per step: label, "
	"answer of "
	"the network and all scores. DATA is a data set, a text (text:FILE; the "
	"last line "
	"is about the character after its end), a "
	"table "
	"(csv, tsv), a recording (wav, flac, aiff; -: standard input), or a "
	"folder of "
	"tables or recordings; several files or a folder add the name of the file";

static int on_interrupt(void *user)
{
	(void)user;
	return cli_interrupted();
}

static int on_progress(void *user, int64_t done, int64_t total)
{
	struct predicting *p = user;
	if (p->bar.terminal && p->shown)
		cli_progress_show(&p->bar, (double)p->files_done, (double)p->files.count, p->shown);
	else if (p->bar.terminal)
		cli_progress_show(&p->bar, (double)done, (double)total, NULL);
	return cli_interrupted();
}

/* The same within a batch, also in a log, which lines of --every do without. */
static int on_advanced(void *user, double done, int64_t total)
{
	struct predicting *p = user;
	if (p->options.every <= 0 && p->shown)
		cli_progress_show(&p->bar, (double)p->files_done + done / (double)total,
			(double)p->files.count, p->shown);
	else if (p->options.every <= 0)
		cli_progress_show(&p->bar, done, (double)total, NULL);
	return cli_interrupted();
}

/* Notes about the first of several files hold for the others; warnings are printed for each. */
static void on_line(void *user, const char *line)
{
	const struct predicting *p = user;
	int quiet = cli_quiet;
	cli_quiet |= p->files_done > 0;
	cli_say_line(NULL, line);
	cli_quiet = quiet;
}

/* A field of CSV (RFC 4180), control characters as \n, \t, \xNN: quoted where it has to be. */
static void add_field(struct neap__text *line, const char *name)
{
	char room[NEAP__PLAIN_TEXT];
	const char *text = neap__escaped_text(room, name);
	if (!text[strcspn(text, ",\"")]) {
		neap__text_add(line, "%s", text);
		return;
	}
	neap__text_add(line, "\"");
	for (; *text; text++)
		neap__text_add(line, *text == '"' ? "\"\"" : "%c", *text);
	neap__text_add(line, "\"");
}

static void add_class(struct neap__text *line, const struct neap_answer *a, int class_number)
{
	const char *name = a->class_name[class_number];
	neap__text_add(line, ",");
	if (name)
		add_field(line, name);
	else
		neap__text_add(line, "%d", class_number);
}

static void add_header(
	struct neap__text *line, const struct neap_answer *a, const struct predicting *p)
{
	int numbers = cli_answer_numbers(a);
	neap__text_add(line, "%ssample%s%s%s", p->shown ? "file," : "",
		a->sample_name ? ",recording" : "", a->time > 0 ? ",time" : "",
		a->step < 0 ? "" : ",step");
	neap__text_add(line, numbers ? "" : ",label,prediction,name");
	for (int i = 0; i < a->classes; i++)
		add_class(line, a, i);
	neap__text_add(line, "\n");
}

static void add_row(
	struct neap__text *line, const struct neap_answer *a, const struct predicting *p)
{
	char room[40];
	if (p->shown) {
		add_field(line, p->shown);
		neap__text_add(line, ",");
	}
	neap__text_add(line, "%" PRId64, a->index);
	if (p->has_recordings) {
		neap__text_add(line, ",");
		add_field(line, a->sample_name ? a->sample_name : "");
	}
	if (a->time > 0)
		neap__text_add(line, ",%s", neap__json_exact(room, a->time));
	if (a->step >= 0)
		neap__text_add(line, ",%" PRId64, a->step);
	if (!cli_answer_numbers(a)) {
		neap__text_add(line, ",");
		if (a->label >= 0)
			neap__text_add(line, "%d", a->label);
		neap__text_add(line, ",%d", a->prediction);
		add_class(line, a, a->prediction);
	}
	for (int i = 0; i < a->classes; i++)
		neap__text_add(line, ",%s", neap__json_exact(room, a->score[i]));
	neap__text_add(line, "\n");
}

static int on_step(void *user, const struct neap_step_view *view)
{
	return cli_sample_figure_step(((struct predicting *)user)->figure, view);
}

static int writes_more(const struct predicting *p)
{
	return p->figure || p->options.spikes || p->options.membranes;
}

/* A sample has an answer, or one per step. */
static void count_answer(struct predicting *p, const struct neap_answer *answer)
{
	p->samples = answer->index + 1;
	p->answered += answer->index != p->last;
	p->last = answer->index;
}

/* Writes a line as JSON or CSV. 0, or a negative code. */
static int on_answer(void *user, const struct neap_answer *answer)
{
	struct predicting *p = user;
	struct neap__json object = {0};
	struct neap__text *line = &object.text;
	struct neap_answer counted = *answer, *a = &counted;

	count_answer(p, answer);
	a->index += p->before;
	if (p->json) {
		cli_json_answer(&object, a, p->shown);
		neap__text_add(line, "\n");
	} else {
		if (!p->headed) {
			p->has_recordings = a->sample_name != NULL;
			add_header(line, a, p);
		}
		p->headed = 1;
		p->at_end->unnamed |= a->sample_name && !p->has_recordings;
		add_row(line, a, p);
	}
	int rc = line->error ? line->error
		 : p->deaf   ? 0
			     : p->write(p->file, line->data, line->length);
	neap__json_free(&object);
	/* Archives and figures are made, even if the reader of the lines leaves. */
	p->deaf |= rc == -EPIPE && writes_more(p);
	rc = p->deaf ? 0 : rc;
	return rc == 0 && p->figure ? cli_sample_figure_answer(p->figure, answer) : rc;
}

static int on_array(void *user, const struct neap_answer *answer)
{
	struct predicting *p = user; /* the library writes the answer */
	count_answer(p, answer);
	return p->figure ? cli_sample_figure_answer(p->figure, answer) : 0;
}

static int is_archive(const char *path)
{
	size_t n = strlen(path);
	return n > 4 && strcmp(path + n - 4, ".npz") == 0;
}

/* What is not read back by its ending is refused. CLI_DONE or one line. */
static int check_ending(const char *path, int json)
{
	static const char *const lines[] = {".json", ".jsonl", ".ndjson"};
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');

	if (!dot || dot == name || is_archive(path) || (!json && strcmp(dot, ".csv") == 0))
		return CLI_DONE;
	for (size_t i = 0; json && i < sizeof lines / sizeof lines[0]; i++)
		if (strcmp(dot, lines[i]) == 0)
			return CLI_DONE;
	return cli_usage("predict", "--out: '%s' must end in %s", path,
		json ? ".json, .jsonl or .ndjson with --json"
		     : ".csv or .npz, or with --json in .json, .jsonl or .ndjson");
}

static int run_file(struct predicting *p)
{
	struct neap_eval_result result = {.size = sizeof result};
	char room[NEAP__PLAIN_TEXT];
	int rc = neap_eval(&result, &p->options);

	if (rc >= 0 && result.level > 0 && p->options.level <= 0 && !cli_quiet) {
		cli_progress_clear(&p->bar);
		fprintf(stderr, "level %.4g of %s%s%s (--level)\n", result.level,
			p->shown ? "'" : "",
			p->shown ? neap__plain_text(room, p->shown) : "the recording",
			p->shown ? "'" : "");
	}
	neap_eval_result_free(&result);
	return rc;
}

/* 1: of several files, one that cannot be answered for, which does not stop the others. */
static int is_skipped(struct predicting *p, int rc)
{
	struct at_end *at_end = p->at_end;

	if (p->files.count < 2 || rc >= 0 || !cli_is_bad_input(rc) || p->deaf)
		return 0;
	if (at_end->count++ > 0) {
		const char *name = neap__quoted(p->files.path[p->files_done]);
		size_t n = strlen(at_end->others);
		if (n + strlen(name) + 3 < sizeof at_end->others && ++at_end->listed)
			snprintf(at_end->others + n, sizeof at_end->others - n, "%s%s",
				n ? ", " : "", name);
		return 1;
	}
	char room[sizeof at_end->why];
	at_end->code = rc;
	snprintf(at_end->why, sizeof at_end->why, "%s",
		cli_answer_files_all(
			room, sizeof room, &p->files, p->files.path[p->files_done], neap_detail()));
	return 1;
}

/* The one line about files that were skipped. */
static void say_skipped(const struct predicting *p)
{
	struct at_end *at_end = p->at_end;
	char room[NEAP__PLAIN_TEXT];

	if (p->at_end->unnamed)
		fputs("warning: samples have names, but there is no column for them, since those "
		      "of "
		      "the first file have none. Pass a file with names first, or --json\n",
			stderr);
	if (at_end->count > 0) {
		fprintf(stderr, "warning: %zu of %zu files skipped%s%s%s. The first: %s\n",
			at_end->count + p->files.skipped, p->files.count + p->files.skipped,
			at_end->listed ? ", also " : "", neap__plain(at_end->others),
			at_end->count > at_end->listed + 1 ? " and more" : "",
			neap__plain_text(room, at_end->why));
	} else if (p->files.skipped > 0 && !cli_quiet) {
		fprintf(stderr, "%zu file%s of other kinds skipped\n", p->files.skipped,
			p->files.skipped == 1 ? "" : "s");
	}
}

static int run(struct predicting *p)
{
	int rc = 0;

	p->options.user = p;
	cli_progress_start(&p->bar, "predict", p->files.named ? "files" : "samples");
	if (p->options.every > 0) /* lines come while the sample is run */
		p->bar.terminal = 0;
	for (; p->files_done < p->files.count && rc >= 0; p->files_done++) {
		p->options.data = p->files.path[p->files_done];
		p->shown = p->files.named ? p->options.data : NULL;
		p->samples = 0;
		p->last = -1;
		rc = run_file(p);
		p->before += p->samples;
		p->at_end->samples = p->answered;
		if (is_skipped(p, rc))
			rc = 0;
	}
	cli_progress_clear(&p->bar);
	if (rc == NEAP_EINTERRUPTED && p->files.count > 1)
		return neap__fail(rc, "interrupted after %" PRId64 " sample%s, in file %zu of %zu",
			p->before, p->before == 1 ? "" : "s", p->files_done, p->files.count);
	if (rc < 0 || p->at_end->count == 0 || p->at_end->count < p->files.count)
		return rc;
	return neap__fail(p->at_end->code, "none of the %zu files can be used. The first: %s",
		p->files.count, p->at_end->why);
}

/* What was written, on standard output as encode and plot do; with --json an object. CLI_DONE or
 * one line. */
static int say_written(const struct predicting *p, const char *out)
{
	const struct at_end *at_end = p->at_end;
	char room[NEAP__PLAIN_TEXT];
	struct neap__json object = {0};

	if (cli_is_output(out) || cli_quiet)
		return CLI_DONE;
	if (p->json) {
		neap__json_begin(&object, NULL, '{');
		neap__json_text(&object, "out", out);
		neap__json_int(&object, "samples", at_end->samples);
		neap__json_end(&object, '}');
		if (!object.text.error)
			printf("%s\n", object.text.data);
		neap__json_free(&object);
		return cli_finish("predict");
	}
	printf("%s: answers for %" PRId64 " sample%s", neap__plain_text(room, out), at_end->samples,
		at_end->samples == 1 ? "" : "s");
	if (p->files.named)
		printf(" in %zu file%s", p->files.count - at_end->count,
			p->files.count - at_end->count == 1 ? "" : "s");
	printf("\n");
	return cli_finish("predict");
}

static int write_arrays(struct predicting *p, const char *path)
{
	if (p->json)
		return cli_usage("predict",
			"--json writes lines, but '%s' is an archive of arrays. Remove --json, or "
			"pass --out FILE.json",
			path);
	if (p->files.named)
		return cli_usage("predict",
			"--out '%s' holds the answers for one file, but several are given. Pass "
			"--out FILE.csv, which names the file of each answer",
			path);
	p->options.arrays = path;
	p->options.answered = on_array;
	int rc = run(p);
	return rc < 0 ? cli_fail("predict", rc) : CLI_DONE;
}

static int make(
	const void *user, int (*write)(void *file, const char *text, size_t length), void *file)
{
	struct predicting p = *(const struct predicting *)user;

	p.write = write;
	p.file = file;
	return run(&p);
}

/*
 * Before several files: what is wrong with the model is no fault of theirs. A graph in NIR that is
 * there is left to the evaluation, which knows the kind of its inputs. CLI_DONE or one line.
 */
static int check_model(const struct predicting *p)
{
	const struct neap_model_options from = {.size = sizeof from, .path = p->options.model};
	struct neap_model *model;

	if (!p->files.named || (cli_ends_in(from.path, ".nir") && access(from.path, R_OK) == 0))
		return CLI_DONE;
	int rc = neap_model_open(&model, &from);
	if (rc < 0)
		return cli_fail("predict", rc);
	neap_model_close(model);
	return CLI_DONE;
}

/* The model, the files, the traces. CLI_DONE or one line. */
static int take_files(struct predicting *p, int parsed, const char *const *named)
{
	struct neap_eval_options *o = &p->options;
	const struct cli_traces *traces = &given.traces;
	int models = given.model.from == NULL;
	int code = cli_take_model(o, &given.model, parsed, 1, named, "predict");

	if (code == CLI_DONE)
		code = cli_answer_files(&p->files, named + models, parsed - models, "predict");
	if (code == CLI_DONE && p->files.named &&
		(traces->sample_given || o->spikes || o->membranes || traces->plot))
		code = cli_usage("predict",
			"--sample, --spikes, --membranes and --plot apply to one file, but several "
			"are given. Pass one of them");
	if (code == CLI_DONE)
		code = check_model(p);
	return code == CLI_DONE ? cli_traces_take(o, &given.traces) : code;
}

/* What the table of options cannot check. CLI_DONE or one line. */
static int check_options(const struct predicting *p, const char *out)
{
	const struct neap_eval_options *o = &p->options;

	if (o->window > 0 && o->every <= 0)
		return cli_usage("predict",
			"--window requires --every, the interval at which answers are printed");
	if (o->level > 0 && o->every <= 0)
		return cli_usage("predict",
			"--level requires --every, the interval at which answers are printed");
	for (size_t i = 0; i < p->files.count; i++) {
		const char *read = p->files.path[i];
		int code = cli_check_output("out", out, read, "predict");
		if (code == CLI_DONE)
			code = cli_check_output("spikes", o->spikes, read, "predict");
		if (code == CLI_DONE)
			code = cli_check_output("membranes", o->membranes, read, "predict");
		if (code != CLI_DONE)
			return code;
	}
	return check_ending(out, p->json);
}

static int predict(struct predicting *p)
{
	cli_catch_signals();
	p->figure = given.traces.figure;
	if (p->figure)
		p->options.stepped = on_step;
	return is_archive(given.out) ? write_arrays(p, given.out)
				     : cli_write_file("out", given.out, "predict", make, p);
}

int cli_predict(int argc, char **argv)
{
	struct predicting *p = &given.p;
	struct at_end at_end = {0};
	const char **named = calloc((size_t)argc + 1, sizeof *named);
	const struct cli_command command = {.name = "predict",
		.arguments = "RUN DATA...",
		.about = about,
		.examples = examples,
		.options = options,
		.least = 0,
		.most = argc};
	int code = CLI_FAILED;

	p->at_end = &at_end;
	p->options.progress = on_progress;
	p->options.advanced = on_advanced;
	p->options.answered = on_answer;
	p->options.of_steps = 1;
	p->options.say = on_line;
	p->options.interrupted = on_interrupt;
	if (!named)
		cli_usage("predict", "not enough memory for the arguments");
	if (named) {
		int parsed = cli_parse(&command, argc, argv, named);
		code = parsed < 0 ? CLI_ENDED(parsed) : take_files(p, parsed, named);
	}
	if (code == CLI_DONE)
		code = check_options(p, given.out);
	if (code == CLI_DONE)
		code = predict(p);
	code = cli_traces_end(&given.traces, code);
	if (code == CLI_DONE) {
		say_skipped(p);
		code = say_written(p, given.out);
	}
	cli_answer_files_free(&p->files);
	free(named);
	return code;
}
