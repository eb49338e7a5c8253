/* SPDX-License-Identifier: Apache-2.0 */
/* run_json.c: writes run.json: settings, data, machine, plan, memory, sweeps and results of a run.
 */
#include "train/trainer.h"
#include "train/run_options.h"
#include "train/settings.h"
#include "train/reports/result_json.h"
#include "base/fail.h"
#include "base/json.h"
#include "base/print.h"
#include "sys/atomic_file.h"
#include "sys/memory.h"

#include <neap/machine.h>
#include <neap/neap.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void add_machine(struct neap__json *root)
{
	struct neap_machine machine = {.size = sizeof machine};

	neap_machine_describe(&machine);
	neap__json_begin(root, "machine", '{');
	neap__json_text(root, "cpu", machine.cpu);
	neap__json_text(root, "os", machine.os);
	neap__json_int(root, "processors", machine.processors);
	neap__json_bytes(root, "memory_total", machine.memory_total);
	neap__json_end(root, '}');
	neap__json_text(root, "isa", machine.isa);
	neap__json_begin(root, "versions", '{');
	neap__json_text(root, "neap", NEAP_VERSION);
	neap__json_text(root, "compiler", __VERSION__);
	neap__json_text(root, "jansson", jansson_version_str());
	neap__json_end(root, '}');
}

static void add_data(struct neap__json *root, const struct neap__trainer *trainer)
{
	const struct neap__data *d = &trainer->data;
	char hex[24];

	neap__json_begin(root, "data", '{');
	neap__json_text(root, "train", trainer->options.data);
	neap__json_text(root, "test", trainer->options.test);
	neap__json_int(root, "samples", d->info.samples);
	neap__json_int(root, "training_samples", d->nfirst);
	neap__json_int(root, "validation_samples", d->nsecond);
	neap__json_int(root, "longest_steps", d->longest);
	neap__print(hex, sizeof hex, "%016" PRIx64, d->fingerprint);
	neap__json_text(root, "fingerprint", hex);
	neap__json_end(root, '}');
}

static void add_plan(struct neap__json *root, const struct neap__trainer *trainer)
{
	const struct neap_plan *plan = &trainer->result->plan;
	const struct {
		const char *name;
		int64_t value;
	} params[] = {{"chunk", plan->params.chunk}, {"checkpoints", plan->params.checkpoints},
		{"remote_chunk", plan->params.remote_chunk}, {"interval", plan->params.interval},
		{"period", plan->params.period}, {"group", plan->params.group},
		{"tail", plan->params.tail}, {"kept_tapes", plan->params.kept_tapes}};

	neap__json_begin(root, "plan", '{');
	neap__json_text(root, "strategy", plan->strategy);
	neap__json_text(root, "chosen", plan->chosen);
	neap__json_begin(root, "params", '{');
	for (size_t i = 0; i < sizeof params / sizeof params[0]; i++)
		if (params[i].value)
			neap__json_int(root, params[i].name, params[i].value);
	neap__json_end(root, '}');
	neap__json_int(root, "steps", trainer->data.longest);
	neap__json_bytes(root, "peak_bytes", plan->peak_bytes);
	neap__json_bytes(root, "arena_bytes", plan->arena_bytes);
	neap__json_bytes(root, "slow_bytes", plan->slow_bytes);
	neap__json_number(root, "makespan", plan->makespan);
	neap__json_number(root, "overhead", plan->overhead);
	neap__json_number(root, "bound", plan->bound);
	neap__json_number(root, "gap", plan->gap);
	neap__json_begin(root, "tiers", '[');
	for (int i = 0; i < trainer->tiers.count; i++)
		neap__json_text(root, NULL, neap_tier_about(trainer->tiers.tier[i]));
	neap__json_end(root, ']');
	neap__json_end(root, '}');
}

/* Costs that were given, for a resumed run. */
static void add_costs(struct neap__json *root, const struct neap_problem *costs)
{
	if (!costs) {
		neap__json_null(root, "costs");
		return;
	}
	neap__json_begin(root, "costs", '{');
	for (int i = 0; neap__run_step_costs[i].name; i++)
		neap__json_number(root, neap__run_step_costs[i].name,
			*(const double *)((const char *)&costs->chain +
					  neap__run_step_costs[i].offset));
	neap__json_begin(root, "tiers", '[');
	for (int i = 0; i < costs->ntiers; i++) {
		neap__json_begin(root, NULL, '{');
		for (int k = 0; neap__run_tier_costs[k].name; k++)
			neap__json_number(root, neap__run_tier_costs[k].name,
				*(const double *)((const char *)&costs->tiers[i] +
						  neap__run_tier_costs[k].offset));
		neap__json_end(root, '}');
	}
	neap__json_end(root, ']');
	neap__json_end(root, '}');
}

static void add_memory(struct neap__json *root, const struct neap__trainer *trainer)
{
	const struct neap__counters *c = &trainer->counters;
	const struct neap_train_result *r = trainer->result;

	neap__json_begin(root, "memory", '{');
	neap__json_bytes(root, "budget", trainer->planning.memory);
	neap__json_int(root, "arena_largest", c->arena);
	neap__json_int(root, "peak_planned", c->peak_planned);
	neap__json_int(root, "peak_measured", c->peak_measured);
	neap__json_bytes(root, "weights", r->weights_bytes);
	neap__json_bytes(root, "gradients", r->grads_bytes);
	neap__json_bytes(root, "optimizer", r->optimizer_bytes);
	neap__json_bytes(root, "batch_largest", r->data_bytes);
	neap__json_bytes(root, "input_bytes", r->data_bytes);
	neap__json_int(root, "window_steps", r->window_steps);
	neap__json_bytes(root, "process_most", trainer->memory.most);
	neap__json_bytes(root, "process_measured", neap__resident_most());
	neap__json_end(root, '}');
}

/* Seconds of this session's sweeps by what they were spent on. */
static void add_sweeps(struct neap__json *root, const struct neap__trainer *trainer)
{
	const struct neap_sweep_stats *s = &trainer->sweeps;

	neap__json_begin(root, "sweeps", '{');
	neap__json_number(root, "seconds", s->seconds);
	neap__json_number(root, "predicted", s->predicted);
	neap__json_number(root, "compute", s->compute);
	neap__json_number(root, "slowdown", s->slowdown);
	neap__json_number(root, "slowdown_predicted", s->predicted_lost);
	neap__json_number(root, "copies", s->copies);
	neap__json_number(root, "stall", s->stall);
	neap__json_number(root, "stall_predicted", s->predicted_stall);
	neap__json_begin(root, "stalls", '{');
	for (int i = 0; i < NEAP_STALLS; i++)
		neap__json_number(root, neap_stall_name(i), s->stalls[i]);
	neap__json_end(root, '}');
	neap__json_int(root, "late", s->late);
	neap__json_end(root, '}');
}

static void add_results(struct neap__json *root, const struct neap__trainer *trainer)
{
	const struct neap__counters *c = &trainer->counters;
	const struct neap_train_result *r = trainer->result;
	char hex[24];

	neap__json_begin(root, "results", '{');
	neap__json_text(root, "state", trainer->state);
	neap__json_int(root, "epochs_done", c->epoch);
	neap__json_int(root, "updates", c->update);
	neap__json_int(root, "best_epoch", c->best_epoch);
	if (trainer->data.nsecond > 0)
		neap__json_number(root, "best_validation", c->best_validation);
	neap__json_number(root, "seconds", c->seconds);
	neap__json_number(root, "sweep_seconds_predicted", c->predicted);
	neap__json_number(root, "sweep_seconds_measured", c->measured);
	neap__json_number(root, "planning_seconds", trainer->planning.seconds);
	neap__json_int(root, "overflows", c->overflows);
	neap__json_int(root, "recoveries", c->recoveries);
	neap__print(hex, sizeof hex, "%016" PRIx64, r->weights_hash);
	neap__json_text(root, "weights_hash", r->weights_hash ? hex : NULL);
	neap__json_evaluation(root, "validation", &r->validation);
	neap__json_evaluation(root, "test", &r->test);
	neap__json_end(root, '}');
}

int neap__run_json_write(const struct neap__trainer *trainer)
{
	const struct neap_train_options *options = &trainer->options;
	struct neap__json whole = {.lines = 1}, *root = &whole;

	neap__json_begin(root, NULL, '{');
	neap__json_text(root, "command", options->command);
	neap__settings_write(root, "settings", options, 0);
	struct neap_train_options ways = *options;
	if (!ways.sweep.memory_total && trainer->planning.memory)
		ways.sweep.memory = trainer->planning.memory;
	neap__settings_write_ways(root, "sweep", &ways);
	add_costs(root, options->sweep.costs);
	add_data(root, trainer);
	add_machine(root);
	add_plan(root, trainer);
	add_memory(root, trainer);
	add_sweeps(root, trainer);
	neap__json_exchange(root, &trainer->result->exchange);
	add_results(root, trainer);
	neap__json_end(root, '}');
	int rc = root->text.error
			 ? neap__fail_errno(ENOMEM, "cannot write '%s'", trainer->run)
			 : neap__write_file(trainer->run, root->text.data, root->text.length);
	neap__json_free(root);
	return rc;
}
