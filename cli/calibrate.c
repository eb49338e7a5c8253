/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calibrate.c: `neap calibrate`: measures steps, copies and slow memory on this machine, and
 * prints them as a table or writes a chain file that plan, train and compare read.
 */
#include "net_options.h"
#include "json_report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char examples[] =
	"  neap calibrate train.h5 --slow /var/tmp --out chain.json\n"
	"  neap plan --chain chain.json --memory 4M\n"
	"  neap train train.h5 --slow /var/tmp --memory 4M --chain chain.json\n";

/*
 * A device with and without clusters of blocks: seconds of a step forward with its tape and
 * backward. Clusters that the network or the device cannot have are left out.
 */
struct cluster_choice {
	int count, best;
	struct {
		char device[64];
		double seconds;
	} of[5];
};

/* What is measured, and with which clusters; the chain file gets the fastest. */
struct cluster_calibration {
	struct neap_calibration c;
	struct cluster_choice choice;
};

static double step_seconds(const struct neap_calibration *c)
{
	return c->record.median + c->backward.median;
}

static void note_device(
	struct cluster_choice *choice, const char *device, const struct neap_calibration *c)
{
	snprintf(choice->of[choice->count].device, sizeof choice->of[0].device, "%s", device);
	choice->of[choice->count].seconds = step_seconds(c);
	if (choice->of[choice->count].seconds < choice->of[choice->best].seconds)
		choice->best = choice->count;
	choice->count++;
}

/* Steps, copies of the state and calls of `from`; slow memory does not depend on clusters. */
static void take_steps(struct neap_calibration *to, const struct neap_calibration *from)
{
	struct neap_chain *chain = &to->problem.chain;

	to->advance = from->advance;
	to->record = from->record;
	to->backward = from->backward;
	to->slot_write = from->slot_write;
	to->slot_read = from->slot_read;
	to->call = from->call;
	chain->advance = from->problem.chain.advance;
	chain->record = from->problem.chain.record;
	chain->backward = from->problem.chain.backward;
	chain->slot_write = from->problem.chain.slot_write;
	chain->slot_read = from->problem.chain.slot_read;
	chain->call = from->problem.chain.call;
}

/* Measures also with clusters, if the device is given without them. */
static int try_clusters(struct cluster_calibration *m, const struct neap_calibrate_options *options)
{
	const char *device = options->net.device;
	struct neap_calibrate_options o = *options;
	char name[64];

	if (!device || strncmp(device, "cuda", 4) != 0 || strlen(device) > 32 ||
		strstr(device, ":clusters="))
		return 0;
	note_device(&m->choice, device, &m->c);
	o.net.device = name;
	o.sweep.slow = NULL;
	for (int blocks = 2; blocks <= 16; blocks *= 2) {
		struct neap_calibration c = {.size = sizeof c};
		snprintf(name, sizeof name, "%s:clusters=%d", device, blocks);
		int rc = neap_calibrate(&c, &o);
		if (rc == NEAP_EUSAGE)
			continue; /* the weights do not fit, or the device has no such clusters */
		if (rc < 0)
			return rc;
		note_device(&m->choice, name, &c);
		if (m->choice.best == m->choice.count - 1)
			take_steps(&m->c, &c);
	}
	return 0;
}

static int on_progress(void *user, const char *what, int done, int total)
{
	struct cli_progress *bar = user;
	if (what && bar->terminal)
		cli_progress_show(bar, done, total, what);
	else if (!what)
		cli_progress_clear(bar);
	return cli_interrupted();
}

static double largest_spread(const struct neap_calibration *c)
{
	double most = c->advance.spread;
	if (c->record.spread > most)
		most = c->record.spread;
	if (c->backward.spread > most)
		most = c->backward.spread;
	for (int i = 0; i < c->problem.ntiers; i++) {
		if (c->tiers[i].write.spread > most)
			most = c->tiers[i].write.spread;
		if (c->tiers[i].read.spread > most)
			most = c->tiers[i].read.spread;
	}
	return most;
}

/* The chain file: what plan --chain, train --chain and compare --chain read. */
static void write_chain_file(
	struct neap__json *to, const char *key, const struct cluster_calibration *m)
{
	const struct neap_calibration *c = &m->c;
	const struct neap_chain *chain = &c->problem.chain;

	neap__json_begin(to, key, '{');
	if (m->choice.count)
		neap__json_text(to, "device", m->choice.of[m->choice.best].device);
	neap__json_int(to, "steps", chain->steps);
	neap__json_bytes(to, "state", chain->state);
	neap__json_bytes(to, "tape", chain->tape);
	neap__json_bytes(to, "adjoint", chain->adjoint);
	neap__json_number(to, "advance", chain->advance);
	neap__json_number(to, "record", chain->record);
	if (chain->log) {
		neap__json_bytes(to, "log", chain->log);
		neap__json_number(to, "replay", chain->replay);
	}
	neap__json_number(to, "backward", chain->backward);
	neap__json_number(to, "slot_write", chain->slot_write);
	neap__json_number(to, "slot_read", chain->slot_read);
	neap__json_number(to, "call", chain->call);
	neap__json_number(to, "spread", largest_spread(c));
	neap__json_bool(to, "tape_holds_output", 0);
	neap__json_bool(to, "backward_needs_input", 0);
	neap__json_begin(to, "tiers", '[');
	for (int i = 0; i < c->problem.ntiers; i++) {
		const struct neap_tier_spec *spec = &c->problem.tiers[i];
		neap__json_begin(to, NULL, '{');
		neap__json_text(to, "name", spec->name);
		if (spec->capacity == NEAP_INFINITE)
			neap__json_text(to, "capacity", "inf");
		else
			neap__json_bytes(to, "capacity", spec->capacity);
		neap__json_number(to, "write", spec->write_rate);
		neap__json_number(to, "read", spec->read_rate);
		neap__json_number(to, "latency", spec->write_fixed);
		neap__json_number(to, "cpu", spec->cpu);
		neap__json_number(to, "cpu_fixed", spec->cpu_fixed);
		neap__json_end(to, '}');
	}
	neap__json_end(to, ']');
	neap__json_end(to, '}');
}

static void write_timing(struct neap__json *to, const char *key, const struct neap_timing *t)
{
	neap__json_begin(to, key, '{');
	neap__json_number(to, "median", t->median);
	neap__json_number(to, "spread", t->spread);
	neap__json_end(to, '}');
}

static void write_device(struct neap__json *to, const struct neap_calibration *c)
{
	if (!c->device.total) {
		neap__json_null(to, "device");
		return;
	}
	neap__json_begin(to, "device", '{');
	neap__json_text(to, "about", c->device.about);
	neap__json_bytes(to, "total", c->device.total);
	neap__json_bytes(to, "free", c->device.free);
	write_timing(to, "to_device", &c->to_device);
	write_timing(to, "from_device", &c->from_device);
	write_timing(to, "device_to_device", &c->device_to_device);
	write_timing(to, "launch", &c->launch);
	neap__json_end(to, '}');
}

static void write_choice(struct neap__json *to, const struct cluster_choice *choice)
{
	neap__json_begin(to, "clusters", '[');
	for (int i = 0; i < choice->count; i++) {
		neap__json_begin(to, NULL, '{');
		neap__json_text(to, "device", choice->of[i].device);
		neap__json_number(to, "seconds", choice->of[i].seconds);
		neap__json_end(to, '}');
	}
	neap__json_end(to, ']');
}

static int print_json(const char *data, const struct cluster_calibration *m)
{
	const struct neap_calibration *c = &m->c;
	struct neap__json report = {0}, *to = &report;

	neap__json_begin(to, NULL, '{');
	neap__json_text(to, "data", data);
	neap__json_int(to, "batch", c->batch);
	write_chain_file(to, "chain", m);
	write_timing(to, "advance", &c->advance);
	write_timing(to, "record", &c->record);
	if (c->problem.chain.log)
		write_timing(to, "replay", &c->replay);
	write_timing(to, "backward", &c->backward);
	write_timing(to, "slot_write", &c->slot_write);
	write_timing(to, "slot_read", &c->slot_read);
	write_timing(to, "call", &c->call);
	write_device(to, c);
	write_choice(to, &m->choice);
	neap__json_begin(to, "tiers", '[');
	for (int i = 0; i < c->problem.ntiers; i++) {
		const struct neap_calibrated_tier *tier = &c->tiers[i];
		neap__json_begin(to, NULL, '{');
		neap__json_text(to, "about", tier->about);
		neap__json_bytes(to, "record_bytes", tier->record_bytes);
		write_timing(to, "write", &tier->write);
		write_timing(to, "read", &tier->read);
		neap__json_number(to, "write_fixed", tier->write_fixed);
		neap__json_number(to, "read_fixed", tier->read_fixed);
		neap__json_number(to, "cpu", tier->cpu);
		neap__json_number(to, "cpu_fixed", tier->cpu_fixed);
		neap__json_number(to, "slowed", tier->slowed);
		neap__json_end(to, '}');
	}
	neap__json_end(to, ']');
	neap__json_end(to, '}');
	return cli_json_print(to, "calibrate");
}

static void print_time(const char *what, const struct neap_timing *t)
{
	char room[24];
	printf("%-22s %12s   +-%.0f%%\n", what, neap__show_time(room, t->median), 50 * t->spread);
}

static void print_rate(const char *what, const struct neap_timing *t, double fixed)
{
	char room[24], time[24];
	printf("  %-20s %10s/s   +-%.0f%%, plus %s per record\n", what,
		neap__show_size(room, (uint64_t)t->median), 50 * t->spread,
		neap__show_time(time, fixed));
}

static void print_speed(const char *what, const struct neap_timing *t)
{
	char room[24];
	printf("  %-20s %10s/s   +-%.0f%%\n", what, neap__show_size(room, (uint64_t)t->median),
		50 * t->spread);
}

static void print_device(const struct neap_calibration *c)
{
	char left[24], all[24], launch[24];

	if (!c->device.total)
		return;
	printf("\n%s, %s of %s free\n", c->device.about, neap__show_size(left, c->device.free),
		neap__show_size(all, c->device.total));
	print_speed("from pinned memory", &c->to_device);
	print_speed("to pinned memory", &c->from_device);
	print_speed("device to device", &c->device_to_device);
	printf("  %-20s %12s   +-%.0f%%\n", "launch", neap__show_time(launch, c->launch.median),
		50 * c->launch.spread);
}

static void print_choice(const struct cluster_choice *choice)
{
	char time[24];

	for (int i = 0; i < choice->count; i++)
		printf("  %-20s %12s   per step%s\n", choice->of[i].device,
			neap__show_time(time, choice->of[i].seconds),
			i == choice->best ? ", the fastest" : "");
}

static int print_table(const struct cluster_calibration *m)
{
	const struct neap_calibration *c = &m->c;
	const struct neap_chain *chain = &c->problem.chain;
	char state[24], tape[24], time[24], record[24];

	printf("%d samples, %" PRId64 " steps; state %s, tape %s per step\n\n", c->batch,
		chain->steps, neap__show_size(state, chain->state),
		neap__show_size(tape, chain->tape));
	print_time("advance, per step", &c->advance);
	print_time("record, per step", &c->record);
	if (c->problem.chain.log)
		print_time("replay, per step", &c->replay);
	print_time("backward, per step", &c->backward);
	print_time("write a state to slot", &c->slot_write);
	print_time("read a state from slot", &c->slot_read);
	print_time("call overhead", &c->call);
	print_device(c);
	print_choice(&m->choice);
	for (int i = 0; i < c->problem.ntiers; i++) {
		const struct neap_calibrated_tier *tier = &c->tiers[i];
		char about[NEAP__PLAIN_TEXT];
		printf("\n%s, records up to %s\n", neap__plain_text(about, tier->about),
			neap__show_size(record, tier->record_bytes));
		print_rate("write", &tier->write, tier->write_fixed);
		print_rate("read", &tier->read, tier->read_fixed);
		printf("  during a computation   %.0f%% of the rate; slows it by %s per record, %s "
		       "per GiB\n",
			100 * tier->slowed, neap__show_time(record, tier->cpu_fixed),
			neap__show_time(time, tier->cpu * 1073741824));
	}
	return cli_finish("calibrate");
}

static int write_chain(
	const void *user, int (*write)(void *file, const char *text, size_t length), void *file)
{
	struct neap__json chain = {.lines = 1};
	write_chain_file(&chain, NULL, user);
	int rc = chain.text.error;
	if (rc == 0)
		rc = write(file, chain.text.data, chain.text.length);
	if (rc == 0)
		rc = write(file, "\n", 1);
	neap__json_free(&chain);
	return rc;
}

static int run(const struct neap_calibrate_options *o, const char *out, int json)
{
	struct cluster_calibration m = {.c.size = sizeof m.c};

	if (cli_is_output(out) && json)
		return cli_usage("calibrate", "--out - and --json both write to standard output. "
					      "Pass a file name to --out");
	cli_progress_start(o->user, "calibrate", "measurements");
	cli_catch_signals();
	int rc = neap_calibrate(&m.c, o);
	if (rc == 0)
		rc = try_clusters(&m, o);
	cli_progress_clear(o->user);
	if (rc < 0)
		return cli_fail("calibrate", rc);
	int code = out ? cli_write_file("out", out, "calibrate", write_chain, &m) : CLI_DONE;
	if (code != CLI_DONE || cli_is_output(out))
		return code;
	return json ? print_json(o->data, &m) : print_table(&m);
}

/* The command line, which the options fill. */
static struct {
	struct neap_calibrate_options o;
	struct cli_net_choices choices;
	const char *out;
	int64_t seed;
	int json;
} given = {.o = {.size = sizeof given.o}, .seed = 1};

/* clang-format off */
static const struct cli_option options[] = {
	CLI_NET_OPTIONS(given.o.net, given.choices),
	CLI_LOSS_OPTIONS(given.o.loss, given.o.rates),
	CLI_SLOW_OPTIONS(given.o.sweep),
	CLI_BATCH_OPTIONS(given.o, given.seed),
	CLI_GROUP("Measurement and output"),
	{.name = "timed", .kind = CLI_INT, .into = &given.o.timed, .argument = "N",
		.help = "steps to time (default 256)", .low = 1, .high = 1e9},
	{.name = "repeats", .kind = CLI_COUNT, .into = &given.o.repeats, .argument = "N",
		.help = "repetitions of each measurement, of which the median is reported (default 9)", .low = 1,
		.high = 99},
	{.name = "out", .letter = 'o', .kind = CLI_TEXT, .into = &given.out, .argument = "FILE",
		.help = "write a chain file for 'neap plan' and 'neap train' (default: none)"},
	CLI_JSON_OPTION(given.json),
	{0},
};
/* clang-format on */

static const struct cli_command command = {.name = "calibrate",
	.arguments = "DATA",
	.about = "measures the costs of steps, copies and slow memory on this machine",
	.examples = examples,
	.options = options,
	.least = 1,
	.most = 1};
int cli_calibrate(int argc, char **argv)
{
	const struct neap_train_options defaults = NEAP_TRAIN_OPTIONS_INIT;
	struct neap_calibrate_options *o = &given.o;
	struct cli_progress bar;
	const char *data[1];

	o->net = defaults.net;
	o->loss = defaults.loss;
	o->rates = defaults.rates;
	o->batch = defaults.batch;
	o->progress = on_progress;
	o->user = &bar;
	cli_net_choices_from(&given.choices, &o->net);
	int parsed = cli_parse(&command, argc, argv, data);

	if (parsed < 0)
		return CLI_ENDED(parsed);
	if (cli_refuse_run(data[0], "calibrate") != CLI_DONE)
		return CLI_USAGE;
	o->data = data[0];
	o->seed = o->net.seed = (uint64_t)given.seed;
	int code = cli_net_choices_into(&o->net, &given.choices, "calibrate");
	return code == CLI_DONE ? run(o, given.out, given.json) : code;
}
