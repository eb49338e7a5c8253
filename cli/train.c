/* SPDX-License-Identifier: Apache-2.0 */
/* train.c: `neap train`: learns a data set within a budget of bytes. */
#include "base/quote.h"
#include "data/missing_file.h"
#include "data/recordings.h"
#include "net_options.h"
#include "confusion.h"
#include "json_report.h"
#include "process_report.h"
#include "rank_process.h"
#include "train/reports/result_json.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char examples[] =
	"  neap train train.h5 --test test.h5 --memory 16M --epochs 30 --out run\n"
	"  neap train randman --net lif:128r,li --memory 4M --epochs 10\n"
	"  neap train train.h5 --dt 0.1ms --memory 8M --slow /var/tmp --strategy double\n"
	"  neap train train.h5 --shift 2 --jitter 2ms --stretch 0.9:1.1 --epochs 60\n"
	"  neap train more.h5 --from run --freeze layer0 --lr 0.001 --out tuned\n"
	"  neap train more.h5 --from net.nir --dt 0.1ms --out tuned\n"
	"  neap train --config run/run.json --epochs 60 --out longer\n"
	"  neap train --out run --resume\n";

struct train_command {
	struct cli_progress bar;
	const struct neap_train_options *options;
	double first; /* samples done before this session */
	int json;     /* 1: standard output is for the report alone */
};

/* The command line, which the options fill. */
static struct {
	struct neap_train_options o;
	struct cli_net_choices choices;
	const char *chain, *stretch, *text, *config;
	int64_t seed;
	int json, seed_given, gain_given;
} given = {.o = NEAP_TRAIN_OPTIONS_INIT, .seed = 1};

#define CLI_PARAMS given.o.sweep.params
/* clang-format off */
static const struct cli_option options[] = {
	CLI_GROUP("The run"),
	{.name = "out", .letter = 'o', .kind = CLI_TEXT, .into = &given.o.out, .argument = "FOLDER",
		.help = "folder of the run (default neap-run)"},
	{.name = "resume", .kind = CLI_FLAG, .into = &given.o.resume,
		.help = "continue the run in the folder with its data and settings; --epochs may be "
			"increased, and the options of memory, plan and threads may change"},
	{.name = "config", .kind = CLI_TEXT, .into = &given.config, .argument = "FILE",
		.help = "JSON file of options: the run.json of a run, or an object such as {\"tau\": "
			"\"10ms\"}; options on the command line override them (default: none)"},
	{.name = "from", .kind = CLI_TEXT, .into = &given.o.from, .argument = "FILE",
		.help = "start from the network and the weights of a run, a .safetensors file or a "
			"NIR graph; other options on the command line override the network's "
			"(default: new weights)"},
	{.name = "fresh-readout", .kind = CLI_FLAG, .into = &given.o.fresh_readout,
		.help = "with --from: initialize a new readout; the number of classes may differ"},
	{.name = "freeze", .kind = CLI_TEXT, .into = &given.o.net.freeze, .argument = "LIST",
		.help = "layers or tensors that are not trained, such as layer0,readout.bias "
			"(default: none)"},
	{.name = "test", .kind = CLI_TEXT, .into = &given.o.test, .argument = "DATA",
		.help = "test set, evaluated once after the last epoch (default: none)"},
	CLI_SWEEP_OPTIONS(given.o.sweep, given.chain),
	{.name = "strategy", .kind = CLI_TEXT, .into = &given.o.sweep.strategy,
		.argument = "NAME", .help = "strategy of the plan (default auto)",
		.names = neap_strategy_name},
	CLI_NET_OPTIONS(given.o.net, given.choices),
	{.name = "gain", .kind = CLI_NUMBER, .into = &given.o.gain, .argument = "X",
		.help = "rescale the initial weights so that membrane potentials have standard "
			"deviation X on the training data, in units of the threshold; layers with "
			"an explicit scale= are not rescaled (default 0.55; 0 or --scale: off)",
		.high = 1e6, .given = &given.gain_given},
	{.name = "readout-gain", .kind = CLI_NUMBER, .into = &given.o.readout_gain, .argument = "X",
		.help = "multiply the initial weights of the readout, and their updates, by X; auto: "
			"for --readout sum, a factor below 1 if samples have many spikes "
			"(default 0: no factor, as 1)",
		.high = 1e6, .minus_one = "auto", .wrong = "auto chooses it from the data"},
	CLI_LOSS_OPTIONS(given.o.loss, given.o.rates),
	CLI_GROUP("Learning"),
	{.name = "epochs", .kind = CLI_COUNT, .into = &given.o.epochs, .argument = "N",
		.help = "passes over the training data (default 30)", .low = 1, .high = 1e9},
	{.name = "batch", .kind = CLI_COUNT, .into = &given.o.batch, .argument = "N",
		.help = "samples per batch (default 32)", .low = 1, .high = CLI_BATCH_MOST},
	{.name = "lr", .alias = "learning-rate", .kind = CLI_NUMBER, .into = &given.o.learning_rate, .argument = "X",
		.help = "learning rate (default 0.004)", .high = 1e6},
	{.name = "optimizer", .kind = CLI_TEXT, .into = &given.o.optimizer, .argument = "NAME",
		.help = "optimizer", .names = neap_optimizer_name},
	{.name = "momentum", .kind = CLI_NUMBER, .into = &given.o.momentum, .argument = "X",
		.help = "momentum of sgd (default 0.9)", .high = 1},
	{.name = "weight-decay", .kind = CLI_NUMBER, .into = &given.o.weight_decay,
		.argument = "X", .help = "weight decay coefficient, as in torch.optim (default 0)", .high = 1e6},
	{.name = "schedule", .kind = CLI_TEXT, .into = &given.o.schedule, .argument = "NAME",
		.help = "schedule of the learning rate; cooldown: --lr for 60% of the updates, then a "
			"linear fall to 0", .names = neap_learning_rate_name},
	{.name = "warmup", .kind = CLI_INT, .into = &given.o.warmup, .argument = "N",
		.help = "updates over which the learning rate rises from 0 (default 50, but at most "
			"two epochs)", .high = CLI_STEPS_MOST, .wrong = "It counts updates, not time"},
	{.name = "clip", .kind = CLI_NUMBER, .into = &given.o.clip, .argument = "X",
		.help = "clip the gradient to this global norm (default 1; 0: off)", .high = 1e30,
		.wrong = "0 turns it off"},
	{.name = "seed", .kind = CLI_INT, .into = &given.seed, .argument = "N",
		.help = "seed of the initial weights, the validation split and the order of samples", .high = CLI_STEPS_MOST,
		.given = &given.seed_given},
	CLI_GROUP("Data, and how training samples vary"),
	{.name = "validation", .kind = CLI_NUMBER, .fraction = 1, .into = &given.o.validation, .argument = "X",
		.help = "fraction of DATA held out for validation (default 0.1)", .high = 0.99,
		.wrong = "For a data set, pass --test DATA"},
	{.name = "validation-least", .kind = CLI_COUNT, .into = &given.o.validation_least, .argument = "N",
		.help = "validation samples needed to choose the best epoch by them; "
			"with fewer, model.safetensors has the weights of the last epoch "
			"(default 30; 0: any number)", .high = 1e9},
	{.name = "holdout", .kind = CLI_TEXT, .into = &given.o.holdout, .argument = "SPEAKER",
		.help = "hold out the recordings of this speaker for validation instead of a fraction"},
	{.name = "text", .kind = CLI_TEXT, .into = &given.text, .argument = "FILE",
		.help = "text in UTF-8 to learn character by character, instead of DATA (the same as "
			"DATA text:FILE; text:steps=256:FILE sets the length of a sample)"},
	CLI_DATA_OPTIONS(given.o),
	{.name = "no-normalise-targets", .kind = CLI_FLAG, .into = &given.o.no_normalise_targets,
		.help = "do not normalise targets that are numbers (default: mean 0, standard "
			"deviation 1 per output; losses and answers are in the units of the data)"},
	{.name = "max-steps", .kind = CLI_INT, .into = &given.o.max_steps, .argument = "N",
		.help = "truncate samples to this number of steps (default 0: no limit)", .high = 1e12},
	{.name = "shift", .kind = CLI_COUNT, .into = &given.o.augment.shift, .argument = "N",
		.help = "shift the channels of each training sample by a random whole number in [-N, "
			"N] (default 0)",
		.high = 65535},
	{.name = "jitter", .kind = CLI_TIME, .into = &given.o.augment.jitter, .argument = "TIME",
		.unit = "ms",
		.help = "shift each training spike in time by normal noise of this standard deviation "
			"(default 0)",
		.high = 1000},
	{.name = "stretch", .kind = CLI_TEXT, .into = &given.stretch, .argument = "A:B",
		.help = "stretch the times of each training sample by a random factor in [A, B]; X is "
			"short for 1-X:1+X (default: none)"},
	CLI_GROUP("Snapshots and reports"),
	{.name = "snapshot", .kind = CLI_TIME, .into = &given.o.snapshot_seconds,
		.argument = "TIME",
		.help = "time between snapshots within an epoch (default 60s; 0: none)",
		.high = 1e9},
	{.name = "trace", .kind = CLI_TEXT, .into = &given.o.sweep.trace, .argument = "FILE",
		.help = "write a trace of one forward and backward pass, as trace events for Perfetto"},
	{.name = "trace-batch", .kind = CLI_INT, .into = &given.o.sweep.trace_batch,
		.argument = "N",
		.help = "batch of this session to trace (default: the last)", .low = 1,
		.high = 1e12},
	CLI_JSON_OPTION(given.json),
	{0},
};
/* clang-format on */

static const struct cli_command command = {.name = "train",
	.arguments = "DATA",
	.about = "trains a network on a data set under a memory budget",
	.examples = examples,
	.options = options,
	.least = 0,
	.most = 1};

static void on_line(void *user, const char *line)
{
	struct train_command *t = user;
	if (cli_hides(line))
		return;
	cli_progress_clear(&t->bar);
	char room[NEAP__PLAIN_TEXT];
	fprintf(stderr, "%s\n", neap__plain_text(room, line));
}

/* With the digits that losses of classes take, or those that the size of targets asks for. */
static const char *show_loss(char room[48], const struct neap_train_progress *p, double loss)
{
	if (isnan(p->accuracy))
		return cli_show_loss(room, loss);
	snprintf(room, 48, "%.4f", loss);
	return room;
}

/* A line an epoch: beside the bar on a terminal, in the log where standard output goes to a file.
 */
static void show_epoch(struct train_command *t, const struct neap_train_progress *p)
{
	char loss[48];

	if (cli_quiet)
		return;
	FILE *to = t->json || isatty(STDOUT_FILENO) ? stderr : stdout;
	cli_progress_clear(&t->bar);
	fprintf(to, "epoch %d/%d: loss %s", p->epoch + 1, p->epochs, show_loss(loss, p, p->loss));
	if (p->penalty > 0)
		fprintf(to, " + penalty %.4f", p->penalty);
	if (!isnan(p->accuracy))
		fprintf(to, ", training %.1f%%", 100 * p->accuracy);
	if (!isnan(p->validation_loss)) {
		if (isnan(p->validation_accuracy)) /* the targets are numbers */
			fprintf(to, ", validation loss %s", show_loss(loss, p, p->validation_loss));
		else
			fprintf(to, ", validation %.1f%%", 100 * p->validation_accuracy);
		fprintf(to, "%s", p->best ? " (best)" : "");
	}
	if (!isnan(p->spikes))
		fprintf(to, ", spikes %.2f%%, support %.2f%%", 100 * p->spikes, 100 * p->support);
	fprintf(to, "\n");
	fflush(to);
}

static int on_progress(void *user, const struct neap_train_progress *p)
{
	struct train_command *t = user;
	char note[128], penalty[24] = "", loss[48];
	double all = (double)p->epochs * (double)p->samples;
	double done = (double)p->epoch * (double)p->samples + (double)p->sample;

	if (p->epoch_done) {
		show_epoch(t, p);
		return cli_interrupted();
	}
	if (t->first < 0) { /* the rate counts the samples of this session alone */
		t->first = done - p->samples_per_second * p->seconds;
		cli_progress_start(&t->bar, "training", "samples");
		t->bar.started -= p->seconds;
	}
	if (p->penalty > 0)
		snprintf(penalty, sizeof penalty, " + %.4f", p->penalty);
	int n = snprintf(note, sizeof note, "epoch %d/%d  loss %s%s", p->epoch + 1, p->epochs,
		show_loss(loss, p, p->loss), penalty);
	if (!isnan(p->accuracy))
		snprintf(note + n, sizeof note - (size_t)n, "  %.1f%%", 100 * p->accuracy);
	cli_progress_show(&t->bar, done - t->first, all - t->first, note);
	return cli_interrupted();
}

static int print_json(const struct neap_train_options *o, const struct neap_train_result *r)
{
	const struct neap_problem no_tiers = NEAP_PROBLEM_INIT;
	char hash[24];
	struct neap__json report = {0}, *to = &report;

	neap__json_begin(to, NULL, '{');
	neap__json_text(to, "out", o->out);
	neap__json_int(to, "epochs", r->epochs_done);
	neap__json_int(to, "updates", r->updates);
	neap__json_int(to, "best_epoch", r->best_epoch);
	neap__json_number(to, "train_loss", r->train_loss);
	neap__json_number(to, "train_accuracy", r->train_accuracy);
	neap__json_evaluation(to, "validation", &r->validation);
	neap__json_evaluation(to, "test", &r->test);
	neap__json_number(to, "seconds", r->seconds);
	neap__json_number(to, "seconds_per_epoch", r->seconds_per_epoch);
	neap__json_bytes(to, "memory", o->sweep.memory);
	neap__json_begin(to, "plan", '{');
	cli_json_plan(to, &no_tiers, &r->plan, 1);
	neap__json_end(to, '}');
	neap__json_bytes(to, "arena_bytes", r->arena_bytes);
	cli_json_process(to, &r->process);
	cli_json_device(to, &r->device);
	neap__json_bytes(to, "peak_planned", r->peak_planned);
	neap__json_bytes(to, "peak_measured", r->peak_measured);
	neap__json_bytes(to, "weights_bytes", r->weights_bytes);
	neap__json_bytes(to, "grads_bytes", r->grads_bytes);
	neap__json_bytes(to, "optimizer_bytes", r->optimizer_bytes);
	neap__json_bytes(to, "data_bytes", r->data_bytes);
	neap__json_bytes(to, "input_bytes", r->data_bytes);
	neap__json_int(to, "window_steps", r->window_steps);
	neap__json_number(to, "input_wait", r->input_wait);
	neap__json_int(to, "overflows", r->overflows);
	neap__json_int(to, "recoveries", r->recoveries);
	neap__json_int(to, "late", r->late);
	neap__json_number(to, "predicted", r->predicted);
	neap__json_number(to, "measured", r->measured);
	snprintf(hash, sizeof hash, "%016" PRIx64, r->weights_hash);
	neap__json_text(to, "weights_hash", hash);
	neap__json_exchange(to, &r->exchange);
	neap__json_end(to, '}');
	return cli_json_print(to, "train");
}

static void print_exchange(const struct neap_exchange *e)
{
	char seconds[24], waited[24], sent[24];
	double n = e->batches > 0 ? (double)e->batches : 1;

	if (e->ranks > 1)
		printf("exchange    %s per batch, %s including waiting for slower ranks; each rank "
		       "sends %s in %.0f calls\n",
			neap__show_time(seconds, e->seconds / n),
			neap__show_time(waited, e->waited / n),
			neap__show_size(sent, (uint64_t)((double)e->sent / n)),
			(double)e->calls / n);
}

static void print_evaluation(const char *name, const struct neap_eval_result *e)
{
	if (e->samples > 0) {
		printf("%-11s ", name);
		cli_show_accuracy(e);
	}
}

static int print_summary(const struct neap_train_options *o, const struct neap_train_result *r)
{
	char a[24], b[24], c[24], d[24], out[NEAP__PLAIN_TEXT];

	printf("epochs      %d (the model is of epoch %d) in %s, %s per epoch\n", r->epochs_done,
		r->best_epoch, neap__show_time(a, r->seconds),
		neap__show_time(b, r->seconds_per_epoch));
	print_evaluation("validation", &r->validation);
	print_evaluation("test", &r->test);
	printf("memory      %speak %s (planned %s), allocated %s\n",
		r->device.total ? "states and tapes on the device: " : "",
		neap__show_size(a, r->peak_measured), neap__show_size(b, r->peak_planned),
		neap__show_size(c, r->arena_bytes));
	printf("other       weights %s, gradients %s, optimizer %s, largest batch %s\n",
		neap__show_size(a, r->weights_bytes), neap__show_size(b, r->grads_bytes),
		neap__show_size(c, r->optimizer_bytes), neap__show_size(d, r->data_bytes));
	cli_print_device(&r->device);
	if (r->device.joules > 0)
		printf("energy      %.4g J of the device, %.4g J per epoch\n", r->device.joules,
			r->device.joules * r->seconds_per_epoch / r->seconds);
	cli_print_process(&r->process, o->sweep.memory || o->sweep.memory_total || r->device.total);
	printf("time        %s for forward and backward passes (predicted %s), %" PRId64
	       " overflow%s, %" PRId64 " %s (%" PRId64 " late)\n",
		neap__show_time(a, r->measured), neap__show_time(b, r->predicted), r->overflows,
		r->overflows == 1 ? "" : "s", r->recoveries,
		r->recoveries == 1 ? "recovery" : "recoveries", r->late);
	print_exchange(&r->exchange);
	printf("model       %s/model.safetensors, weights %016" PRIx64 "\n",
		neap__plain_text(out, o->out), r->weights_hash);
	return cli_finish("train");
}

/* The command line as one text, for run.json. */
static char *join(int argc, char **argv)
{
	size_t room = sizeof "neap";
	for (int i = 0; i < argc; i++)
		room += strlen(argv[i]) + 1;
	char *line = malloc(room), *at = line;
	if (!line)
		return NULL;
	at = stpcpy(at, "neap");
	for (int i = 0; i < argc; i++) {
		*at++ = ' ';
		at = stpcpy(at, argv[i]);
	}
	return line;
}

static int run(const struct neap_train_options *o)
{
	struct neap_train_result result = {.size = sizeof result};

	if (cli_quiet || cli_peers()) /* mpirun signals ranks where another one fails */
		cli_catch_signals();
	else
		cli_catch_signals_aloud("train", "this batch");
	int rc = neap_train(&result, o);
	cli_progress_clear(&((struct train_command *)o->user)->bar);
	if (rc < 0)
		return cli_fail("train", rc);
	int code = given.json ? print_json(o, &result) : print_summary(o, &result);
	neap_train_result_free(&result);
	return code;
}

/* The folder of a file, if it is a run; or "RUN". */
static const char *run_beside(char room[4096], const char *file)
{
	char settings[4200];
	const char *slash = strrchr(file, '/');
	snprintf(room, 4096, "%.*s", slash ? (int)(slash - file) : 1, slash ? file : ".");
	snprintf(settings, sizeof settings, "%s/run.json", room);
	return access(settings, R_OK) == 0 ? room : "RUN";
}

/* The run to resume into *run; NULL if DATA is given on a rank that does not see the folder. */
static int open_run(struct neap_run **run, const char *out, int data_given)
{
	char room[4096];
	struct stat st;
	if (stat(out, &st) == 0 && !S_ISDIR(st.st_mode))
		return cli_usage("train",
			"--out: '%s' is a file, but a run is a folder. Pass the folder: --out %s",
			out, neap__quoted(run_beside(room, out)));
	int rc = neap_run_open(run, out), follows = cli_peers() && cli_peers()->rank > 0;

	if (rc == -ENOENT && follows && data_given)
		return CLI_DONE;
	if (rc == -ENOENT && follows)
		return cli_usage("train",
			"there is no run in '%s'. Move the folder to where all ranks see it, or "
			"pass DATA and the options of the run",
			out);
	if (rc == -ENOENT)
		return cli_usage("train",
			"there is no run in '%s' (no run.json). To start one, pass DATA without "
			"--resume; to continue a run elsewhere, pass --out %s",
			out, cli_only_run(room));
	return rc < 0 ? cli_fail("train", rc) : CLI_DONE;
}

/* Refuses a run that is passed to --resume, which has no value. */
static int refuse_resumed(int argc, char **argv)
{
	static const char option[] = "--resume";
	size_t n = strlen(option);
	for (int i = 1; i < argc; i++) {
		const char *value = strncmp(argv[i], option, n) != 0 ? NULL
				    : argv[i][n] == '='		     ? argv[i] + n + 1
				    : !argv[i][n] && i + 1 < argc    ? argv[i + 1]
								     : NULL;
		if (value && value[0] != '-' && cli_refuse_run(value, "train") != CLI_DONE)
			return CLI_USAGE;
	}
	return CLI_DONE;
}

/* The options of --config into *config. CLI_DONE or one line. */
static int open_config(struct neap_run **config, const char *file)
{
	struct stat st;
	char room[4096], run[300];
	if (stat(file, &st) == 0 && S_ISDIR(st.st_mode))
		return cli_usage("train",
			"--config: '%s' is a folder. Pass the file with the settings in it: "
			"--config '%s/run.json'",
			file, file);
	if (access(file, F_OK) < 0 && !neap__missing_near(room, sizeof room, file)) {
		const char *only = cli_only_run(run), *bare = only + (*only == '\'');
		return cli_usage("train",
			"--config: there is no file '%s'. Pass the run.json of a run: --config "
			"'%.*s/run.json', or write a JSON file of options, such as {\"net\": "
			"\"gru:32,li\", \"epochs\": 3}",
			file, (int)strcspn(bare, "'"), bare);
	}
	int rc = neap_config_open(config, file);
	const char *dot = strrchr(file, '.');
	if (rc == NEAP_EFORMAT && (!dot || strcmp(dot, ".json") != 0))
		return cli_usage("train",
			"--config: '%s' is not a JSON file of options, such as {\"net\": "
			"\"gru:32,li\", \"epochs\": 3}. Write one, or pass the run.json of a run: "
			"--config '%s/run.json'",
			file, run_beside(room, file));
	return rc < 0 ? cli_fail("train", rc) : CLI_DONE;
}

/*
 * Takes the net of --from; what is given beside it changes it. Parsing again says whether --dt and
 * --reset are given, which a graph in NIR may ask for. CLI_DONE or one line.
 */
static int open_model(struct neap_model **model, int argc, char **argv, const char **data)
{
	struct neap_train_options *o = &given.o;
	struct neap_model_options from = {.size = sizeof from};
	enum neap_reset reset;

	o->net.dt = 0;
	given.choices.reset = -1;
	cli_parse(&command, argc, argv, data);
	from.path = o->from;
	from.dt = o->net.dt;
	reset = (enum neap_reset)given.choices.reset;
	if (given.choices.reset >= 0)
		from.reset = &reset;
	int rc = neap_model_open(model, &from);

	if (rc < 0)
		return cli_fail("train", rc);
	o->net = *neap_model_net(*model);
	o->encode = neap_model_coding(*model);
	o->net.inputs = o->net.classes = 0; /* checked against the data by neap_train */
	return CLI_DONE;
}

/* What the table of options cannot say. CLI_DONE or one line. */
static int finish_options(struct neap_train_options *o, struct neap_problem *costs)
{
	const char *stretch = given.stretch;

	if (!o->data)
		return cli_usage("train", "DATA is missing: pass a data set, such as a file of "
					  "'neap encode', or randman, a built-in one");
	if (stretch &&
		cli_parse_span(&o->augment.stretch_low, &o->augment.stretch_high, stretch) < 0)
		return cli_usage("train",
			"--stretch: '%s' is not a range such as 0.9:1.1, or 0.1, which is short "
			"for it",
			stretch);
	if (stretch && (o->augment.stretch_low < 0.01 || o->augment.stretch_high > 100))
		return cli_usage("train",
			"--stretch: '%s' is out of range; both factors must be between 0.01 and "
			"100",
			stretch);
	return given.chain ? cli_costs_read(&o->sweep, &o->net, costs, given.chain, "train")
			   : CLI_DONE;
}

/* The name of a text as a data set; --text takes that name as well as the name of the file. */
static char *text_name(const char *file)
{
	static const char begin[] = "text:";
	char *name = malloc(sizeof begin + strlen(file));
	if (name)
		stpcpy(stpcpy(name, strncmp(file, begin, strlen(begin)) == 0 ? "" : begin), file);
	return name;
}

/* A test set for a text is a text as well: if it is named by its file alone, it gets the beginning
 * of the name of the training data, "text:" or "text:steps=N:". Its new name, or NULL. */
static char *name_test(struct neap_train_options *o)
{
	const char *steps = o->data && strncmp(o->data, "text:", 5) == 0 ? o->data + 5 : NULL;
	char *name = NULL;

	if (!steps || !o->test || strncmp(o->test, "text:", 5) == 0 ||
		!neap__recordings_text(o->test) || access(o->test, F_OK) < 0)
		return NULL;
	const char *colon = strncmp(steps, "steps=", 6) == 0 ? strchr(steps, ':') : NULL;
	if (asprintf(&name, "%.*s%s", colon ? (int)(colon + 1 - o->data) : 5, o->data, o->test) < 0)
		return NULL;
	o->test = name;
	return name;
}

static const char *shown(const char *text)
{
	return text ? text : "none";
}

/* 1: another test set than before, which is still there: it was not only moved. */
static int is_other_test(const char *was, const char *is)
{
	return was && is && strcmp(was, is) != 0 && !cli_same_file(was, is) &&
	       (access(was, F_OK) == 0 || strchr(was, ':'));
}

/* --from and --fresh-readout are read when a run starts, so that a resumed one cannot follow
 * others; results of another test set would replace those of the run. */
static int check_origin(const struct neap_run *run, const struct neap_train_options *o)
{
	const struct neap_train_options *was = neap_run_options(run);

	if (strcmp(shown(was->from), shown(o->from)) != 0)
		return cli_usage("train",
			"--from: the run in '%.200s' was started with --from %.200s, not %.200s. "
			"Remove --from, or start a new run with another --out",
			o->out, shown(was->from), shown(o->from));
	if (o->fresh_readout && !was->fresh_readout)
		return cli_usage("train",
			"--fresh-readout: the run in '%.200s' was started without it. Remove it, "
			"or start a new run with another --out",
			o->out);
	if (is_other_test(was->test, o->test))
		return cli_usage("train",
			"--test: the run in '%.200s' was started with --test %.200s, not %.200s. "
			"Remove --test; to evaluate the model on other data, run neap eval "
			"'%.200s' "
			"'%.200s'",
			o->out, was->test, o->test, o->out, o->test);
	return CLI_DONE;
}

/* The run or the configuration that the options continue, into *kept; its options become the
 * defaults. CLI_DONE or one line. */
static int take_kept(struct neap_run **kept, int data_given)
{
	if (given.o.resume && given.config)
		return cli_usage("train",
			"--config cannot be combined with --resume, which continues with "
			"the options of the run. Remove one of them");
	int code = given.o.resume ? open_run(kept, given.o.out, data_given)
		   : given.config ? open_config(kept, given.config)
				  : CLI_DONE;
	if (*kept)
		given.o = *neap_run_options(*kept);
	return code;
}

/* Parses the options once more: what is given now holds over what a run, a configuration or a model
 * has. */
static void parse_over(const struct neap_model *model, int argc, char **argv, const char **data)
{
	if (model && given.o.fresh_readout) { /* chosen by the new targets, not the model's */
		given.o.net.readout = NEAP_READ_AUTO;
		given.o.net.tau_out = NEAP_TAU_OUT_AUTO;
	}
	cli_net_choices_from(&given.choices, &given.o.net);
	given.o.out = "neap-run";
	cli_parse(&command, argc, argv, data);
}

/* Settings that follow from several options; `is_new`: there is no run, `is_own`: nor a model. */
static void settle(int is_new, int is_own)
{
	if (given.seed_given || is_new)
		given.o.seed = (uint64_t)given.seed;
	if (given.seed_given || is_own)
		given.o.net.seed = (uint64_t)given.seed;
	if (given.choices.scale_given && !given.gain_given)
		given.o.gain = 0;
}

/* CLI_DONE or one line: --text and DATA are two ways to name the data. */
static int check_text(int positional, const char *const *data)
{
	if (positional == 0 || !given.text)
		return CLI_DONE;
	if (cli_several_texts((const char *[]){given.text, data[0]}, 2))
		return CLI_USAGE;
	return cli_usage(
		"train", "--text and DATA '%s' are both given; pass only one of them", data[0]);
}

static int train(struct train_command *training, int argc, char **argv)
{
	struct neap_train_options *o = &given.o;
	struct neap_problem costs = {.size = sizeof costs};
	char *text_data = given.text ? text_name(given.text) : NULL;

	o->peers = cli_peers();
	cli_peers_patience(o->sweep.patience);
	o->progress = on_progress;
	o->say = on_line;
	o->user = training;
	training->json = given.json;
	if (text_data)
		o->data = text_data;
	char *test_text = name_test(o);
	int code = cli_net_choices_into(&o->net, &given.choices, "train");
	if (code == CLI_DONE)
		code = finish_options(o, &costs);
	if (code == CLI_DONE) {
		char *line = join(argc, argv);
		o->command = line;
		code = run(o);
		free(line);
	}
	free(text_data);
	free(test_text);
	return code;
}

int cli_train(int argc, char **argv)
{
	struct neap_train_options *o = &given.o;
	struct train_command training = {.options = o, .first = -1};
	struct neap_run *kept = NULL; /* to be resumed, or of --config */
	struct neap_model *model = NULL;
	const char *data[1] = {NULL};

	o->out = "neap-run";
	o->snapshot_seconds = 60;
	cli_net_choices_from(&given.choices, &o->net);
	if (refuse_resumed(argc, argv) != CLI_DONE)
		return CLI_USAGE;
	int parsed = cli_parse(&command, argc, argv, data);

	if (parsed < 0)
		return CLI_ENDED(parsed);
	if (parsed > 0 && cli_refuse_run(data[0], "train") != CLI_DONE)
		return CLI_USAGE;
	const char *from = o->from; /* a configuration with "from" also contains the net */
	int code = take_kept(&kept, parsed > 0);
	int goes_on = kept && !given.config;
	if (code == CLI_DONE && !goes_on && from)
		code = open_model(&model, argc, argv, data);
	if (code == CLI_DONE && (kept || model))
		parse_over(model, argc, argv, data);
	if (code == CLI_DONE && goes_on)
		code = check_origin(kept, o);
	if (code == CLI_DONE && !goes_on && o->fresh_readout && !o->from)
		code = cli_usage("train",
			"--fresh-readout requires --from: the model whose readout is replaced");
	if (code == CLI_DONE)
		code = check_text(parsed, data);
	if (code == CLI_DONE) {
		if (parsed > 0)
			o->data = data[0];
		settle(!kept, !kept && !model);
		code = train(&training, argc, argv);
	}
	neap_run_close(kept);
	neap_model_close(model);
	return code;
}
