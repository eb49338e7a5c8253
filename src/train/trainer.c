/* SPDX-License-Identifier: Apache-2.0 */
/* trainer.c: neap_train: runs a training from its folder to its last evaluation. */
#include "train/trainer.h"
#include "train/evaluate.h"
#include "train/model.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/struct_size.h"
#include "sys/clock.h"
#include "sys/memory.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void neap__trainer_say(const struct neap__trainer *trainer, const char *format, ...)
{
	char line[512];
	va_list args;

	if (!trainer->options.say)
		return;
	va_start(args, format);
	neap__vprint(line, sizeof line, format, args);
	va_end(args);
	trainer->options.say(trainer->options.user, line);
}

/* Evaluates the best model on the validation split, and once, here only, on the test set. */
static int finish(struct neap__trainer *trainer)
{
	const struct neap_train_options *o = &trainer->options;
	struct neap_loader_options loading = {
		.size = sizeof loading, .batch = o->batch, .dt = o->net.dt, .steps = o->max_steps};
	struct neap_train_result *r = trainer->result;
	struct neap__safetensors file;
	struct neap_loader *loader = NULL;

	neap_sweep_release(trainer->sweep);
	r->weights_hash = neap__weights_hash(trainer->net);
	NEAP_TRY(neap__safetensors_read(&file, trainer->model));
	int rc = neap__model_take(trainer->net, &file);
	neap__safetensors_free(&file);
	if (rc < 0)
		return neap__fail_in(rc, "%s: ", trainer->model);
	neap_eval_result_free(&r->validation);
	NEAP_TRY(neap__validate(trainer, &r->validation));
	if (trainer->data.test) {
		NEAP_TRY(neap_loader_open(&loader, trainer->data.test, &loading));
		const struct neap__evaluation evaluation = {.net = trainer->net,
			.options = &o->net,
			.loss = trainer->objective.loss,
			.loader = loader};
		rc = neap__evaluate(&r->test, &evaluation);
		neap_loader_close(loader);
		NEAP_TRY(rc);
	}
	trainer->state = "done";
	trainer->counters.seconds = trainer->session + neap__seconds() - trainer->started;
	return neap__run_json_write(trainer);
}

static void fill_result(const struct neap__trainer *trainer, int64_t epochs_before)
{
	const struct neap__counters *c = &trainer->counters;
	struct neap_train_result *r = trainer->result;

	r->epochs_done = (int)c->epoch;
	r->updates = c->update;
	r->best_epoch = (int)c->best_epoch;
	r->best_validation = c->best_validation;
	r->seconds = neap__seconds() - trainer->started;
	if (c->epoch > epochs_before)
		r->seconds_per_epoch = r->seconds / (double)(c->epoch - epochs_before);
	r->peak_planned = (uint64_t)c->peak_planned;
	r->peak_measured = (uint64_t)c->peak_measured;
	r->arena_bytes = (uint64_t)c->arena;
	r->overflows = c->overflows;
	r->recoveries = c->recoveries;
	r->late = trainer->sweeps.late;
	r->predicted = c->predicted;
	r->measured = c->measured;
	r->process = trainer->memory;
	r->process.measured = neap__resident_most();
}

static int begin_or_resume(struct neap__trainer *trainer, int there)
{
	const struct neap_train_options *o = &trainer->options;
	const struct neap__counters *c = &trainer->counters;
	int found = 0;

	NEAP_TRY(neap__run_folder_take(trainer, there));
	if (there)
		NEAP_TRY(found = neap__snapshot_load(trainer));
	NEAP_TRY(neap__metrics_start(trainer->metrics, c->epoch));
	NEAP_TRY(neap__run_json_write(trainer));
	/* Checks all input first, so that bad input prints one line and no more. */
	neap__setup_say(trainer);
	if (found)
		neap__trainer_say(trainer,
			"resumed from %s: %" PRId64 " epochs and %" PRId64 " batches are done",
			trainer->last, c->epoch, c->batch);
	else if (o->resume)
		neap__trainer_say(trainer, "no snapshot in '%s': starting afresh", o->out);
	neap__planning_say(trainer);
	NEAP_TRY(neap__memory_total_say(trainer));
	return 0;
}

int neap__trainer_trace(struct neap__trainer *trainer)
{
	const char *path = trainer->options.sweep.trace;

	NEAP_TRY(neap_trace_write(path, &trainer->trace, 1));
	trainer->traced = trainer->planning.sweeps;
	neap__trainer_say(trainer,
		"trace of batch %" PRId64 " in '%s': %" PRId64 " events, %" PRId64
		" older ones dropped",
		trainer->traced, path, neap_trace_events(trainer->trace),
		neap_trace_dropped(trainer->trace));
	return 0;
}

static int run(struct neap__trainer *trainer)
{
	double samples = 0;
	int there = neap__run_folder_check(&trainer->options);

	NEAP_TRY(there);
	NEAP_TRY(neap__run_folder_paths(trainer));
	NEAP_TRY(neap__setup(trainer));
	NEAP_TRY(neap__planning_start(trainer));
	NEAP_TRY(begin_or_resume(trainer, there));
	int64_t before = trainer->counters.epoch;
	trainer->started = trainer->snapshot = neap__seconds();
	int rc = 0;
	while (rc == 0 && trainer->counters.epoch < trainer->options.epochs)
		rc = neap__epoch(trainer, &samples);
	if (rc == 0)
		rc = finish(trainer);
	fill_result(trainer, before);
	if (trainer->trace && !trainer->traced && trainer->planning.sweeps > 0) {
		int written = neap__trainer_trace(trainer);
		rc = rc < 0 ? rc : written;
	}
	return rc;
}

int neap_train(struct neap_train_result *result, const struct neap_train_options *options)
{
	NEAP_NEED(result, options);
	struct neap__trainer trainer = {.result = result, .state = "running", .folder = -1};

	NEAP_TRY(neap__struct_size(
		result->size, sizeof *result, sizeof *result, "neap_train_result"));
	*result = (struct neap_train_result){.size = sizeof(struct neap_train_result)};
	NEAP_TRY(neap__struct_size(
		options->size, sizeof *options, sizeof *options, "neap_train_options"));
	trainer.options = *options;
	if (!trainer.options.data || !*trainer.options.data)
		return neap__fail(
			NEAP_EUSAGE, "a data set is missing; 'randman' is the built-in one");
	if (!trainer.options.out || !*trainer.options.out)
		return neap__fail(NEAP_EUSAGE, "a folder for the run is missing");
	trainer.started = neap__seconds();
	int rc = run(&trainer);
	neap__teardown(&trainer);
	neap__run_folder_leave(&trainer);
	if (rc < 0)
		neap_train_result_free(result);
	return rc;
}

void neap_train_result_free(struct neap_train_result *result)
{
	if (!result)
		return;
	neap_eval_result_free(&result->validation);
	neap_eval_result_free(&result->test);
}
