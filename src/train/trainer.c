/* SPDX-License-Identifier: Apache-2.0 */
/* trainer.c: neap_train: runs a training from its folder to its last evaluation. */
#include "train/trainer.h"
#include "train/evaluate.h"
#include "train/model.h"
#include "nn/core/net_state.h"
#include "nn/core/on_device.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/struct_size.h"
#include "sys/clock.h"
#include "sys/memory.h"
#include "sys/pool.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

/* Rank 0 writes run.json. */
static int write_run(struct neap__trainer *trainer)
{
	int rc = neap__ranks_root(&trainer->ranks) ? neap__run_json_write(trainer) : 0;
	return neap__ranks_agree(&trainer->ranks, rc);
}

/* Puts the best model, which rank 0 reads, into the net. */
static int take_best(struct neap__trainer *trainer)
{
	struct neap__safetensors file;

	if (!neap__ranks_root(&trainer->ranks))
		return 0;
	NEAP_TRY(neap__safetensors_read(&file, trainer->model));
	int rc = neap__model_take(trainer->net, &file);
	neap__safetensors_free(&file);
	return rc < 0 ? neap__fail_in(rc, "%s: ", trainer->model) : 0;
}

/* Evaluates the best model on the validation split, and once, here only, on the test set. */
static int finish(struct neap__trainer *trainer)
{
	const struct neap_train_options *o = &trainer->options;
	struct neap_loader_options loading = {
		.size = sizeof loading, .batch = o->batch, .dt = o->net.dt, .steps = o->max_steps};
	struct neap_train_result *r = trainer->result;
	struct neap_loader *loader = NULL;
	int rc;

	neap_sweep_release(trainer->sweep);
	r->weights_hash = neap__weights_hash(trainer->net);
	NEAP_TRY(neap__ranks_agree(&trainer->ranks, take_best(trainer)));
	NEAP_TRY(neap__ranks_send_weights(&trainer->ranks, trainer->net));
	neap_eval_result_free(&r->validation);
	NEAP_TRY(neap__validate(trainer, &r->validation));
	if (trainer->data.test) {
		neap__ranks_loader(&trainer->ranks, trainer->net, &loading, trainer->data.ntest);
		rc = neap_loader_open(&loader, trainer->data.test, &loading);
		NEAP_TRY(neap__ranks_agree(&trainer->ranks, rc));
		const struct neap__evaluation evaluation = {.net = trainer->net,
			.options = &o->net,
			.loss = trainer->objective.loss,
			.loader = loader,
			.target = trainer->data.info.target,
			.deviation = trainer->objective.deviation,
			.ranks = &trainer->ranks};
		rc = neap__evaluate(&r->test, &evaluation);
		neap_loader_close(loader);
		NEAP_TRY(rc);
	}
	trainer->state = "done";
	trainer->counters.seconds = trainer->session + neap__seconds() - trainer->started;
	return write_run(trainer);
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

/*
 * Rank 0 locks the folder and writes run.json, if there is none, before costs are measured: a run
 * that is killed while it measures can be resumed with its options. The run.json of an earlier
 * session stays until the new plan is known to fit.
 */
static int take_folder(struct neap__trainer *trainer)
{
	if (!neap__ranks_root(&trainer->ranks))
		return 0;
	NEAP_TRY(neap__run_folder_take(trainer, trainer->there));
	trainer->drafted = access(trainer->run, F_OK) < 0;
	return trainer->drafted ? neap__run_json_write(trainer) : 0;
}

/* Rank 0 reads the snapshot of the folder and begins its files; *found: there was one. */
static int begin_files(struct neap__trainer *trainer, int *found)
{
	if (!neap__ranks_root(&trainer->ranks))
		return 0;
	if (trainer->there)
		NEAP_TRY(*found = neap__snapshot_load(trainer));
	NEAP_TRY(neap__metrics_start(trainer));
	NEAP_TRY(neap__run_json_write(trainer));
	trainer->drafted = 0;
	return 0;
}

static int begin_or_resume(struct neap__trainer *trainer)
{
	const struct neap_train_options *o = &trainer->options;
	const struct neap__counters *c = &trainer->counters;
	int found = 0;

	NEAP_TRY(neap__rank_moments_room(trainer));
	NEAP_TRY(neap__ranks_agree(&trainer->ranks, begin_files(trainer, &found)));
	NEAP_TRY(neap__ranks_send(&trainer->ranks, &found, sizeof found));
	if (found)
		NEAP_TRY(neap__rank_state_send(trainer));
	neap__optimizer_fini(&trainer->whole);
	/* Checks all input first, so that bad input prints one line and no more. */
	neap__setup_say(trainer);
	if (found)
		neap__trainer_say(trainer,
			"resumed from %s: done so far: %" PRId64 " epoch%s and %" PRId64
			" batch%s%s",
			trainer->last, c->epoch, c->epoch == 1 ? "" : "s", c->batch,
			c->batch == 1 ? "" : "es",
			c->epoch < o->epochs
				? ""
				: "; the run is complete. To train longer, raise --epochs");
	else if (o->resume)
		neap__trainer_say(trainer,
			"warning: no snapshot in '%s': starting from the beginning", o->out);
	if (!trainer->idle)
		neap__planning_say(trainer);
	return neap__ranks_agree(
		&trainer->ranks, trainer->idle ? 0 : neap__memory_total_say(trainer));
}

/* Looks at the folder of the run, which rank 0 alone has to see. */
static int check_folder(struct neap__trainer *trainer)
{
	int rc = 0, found[2] = {0};

	NEAP_TRY(neap__run_folder_paths(trainer));
	if (neap__ranks_root(&trainer->ranks)) {
		rc = neap__run_folder_check(&trainer->options);
		found[0] = rc > 0;
		found[1] = rc > 0 && access(trainer->last, F_OK) == 0;
	}
	NEAP_TRY(neap__ranks_agree(&trainer->ranks, rc));
	NEAP_TRY(neap__ranks_send(&trainer->ranks, found, sizeof found));
	trainer->there = found[0];
	trainer->has_snapshot = found[1];
	double gain = 0;
	if (trainer->has_snapshot && neap__ranks_root(&trainer->ranks) &&
		trainer->options.readout_gain < 0)
		gain = neap__snapshot_readout_gain(trainer);
	NEAP_TRY(neap__ranks_send(&trainer->ranks, &gain, sizeof gain));
	if (trainer->options.readout_gain < 0 && trainer->options.resume && trainer->has_snapshot)
		trainer->options.readout_gain = gain;
	return 0;
}

/* Says where a batch has too few groups for the threads of all ranks. A dense group is cut in four.
 */
static void say_idle_threads(const struct neap__trainer *trainer, int batch, int groups)
{
	int threads = neap__thread_pool_threads(trainer->net->pool) * trainer->ranks.peers->count;

	if (groups * (trainer->net->dense ? 4 : 1) < threads)
		neap__trainer_say(trainer,
			"warning: a batch of %d samples has %d groups, fewer than the threads of "
			"the %d ranks (%d), so some threads stay idle. Lower --group or --threads, "
			"or raise --batch",
			batch, groups, trainer->ranks.peers->count, threads);
}

/* Refuses ranks that would compute other bits, and says how many have nothing to do. */
static int check_ranks(struct neap__trainer *trainer)
{
	const struct neap_peers *peers = trainer->ranks.peers;
	const struct neap__rank_facts facts = {.options = &trainer->options,
		.data = trainer->options.data,
		.fingerprint = trainer->data.fingerprint,
		.weights = neap__weights_hash(trainer->net),
		.test = trainer->data.ntest};

	if (!peers)
		return 0;
	NEAP_TRY(neap__ranks_same(&trainer->ranks, &facts));
	int batch = trainer->options.batch;
	if (batch > trainer->data.nfirst)
		batch = (int)trainer->data.nfirst;
	int group = neap_net_group(trainer->net, batch), groups = (batch - 1) / group + 1;
	trainer->idle = peers->rank >= groups;
	if (groups < peers->count)
		neap__trainer_say(trainer,
			"warning: %d of %d ranks have no samples, because a batch of %d has %d "
			"group%s of %d. Lower --group, or raise --batch",
			peers->count - groups, peers->count, batch, groups, groups == 1 ? "" : "s",
			group);
	else
		say_idle_threads(trainer, batch, groups);
	return 0;
}

static int run(struct neap__trainer *trainer)
{
	double samples = 0;

	NEAP_TRY(neap__ranks_begin(&trainer->ranks, trainer->options.peers));
	trainer->ranks.peers = neap__rank_meter_take(&trainer->meter, trainer->ranks.peers);
	if (trainer->ranks.peers)
		trainer->result->exchange.ranks = trainer->ranks.peers->count;
	if (!neap__ranks_root(&trainer->ranks))
		trainer->options.sweep.trace = NULL;
	NEAP_TRY(check_folder(trainer));
	NEAP_TRY(neap__ranks_agree(&trainer->ranks, neap__setup(trainer)));
	NEAP_TRY(check_ranks(trainer));
	NEAP_TRY(neap__ranks_agree(&trainer->ranks, take_folder(trainer)));
	NEAP_TRY(neap__ranks_agree(
		&trainer->ranks, trainer->idle ? 0 : neap__planning_start(trainer)));
	/* After all other checks, which would be hidden by a folder of the default name. */
	NEAP_TRY(neap__ranks_agree(&trainer->ranks,
		neap__ranks_root(&trainer->ranks) ? neap__run_folder_is_free(trainer) : 0));
	NEAP_TRY(begin_or_resume(trainer));
	int64_t before = trainer->counters.epoch;
	trainer->started = trainer->snapshot = neap__seconds();
	struct neap_device_use use;
	NEAP_TRY(neap__on_device_use(trainer->net, &use, NULL));
	trainer->joules = use.joules;
	trainer->result->device.joules = 0;
	int rc = 0;
	while (rc == 0 && trainer->counters.epoch < trainer->options.epochs)
		rc = neap__epoch(trainer, &samples);
	if (rc == 0)
		rc = finish(trainer);
	fill_result(trainer, before);
	if (rc == 0)
		rc = neap__memory_device_end(trainer);
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
			NEAP_EUSAGE, "the data set is missing; 'randman' is the built-in one");
	if (!trainer.options.out || !*trainer.options.out)
		return neap__fail(NEAP_EUSAGE, "the folder of the run is missing (--out)");
	trainer.started = neap__seconds();
	int rc = run(&trainer);
	neap__ranks_end(&trainer.ranks, rc);
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
