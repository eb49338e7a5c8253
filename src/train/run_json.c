/* SPDX-License-Identifier: Apache-2.0 */
/* run_json.c: run.json, all there is to say about a run. */
#include "train/trainer.h"
#include "train/jsonio.h"
#include "train/settings.h"
#include "base/fail.h"
#include "sys/atomic_file.h"

#include <neap/machine.h>
#include <neap/neap.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_machine(cJSON *root)
{
	struct neap_machine machine = {.size = sizeof machine};
	cJSON *o = cJSON_AddObjectToObject(root, "machine");

	neap_machine_describe(&machine);
	neap__json_text(o, "cpu", machine.cpu);
	neap__json_text(o, "os", machine.os);
	neap__json_int(o, "processors", machine.processors);
	neap__json_bytes(o, "memory_total", machine.memory_total);
	neap__json_text(root, "isa", machine.isa);
	cJSON *versions = cJSON_AddObjectToObject(root, "versions");
	neap__json_text(versions, "neap", NEAP_VERSION);
	neap__json_text(versions, "compiler", __VERSION__);
	neap__json_text(versions, "cjson", cJSON_Version());
}

static void add_data(cJSON *root, const struct neap__trainer *trainer)
{
	const struct neap__data *d = &trainer->data;
	char hex[24];
	cJSON *o = cJSON_AddObjectToObject(root, "data");

	neap__json_text(o, "train", trainer->options.data);
	neap__json_text(o, "test", trainer->options.test);
	neap__json_int(o, "samples", d->info.samples);
	neap__json_int(o, "training_samples", d->nfirst);
	neap__json_int(o, "validation_samples", d->nsecond);
	neap__json_int(o, "longest_steps", d->longest);
	snprintf(hex, sizeof hex, "%016" PRIx64, d->fingerprint);
	neap__json_text(o, "fingerprint", hex);
}

static void add_plan(cJSON *root, const struct neap__trainer *trainer)
{
	const struct neap_plan *plan = &trainer->result->plan;
	cJSON *o = cJSON_AddObjectToObject(root, "plan");
	const struct {
		const char *name;
		int64_t value;
	} params[] = {{"chunk", plan->params.chunk}, {"checkpoints", plan->params.checkpoints},
		{"remote_chunk", plan->params.remote_chunk}, {"interval", plan->params.interval},
		{"period", plan->params.period}, {"group", plan->params.group},
		{"tail", plan->params.tail}, {"kept_tapes", plan->params.kept_tapes}};

	neap__json_text(o, "strategy", plan->strategy);
	neap__json_text(o, "chosen", plan->chosen);
	cJSON *p = cJSON_AddObjectToObject(o, "params");
	for (size_t i = 0; i < sizeof params / sizeof params[0]; i++)
		if (params[i].value)
			neap__json_int(p, params[i].name, params[i].value);
	neap__json_int(o, "steps", trainer->data.longest);
	neap__json_bytes(o, "peak_bytes", plan->peak_bytes);
	neap__json_bytes(o, "arena_bytes", plan->arena_bytes);
	neap__json_bytes(o, "slow_bytes", plan->slow_bytes);
	neap__json_number(o, "makespan", plan->makespan);
	neap__json_number(o, "overhead", plan->overhead);
	neap__json_number(o, "bound", plan->bound);
	neap__json_number(o, "gap", plan->gap);
	cJSON *tiers = cJSON_AddArrayToObject(o, "tiers");
	for (int i = 0; i < trainer->tiers.count; i++)
		cJSON_AddItemToArray(
			tiers, cJSON_CreateString(neap_tier_about(trainer->tiers.tier[i])));
}

static void add_memory(cJSON *root, const struct neap__trainer *trainer)
{
	const struct neap__counters *c = &trainer->counters;
	const struct neap_train_result *r = trainer->result;
	cJSON *o = cJSON_AddObjectToObject(root, "memory");

	neap__json_bytes(o, "budget", trainer->planning.memory);
	neap__json_int(o, "arena_largest", c->arena);
	neap__json_int(o, "peak_planned", c->peak_planned);
	neap__json_int(o, "peak_measured", c->peak_measured);
	neap__json_bytes(o, "weights", r->weights_bytes);
	neap__json_bytes(o, "gradients", r->grads_bytes);
	neap__json_bytes(o, "optimizer", r->optimizer_bytes);
	neap__json_bytes(o, "batch_largest", r->data_bytes);
	neap__json_bytes(o, "input_bytes", r->data_bytes);
	neap__json_int(o, "window_steps", r->window_steps);
}

/* Where the seconds of this session's sweeps went. */
static void add_sweeps(cJSON *root, const struct neap__trainer *trainer)
{
	const struct neap_sweep_stats *s = &trainer->sweeps;
	cJSON *o = cJSON_AddObjectToObject(root, "sweeps"), *stalls;

	neap__json_number(o, "seconds", s->seconds);
	neap__json_number(o, "predicted", s->predicted);
	neap__json_number(o, "compute", s->compute);
	neap__json_number(o, "slowdown", s->slowdown);
	neap__json_number(o, "slowdown_predicted", s->predicted_lost);
	neap__json_number(o, "copies", s->copies);
	neap__json_number(o, "stall", s->stall);
	neap__json_number(o, "stall_predicted", s->predicted_stall);
	stalls = cJSON_AddObjectToObject(o, "stalls");
	for (int i = 0; i < NEAP_STALLS; i++)
		neap__json_number(stalls, neap_stall_name(i), s->stalls[i]);
	neap__json_int(o, "late", s->late);
}

static void add_evaluation(cJSON *root, const char *key, const struct neap_eval_result *e)
{
	if (e->samples == 0) {
		cJSON_AddNullToObject(root, key);
		return;
	}
	cJSON *o = cJSON_AddObjectToObject(root, key);
	neap__json_int(o, "samples", e->samples);
	neap__json_int(o, "correct", e->correct);
	neap__json_number(o, "accuracy", e->accuracy);
	neap__json_number(o, "low", e->low);
	neap__json_number(o, "high", e->high);
	neap__json_number(o, "loss", e->loss);
}

static void add_results(cJSON *root, const struct neap__trainer *trainer)
{
	const struct neap__counters *c = &trainer->counters;
	const struct neap_train_result *r = trainer->result;
	char hex[24];
	cJSON *o = cJSON_AddObjectToObject(root, "results");

	neap__json_text(o, "state", trainer->state);
	neap__json_int(o, "epochs_done", c->epoch);
	neap__json_int(o, "updates", c->update);
	neap__json_int(o, "best_epoch", c->best_epoch);
	if (trainer->data.nsecond > 0)
		neap__json_number(o, "best_validation", c->best_validation);
	neap__json_number(o, "seconds", c->seconds);
	neap__json_number(o, "sweep_seconds_predicted", c->predicted);
	neap__json_number(o, "sweep_seconds_measured", c->measured);
	neap__json_number(o, "planning_seconds", trainer->planning.seconds);
	neap__json_int(o, "overflows", c->overflows);
	neap__json_int(o, "recoveries", c->recoveries);
	snprintf(hex, sizeof hex, "%016" PRIx64, r->weights_hash);
	neap__json_text(o, "weights_hash", r->weights_hash ? hex : NULL);
	add_evaluation(o, "validation", &r->validation);
	add_evaluation(o, "test", &r->test);
}

int neap__runfile_write(const struct neap__trainer *trainer)
{
	const struct neap_train_options *options = &trainer->options;
	cJSON *root = cJSON_CreateObject(), *settings;

	neap__json_text(root, "command", options->command);
	cJSON_AddItemToObject(root, "settings", neap__settings_json(options, 0));
	settings = cJSON_AddObjectToObject(root, "sweep");
	neap__json_bytes(settings, "memory", trainer->planning.memory);
	neap__json_text(settings, "strategy", options->sweep.strategy);
	neap__json_text(settings, "slow", options->sweep.slow);
	neap__json_int(settings, "threads", options->net.threads);
	add_data(root, trainer);
	add_machine(root);
	add_plan(root, trainer);
	add_memory(root, trainer);
	add_sweeps(root, trainer);
	add_results(root, trainer);
	char *text = cJSON_Print(root);
	int rc = text ? neap__write_file(trainer->run, text, strlen(text))
		      : neap__fail_errno(ENOMEM, "cannot write '%s'", trainer->run);
	free(text);
	cJSON_Delete(root);
	return rc;
}
