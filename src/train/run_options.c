/* SPDX-License-Identifier: Apache-2.0 */
/* run_options.c: reads run.json back into the options of the run, so that --resume alone goes on.
 */
#include "train/run_options.h"
#include "train/settings.h"
#include "base/fail.h"
#include "base/json.h"
#include "sys/atomic_file.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_BYTES (16 << 20) /* of a run.json */
#define SNAPSHOT_SECONDS 60   /* where an earlier version did not keep them: the tool's default */

struct neap_run {
	json_t *root; /* owns the texts of `options` */
	struct neap_train_options options;
	struct neap_problem costs;
};

const struct neap__run_cost neap__run_step_costs[] = {
	{"advance", offsetof(struct neap_chain, advance)},
	{"record", offsetof(struct neap_chain, record)},
	{"backward", offsetof(struct neap_chain, backward)},
	{"replay", offsetof(struct neap_chain, replay)},
	{"call", offsetof(struct neap_chain, call)},
	{0},
};
const struct neap__run_cost neap__run_tier_costs[] = {
	{"write_rate", offsetof(struct neap_tier_spec, write_rate)},
	{"read_rate", offsetof(struct neap_tier_spec, read_rate)},
	{"write_fixed", offsetof(struct neap_tier_spec, write_fixed)},
	{"read_fixed", offsetof(struct neap_tier_spec, read_fixed)},
	{"cpu", offsetof(struct neap_tier_spec, cpu)},
	{"cpu_fixed", offsetof(struct neap_tier_spec, cpu_fixed)},
	{0},
};

static int take_numbers(void *into, const struct neap__run_cost *rows, const json_t *object)
{
	for (int i = 0; rows[i].name; i++) {
		const json_t *value = json_object_get(object, rows[i].name);
		double number = json_number_value(value);
		if (!json_is_number(value) || !(number >= 0) || isinf(number))
			return neap__fail(NEAP_EFORMAT,
				"cost %s is missing or not a number of 0 or above", rows[i].name);
		*(double *)(void *)((char *)into + rows[i].offset) = number;
	}
	return 0;
}

static int take_costs(struct neap_run *run, const json_t *object)
{
	const json_t *tiers = json_object_get(object, "tiers");
	size_t count = json_array_size(tiers);

	if (!object || json_is_null(object))
		return 0;
	NEAP_TRY(take_numbers(&run->costs.chain, neap__run_step_costs, object));
	if (count > NEAP_TIERS_MAX)
		return neap__fail(NEAP_EFORMAT,
			"its costs list %zu slow tiers, more than can be used", count);
	for (size_t i = 0; i < count; i++)
		NEAP_TRY(take_numbers(
			&run->costs.tiers[i], neap__run_tier_costs, json_array_get(tiers, i)));
	run->costs.ntiers = (int)count;
	run->options.sweep.costs = &run->costs;
	return 0;
}

static int take(struct neap_run *run)
{
	struct neap_train_options *o = &run->options;
	const json_t *settings = json_object_get(run->root, "settings");
	const json_t *data = json_object_get(run->root, "data");

	if (!json_is_object(settings))
		return neap__fail(
			NEAP_EFORMAT, "it has no settings; it may not be the run.json of a run");
	/* Runs of earlier versions name their data here alone. */
	o->data = json_string_value(json_object_get(data, "train"));
	o->test = json_string_value(json_object_get(data, "test"));
	/* Where an earlier version did not keep them. */
	o->net.time_unit = 0;
	o->net.init = NEAP_INIT_NORMAL;
	o->gain = 0;
	o->readout_gain = 0;
	o->no_normalise_targets = 1;
	o->validation_least = 0;
	NEAP_TRY(neap__settings_take(o, settings, 0));
	NEAP_TRY(neap__settings_take(o, json_object_get(run->root, "sweep"), 1));
	return take_costs(run, json_object_get(run->root, "costs"));
}

/*
 * What a run begins with, in place of what a run goes on with: run.json without its costs, which
 * are of another machine, or options alone.
 */
static int take_config(struct neap_run *run)
{
	struct neap_train_options *o = &run->options;
	const json_t *root = run->root;

	o->resume = 0;
	if (json_object_get(root, "settings")) {
		NEAP_TRY(take(run));
		o->sweep.costs = NULL;
		return 0;
	}
	if (!json_is_object(root))
		return neap__fail(NEAP_EFORMAT, "it is not a JSON object of options");
	NEAP_TRY(neap__settings_take_options(o, root));
	o->net.seed = o->seed;
	if (json_object_get(root, "scale") && !json_object_get(root, "gain"))
		o->gain = 0;
	if ((json_object_get(root, "scale") || json_object_get(root, "recurrent_scale")) &&
		!json_object_get(root, "init"))
		o->net.init = NEAP_INIT_NORMAL;
	return 0;
}

static int parse(
	struct neap_run **out, const char *text, size_t length, int (*into)(struct neap_run *))
{
	struct neap_run *run = malloc(sizeof *run);
	char why[NEAP__JSON_WHY];

	*out = NULL;
	if (!run)
		return neap__fail_errno(ENOMEM, "%zu bytes", sizeof *run);
	*run = (struct neap_run){.options = NEAP_TRAIN_OPTIONS_INIT, .costs = NEAP_PROBLEM_INIT};
	run->options.resume = 1;
	run->options.snapshot_seconds = SNAPSHOT_SECONDS;
	run->root = neap__json_read(text, length, why);
	int rc = run->root ? into(run) : neap__fail(NEAP_EFORMAT, "%s", why);
	if (rc < 0) {
		neap_run_close(run);
		return rc;
	}
	*out = run;
	return 0;
}

int neap__run_parse(struct neap_run **out, const char *text, size_t length)
{
	return parse(out, text, length, take);
}

int neap__config_parse(struct neap_run **out, const char *text, size_t length)
{
	return parse(out, text, length, take_config);
}

static int open_file(struct neap_run **run, const char *path, int (*into)(struct neap_run *))
{
	char *text = NULL;
	size_t bytes = 0;
	int rc = neap__read_file(&text, &bytes, path, MOST_BYTES);

	if (rc == 0) {
		rc = parse(run, text, bytes, into);
		if (rc < 0)
			rc = neap__fail_in(rc, "%s: ", path);
	}
	free(text);
	return rc;
}

int neap_run_open(struct neap_run **run, const char *out)
{
	NEAP_NEED(run, out);
	char *path;

	*run = NULL;
	if (!out || !*out)
		return neap__fail(NEAP_EUSAGE, "the folder of the run is missing (--out)");
	if (asprintf(&path, "%s/run.json", out) < 0)
		return neap__fail_errno(ENOMEM, "%s", out);
	int rc = open_file(run, path, take);
	free(path);
	return rc;
}

int neap_config_open(struct neap_run **run, const char *file)
{
	NEAP_NEED(run, file);
	*run = NULL;
	return open_file(run, file, take_config);
}

const struct neap_train_options *neap_run_options(const struct neap_run *run)
{
	if (!run)
		return NULL;
	return &run->options;
}

const char *neap__run_fingerprint(const struct neap_run *run)
{
	return json_string_value(
		json_object_get(json_object_get(run->root, "data"), "fingerprint"));
}

int64_t neap__run_samples(const struct neap_run *run)
{
	return json_integer_value(json_object_get(json_object_get(run->root, "data"), "samples"));
}

int64_t neap__run_epochs(const struct neap_run *run)
{
	return json_integer_value(
		json_object_get(json_object_get(run->root, "results"), "epochs_done"));
}

void neap_run_close(struct neap_run *run)
{
	if (!run)
		return;
	json_decref(run->root);
	free(run);
}
