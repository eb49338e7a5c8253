/* SPDX-License-Identifier: Apache-2.0 */
/*
 * calibrate.c: `neap calibrate`: what steps, copies and slow memory cost here, as a
 * table and as a chain file that plan, train and compare read.
 */
#include "net_options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char examples[] =
	"  neap calibrate train.h5 --slow /var/tmp --out chain.json\n"
	"  neap plan --chain chain.json --memory 4M\n"
	"  neap train train.h5 --slow /var/tmp --memory 4M --chain chain.json\n";

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
static cJSON *chain_file(const struct neap_calibration *c)
{
	const struct neap_chain *chain = &c->problem.chain;
	cJSON *o = cJSON_CreateObject();

	cli_json_int(o, "steps", chain->steps);
	cli_json_bytes(o, "state", chain->state);
	cli_json_bytes(o, "tape", chain->tape);
	cli_json_bytes(o, "adjoint", chain->adjoint);
	cli_json_number(o, "advance", chain->advance);
	cli_json_number(o, "record", chain->record);
	if (chain->log) {
		cli_json_bytes(o, "log", chain->log);
		cli_json_number(o, "replay", chain->replay);
	}
	cli_json_number(o, "backward", chain->backward);
	cli_json_number(o, "slot_write", chain->slot_write);
	cli_json_number(o, "slot_read", chain->slot_read);
	cli_json_number(o, "call", chain->call);
	cli_json_number(o, "spread", largest_spread(c));
	cJSON_AddBoolToObject(o, "tape_holds_output", 0);
	cJSON_AddBoolToObject(o, "backward_needs_input", 0);
	cJSON *tiers = cJSON_AddArrayToObject(o, "tiers");
	for (int i = 0; i < c->problem.ntiers; i++) {
		const struct neap_tier_spec *spec = &c->problem.tiers[i];
		cJSON *tier = cJSON_CreateObject();
		cli_json_text(tier, "name", spec->name);
		if (spec->capacity == NEAP_INFINITE)
			cli_json_text(tier, "capacity", "inf");
		else
			cli_json_bytes(tier, "capacity", spec->capacity);
		cli_json_number(tier, "write", spec->write_rate);
		cli_json_number(tier, "read", spec->read_rate);
		cli_json_number(tier, "latency", spec->write_fixed);
		cli_json_number(tier, "cpu", spec->cpu);
		cli_json_number(tier, "cpu_fixed", spec->cpu_fixed);
		cJSON_AddItemToArray(tiers, tier);
	}
	return o;
}

static cJSON *timing(const struct neap_timing *t)
{
	cJSON *o = cJSON_CreateObject();
	cli_json_number(o, "median", t->median);
	cli_json_number(o, "spread", t->spread);
	return o;
}

static int print_json(const char *data, const struct neap_calibration *c)
{
	cJSON *o = cJSON_CreateObject();

	cli_json_text(o, "data", data);
	cli_json_int(o, "batch", c->batch);
	cJSON_AddItemToObject(o, "chain", chain_file(c));
	cJSON_AddItemToObject(o, "advance", timing(&c->advance));
	cJSON_AddItemToObject(o, "record", timing(&c->record));
	if (c->problem.chain.log)
		cJSON_AddItemToObject(o, "replay", timing(&c->replay));
	cJSON_AddItemToObject(o, "backward", timing(&c->backward));
	cJSON_AddItemToObject(o, "slot_write", timing(&c->slot_write));
	cJSON_AddItemToObject(o, "slot_read", timing(&c->slot_read));
	cJSON_AddItemToObject(o, "call", timing(&c->call));
	cJSON *tiers = cJSON_AddArrayToObject(o, "tiers");
	for (int i = 0; i < c->problem.ntiers; i++) {
		const struct neap_calibrated_tier *tier = &c->tiers[i];
		cJSON *item = cJSON_CreateObject();
		cli_json_text(item, "about", tier->about);
		cli_json_bytes(item, "record_bytes", tier->record_bytes);
		cJSON_AddItemToObject(item, "write", timing(&tier->write));
		cJSON_AddItemToObject(item, "read", timing(&tier->read));
		cli_json_number(item, "write_fixed", tier->write_fixed);
		cli_json_number(item, "read_fixed", tier->read_fixed);
		cli_json_number(item, "cpu", tier->cpu);
		cli_json_number(item, "cpu_fixed", tier->cpu_fixed);
		cli_json_number(item, "slowed", tier->slowed);
		cJSON_AddItemToArray(tiers, item);
	}
	return cli_json_print(o);
}

static void print_time(const char *what, const struct neap_timing *t)
{
	char room[24];
	printf("%-22s %12s   +-%.0f%%\n", what, cli_show_time(room, t->median), 50 * t->spread);
}

static void print_rate(const char *what, const struct neap_timing *t, double fixed)
{
	char room[24], time[24];
	printf("  %-20s %10s/s   +-%.0f%%, and %s a record\n", what,
		cli_show_size(room, (uint64_t)t->median), 50 * t->spread,
		cli_show_time(time, fixed));
}

static int print_table(const struct neap_calibration *c)
{
	const struct neap_chain *chain = &c->problem.chain;
	char state[24], tape[24], time[24], record[24];

	printf("%d samples, %" PRId64 " steps; state %s, tape %s a step\n\n", c->batch,
		chain->steps, cli_show_size(state, chain->state), cli_show_size(tape, chain->tape));
	print_time("advance a step", &c->advance);
	print_time("record a step", &c->record);
	if (c->problem.chain.log)
		print_time("replay a step", &c->replay);
	print_time("backward a step", &c->backward);
	print_time("a state into a slot", &c->slot_write);
	print_time("a state from a slot", &c->slot_read);
	print_time("a call", &c->call);
	for (int i = 0; i < c->problem.ntiers; i++) {
		const struct neap_calibrated_tier *tier = &c->tiers[i];
		printf("\n%s, records up to %s\n", tier->about,
			cli_show_size(record, tier->record_bytes));
		print_rate("write", &tier->write, tier->write_fixed);
		print_rate("read", &tier->read, tier->read_fixed);
		printf("  beside a computation   %.0f%% of the rate; a record costs it %s, "
		       "a GiB %s\n",
			100 * tier->slowed, cli_show_time(record, tier->cpu_fixed),
			cli_show_time(time, tier->cpu * 1073741824));
	}
	return cli_finish("calibrate");
}

static int write_chain(
	const void *user, int (*write)(void *file, const char *text, size_t length), void *file)
{
	cJSON *o = chain_file(user);
	char *text = cJSON_Print(o);
	cJSON_Delete(o);
	int rc = text ? write(file, text, strlen(text)) : -ENOMEM;
	if (rc == 0)
		rc = write(file, "\n", 1);
	free(text);
	return rc;
}

static int run(const struct neap_calibrate_options *options, const char *out, int json)
{
	struct neap_calibration c;

	cli_progress_start(options->user, "calibrate", "measurements");
	cli_catch_signals();
	int rc = neap_calibrate(&c, options);
	cli_progress_clear(options->user);
	if (rc < 0)
		return cli_fail("calibrate", rc);
	int code = out ? cli_write_file("out", out, "calibrate", write_chain, &c) : CLI_DONE;
	if (code != CLI_DONE)
		return code;
	return json ? print_json(options->data, &c) : print_table(&c);
}

int cli_calibrate(int argc, char **argv)
{
	struct cli_progress bar;
	struct neap_train_options defaults = NEAP_TRAIN_OPTIONS_INIT;
	struct neap_calibrate_options o = {.size = sizeof o,
		.net = defaults.net,
		.loss = defaults.loss,
		.rates = defaults.rates,
		.batch = defaults.batch,
		.progress = on_progress,
		.user = &bar};
	struct cli_net_choices choices;
	const char *out = NULL, *data[1];
	int64_t seed = 1;
	int json = 0;
	cli_net_choices_from(&choices, &o.net);
	const struct cli_option options[] = {
		CLI_NET_OPTIONS(o.net, choices),
		CLI_LOSS_OPTIONS(o.loss, o.rates),
		CLI_SLOW_OPTIONS(o.sweep),
		{"batch", CLI_COUNT, &o.batch, "N", "samples (default 32)", 1, 65536, NULL, NULL},
		{"max-steps", CLI_INT, &o.max_steps, "N", "cut samples beyond (0: no)", 0, 1e12,
			NULL, NULL},
		{"first", CLI_INT, &o.first, "N", "which batch of the shuffled data", 0, 1e12, NULL,
			NULL},
		{"seed", CLI_INT, &seed, "N", "of weights and shuffling", 0, 1e15, NULL, NULL},
		{"timed", CLI_INT, &o.timed, "N", "steps that are timed (default 256)", 1, 1e9,
			NULL, NULL},
		{"repeats", CLI_COUNT, &o.repeats, "N",
			"of each measurement; the median counts (default 9)", 1, 99, NULL, NULL},
		{"out", CLI_TEXT, &out, "FILE", "write a chain file", 0, 0, NULL, NULL},
		{"json", CLI_FLAG, &json, NULL, "one JSON object on standard output", 0, 0, NULL,
			NULL},
		{0},
	};
	const struct cli_command command = {.name = "calibrate",
		.arguments = "DATA",
		.about = "measures steps, copies and slow memory on this machine",
		.examples = examples,
		.options = options,
		.least = 1,
		.most = 1};
	int parsed = cli_parse(&command, argc, argv, data);

	if (parsed < 0)
		return CLI_ENDED(parsed);
	o.data = data[0];
	o.seed = o.net.seed = (uint64_t)seed;
	cli_net_choices_into(&o.net, &choices);
	return run(&o, out, json);
}
