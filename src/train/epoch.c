/* SPDX-License-Identifier: Apache-2.0 */
/* epoch.c: runs one epoch: sweeps and updates of its batches, validation, the best model, metrics.
 */
#include "train/trainer.h"
#include "data/loader_ahead.h"
#include "train/evaluate.h"
#include "train/model.h"
#include "nn/batch/batch.h"
#include "nn/core/cell.h"
#include "nn/core/on_device.h"
#include "base/fail.h"
#include "base/print.h"
#include "base/quote.h"
#include "sys/clock.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static int64_t total_updates(const struct neap__trainer *trainer)
{
	return neap_loader_batches(trainer->data.loader) * trainer->options.epochs;
}

static double rate_of(const struct neap__trainer *trainer, int64_t update)
{
	return neap__learning_rate_at(trainer->schedule, trainer->options.learning_rate,
		trainer->options.warmup, update, total_updates(trainer));
}

/* How the backward pass was made to leave out resets; NULL: no layer leaves them out. */
static const char *detaching(const struct neap__trainer *trainer)
{
	const struct neap_net *net = trainer->net;

	for (int l = 0; l < net->nlayers; l++)
		if (net->layers[l].detach && (net->layers[l].cell->traits & NEAP__HAS_DETACH))
			return trainer->options.net.detach ? "--detach" : "detach=1 from --net";
	return NULL;
}

/*
 * All ranks have the same numbers, and fail alike. `updates` is how many the number depends on:
 * neither learning rate nor clip is to blame for what the initial weights give.
 */
static int diverged(struct neap__trainer *trainer, const char *what, double value, int64_t updates)
{
	const struct neap__counters *c = &trainer->counters;
	const struct neap_train_options *o = &trainer->options;
	/* Losses before the first update have seen no backward pass. */
	const char *detach = updates > 0 || strcmp(what, "loss") != 0 ? detaching(trainer) : NULL;
	/* The loss is finite, so that numbers of the backward pass have overflowed: their growth
	 * over the steps depends on the weights and the surrogate, and clipping comes later. */
	int overflows = strcmp(what, "gradient norm") == 0 && o->net.precision != NEAP_DOUBLE &&
			(updates > 0 || o->from);
	char remedy[300];
	size_t n;

	trainer->ranks.together = 1;
	if (updates == 0)
		n = (size_t)neap__print(remedy, sizeof remedy,
			"The %s cause it: ", o->from ? "weights of --from" : "initial weights");
	else
		n = 0;
	if (detach)
		n += (size_t)neap__print(remedy + n, sizeof remedy - n, "%s %s, or ",
			updates == 0 ? "remove" : "Remove", detach);
	if (updates == 0 && o->from)
		n += (size_t)neap__print(
			remedy + n, sizeof remedy - n, "decrease the size of the inputs");
	else if (updates == 0)
		neap__print(remedy + n, sizeof remedy - n,
			"decrease --scale, --recurrent-scale or the size of the inputs");
	else
		n += (size_t)neap__print(remedy + n, sizeof remedy - n,
			o->clip > 0 ? "%s --lr (now %g) or --clip (now %g)"
				    : "%s --lr (now %g) or set --clip (now off)",
			detach ? "lower" : "Lower", o->learning_rate, o->clip);
	if (overflows)
		neap__print(remedy + n, sizeof remedy - n,
			"; or pass --precision double, since the gradient exceeds the range of "
			"single precision before it is clipped");
	return neap__fail(NEAP_EDIVERGED,
		"training diverged: the %s is %s in epoch %" PRId64 ", batch %" PRId64
		". %s%s%.200s",
		what, isnan(value) ? "nan" : "infinite", c->epoch + 1, c->batch + 1, remedy,
		trainer->has_snapshot ? ". The last good snapshot is in " : "",
		trainer->has_snapshot ? o->out : "");
}

static void add_sums(struct neap__counters *c, const struct neap_net_result *found, int size)
{
	c->seen += size;
	c->correct += found->right;
	c->judged += found->judged;
	c->loss += (found->loss - found->penalty) * size;
	c->penalty += found->penalty * size;
	c->spikes += found->spikes * size;
	c->support += found->support * size;
}

/* Runs one sweep; the batch is begun. */
static int sweep_batch(struct neap__trainer *trainer, const struct neap_batch *batch)
{
	struct neap_sweep_stats stats = {.size = sizeof stats};
	double loss;

	NEAP_TRY(neap__planning_batch(trainer, batch));
	/* All ranks have the same loss: train_batch refuses it, with what the run can do about it.
	 */
	int rc = neap_sweep_run(trainer->sweep, NULL, NULL, &loss, &stats);
	if (rc == NEAP_EDIVERGED)
		return 0;
	NEAP_TRY(neap__device_budget_failed(
		rc, &trainer->options.sweep, trainer->net, trainer->planning.memory));
	neap__planning_learn(trainer, batch, &stats);
	if (trainer->trace && trainer->planning.sweeps == trainer->options.sweep.trace_batch)
		NEAP_TRY(neap__trainer_trace(trainer));
	return 0;
}

/* A rank without samples takes part in what the others add up. */
static int join_batch(struct neap__trainer *trainer)
{
	unsigned char adjoint[1];
	double loss;

	return neap_net_turn(trainer->net, NULL, adjoint, &loss);
}

/* Moves the weights along the gradient of a batch, whose results are in *found. */
static int update_weights(struct neap__trainer *trainer, const struct neap_net_result *found)
{
	struct neap__counters *c = &trainer->counters;
	double norm;

	if (!isfinite(found->loss))
		return diverged(trainer, "loss", found->loss, c->update);
	NEAP_TRY(neap__clip(&norm, trainer->net, trainer->options.clip, trainer->ranks.peers));
	if (!isfinite(norm))
		return diverged(trainer, "gradient norm", norm, c->update);
	int64_t finite = neap__optimizer_step(
		&trainer->optimizer, trainer->net, rate_of(trainer, c->update), c->update + 1);
	if (finite < 0)
		return (int)finite;
	NEAP_TRY(neap__ranks_least(&trainer->ranks, &finite, 1));
	if (!finite)
		return diverged(trainer, "largest weight", INFINITY, c->update + 1);
	return neap__rank_weights(trainer);
}

static int train_batch(struct neap__trainer *trainer, const struct neap_batch *given)
{
	struct neap__counters *c = &trainer->counters;
	struct neap_net_result found = {.size = sizeof found};
	struct neap_batch wide;
	const struct neap_batch *batch = neap__widen(&wide, given, trainer->options.net.inputs);

	if (batch->bytes > trainer->result->data_bytes)
		trainer->result->data_bytes = batch->bytes;
	trainer->objective.dropout = (uint32_t)c->epoch + 1;
	struct neap_objective objective = trainer->objective;
	objective.peers = trainer->ranks.peers;
	if (!trainer->idle)
		neap__memory_total_before(trainer);
	neap__rank_meter_open(&trainer->meter);
	neap__net_ahead_begins(trainer->net, given);
	NEAP_TRY(neap_net_begin(trainer->net, batch, &objective));
	double waited = batch->windows ? neap_windows_waited(batch->windows) : 0;
	int rc = batch->size > 0 ? sweep_batch(trainer, batch) : join_batch(trainer);
	if (batch->windows) {
		trainer->result->window_steps = neap_windows_steps(batch->windows);
		trainer->result->input_wait += neap_windows_waited(batch->windows) - waited;
	}
	if (rc < 0)
		neap__net_drop(trainer->net);
	NEAP_TRY(rc);
	NEAP_TRY(neap_net_end(trainer->net));
	neap_net_get_result(trainer->net, &found);
	NEAP_TRY(update_weights(trainer, &found));
	add_sums(c, &found, batch->of > 0 ? batch->of : batch->size);
	c->batch++;
	c->update++;
	return 0;
}

static void fill_progress(
	const struct neap__trainer *trainer, struct neap_train_progress *p, double samples)
{
	const struct neap__counters *c = &trainer->counters;
	double n = c->seen > 0 ? (double)c->seen : 1;

	*p = (struct neap_train_progress){.epoch = (int)c->epoch,
		.epochs = trainer->options.epochs,
		.batch = c->batch,
		.batches = neap_loader_batches(trainer->data.loader),
		.sample = c->seen,
		.samples = trainer->data.nfirst,
		.update = c->update,
		.loss = c->loss / n,
		.penalty = c->penalty / n,
		.accuracy = neap__accuracy(c->correct, c->judged),
		.seconds = neap__seconds() - trainer->started,
		.peak_planned = (uint64_t)c->peak_planned,
		.peak_measured = (uint64_t)c->peak_measured,
		.spikes = neap__net_spikes(trainer->net) ? c->spikes / n : NAN,
		.support = neap__net_spikes(trainer->net) ? c->support / n : NAN,
		.learning_rate = rate_of(trainer, c->update > 0 ? c->update - 1 : 0)};
	p->samples_per_second = p->seconds > 0 ? samples / p->seconds : 0;
}

static int interrupted(struct neap__trainer *trainer)
{
	const struct neap__counters *c = &trainer->counters;
	trainer->state = "interrupted";
	NEAP_TRY(neap__ranks_agree(&trainer->ranks,
		neap__ranks_root(&trainer->ranks) ? neap__run_json_write(trainer) : 0));
	trainer->ranks.together = 1;
	return neap__fail(NEAP_EINTERRUPTED,
		"interrupted after %" PRId64 " epoch%s and %" PRId64
		" batch%s. Continue with --resume: neap train --out %s --resume",
		(int64_t)c->epoch, c->epoch == 1 ? "" : "s", (int64_t)c->batch,
		c->batch == 1 ? "" : "es", neap__quoted(trainer->options.out));
}

/* Rank 0 saves a snapshot of weights that are the same on all ranks. */
static int save_snapshot(struct neap__trainer *trainer)
{
	NEAP_TRY(neap__ranks_same_weights(&trainer->ranks, trainer->net));
	NEAP_TRY(neap__rank_moments_gather(trainer));
	NEAP_TRY(neap__optimizer_fetch(&trainer->optimizer, trainer->net));
	int rc = neap__ranks_root(&trainer->ranks) ? neap__snapshot_save(trainer) : 0;
	neap__optimizer_fini(&trainer->whole);
	NEAP_TRY(neap__ranks_agree(&trainer->ranks, rc));
	trainer->has_snapshot = 1;
	return 0;
}

/* Asks on all ranks whether the run is to stop: where one says so, all stop. */
static int is_stopped(struct neap__trainer *trainer, const struct neap_train_progress *progress)
{
	const struct neap_train_options *o = &trainer->options;
	int64_t goes_on = !(o->progress && o->progress(o->user, progress));

	NEAP_TRY(neap__ranks_least(&trainer->ranks, &goes_on, 1));
	return !goes_on;
}

/*
 * Tells the ranks what a batch is followed by, wishes[2], and how long its exchanges took: the
 * least over ranks of each. The meter's batch ends.
 */
static int agree_on_batch(struct neap__trainer *trainer, int64_t wishes[2])
{
	struct neap__rank_meter *meter = &trainer->meter;
	struct neap_exchange *e = &trainer->result->exchange;
	struct neap__counters *c = &trainer->counters;
	int64_t values[2 + NEAP__METER_CALLS] = {wishes[0], wishes[1]};
	double waited = neap__rank_meter_spent(meter->spent);

	if (!trainer->ranks.peers)
		return 0;
	memcpy(values + 2, meter->spent, sizeof meter->spent);
	e->calls += meter->calls;
	NEAP_TRY(neap__ranks_least(&trainer->ranks, values, 2 + NEAP__METER_CALLS));
	memcpy(wishes, values, 2 * sizeof *wishes);
	double seconds = neap__rank_meter_spent(values + 2);
	e->batches++;
	e->seconds += seconds;
	e->waited += waited;
	e->sent += meter->sent;
	c->exchanged += seconds;
	c->waited += waited;
	c->sent += (int64_t)meter->sent;
	neap__rank_meter_close(meter);
	return 0;
}

/*
 * After every batch: reports, and saves a snapshot where one is due, by the clock of rank 0. The
 * ranks hear of an interrupt and of the snapshot at once.
 */
static int after_batch(struct neap__trainer *trainer, double samples)
{
	const struct neap_train_options *o = &trainer->options;
	struct neap_train_progress progress;

	fill_progress(trainer, &progress, samples);
	int is_due = o->snapshot_seconds > 0 && neap__ranks_root(&trainer->ranks) &&
		     neap__seconds() - trainer->snapshot >= o->snapshot_seconds;
	int64_t wishes[2] = {!(o->progress && o->progress(o->user, &progress)), !is_due};
	NEAP_TRY(agree_on_batch(trainer, wishes));
	if (!wishes[0] || !wishes[1])
		NEAP_TRY(save_snapshot(trainer));
	return wishes[0] ? 0 : interrupted(trainer);
}

static int save_model(struct neap__trainer *trainer)
{
	struct neap__tensor_bundle bundle = {0};
	char epoch[24];

	/* A device that failed has other weights than those of the host: no file has them. */
	NEAP_TRY(neap__on_device_share(trainer->net));
	neap__model_describe(
		&bundle, &trainer->options.net, trainer->data.set, trainer->options.max_steps);
	neap__model_rows_write(&bundle, trainer->data.set);
	neap__tensor_bundle_meta(&bundle, "neap.loss", trainer->options.loss);
	neap__print(epoch, sizeof epoch, "%" PRId64, trainer->counters.epoch);
	neap__tensor_bundle_meta(&bundle, "neap.epoch", epoch);
	neap__model_add(&bundle, trainer->net);
	int rc = neap__tensor_bundle_write(&bundle, trainer->model);
	neap__tensor_bundle_free(&bundle);
	return rc;
}

int neap__validate(struct neap__trainer *trainer, struct neap_eval_result *result)
{
	*result = (struct neap_eval_result){.size = sizeof(struct neap_eval_result)};
	if (!trainer->data.validation)
		return 0;
	neap__memory_total_release(trainer);
	const struct neap__evaluation evaluation = {.net = trainer->net,
		.options = &trainer->options.net,
		.loss = trainer->objective.loss,
		.target = trainer->data.info.target,
		.deviation = trainer->objective.deviation,
		.loader = trainer->data.validation,
		.ranks = &trainer->ranks};
	return neap__evaluate(result, &evaluation);
}

/*
 * Returns 1 if this epoch's model is the best so far: by validation accuracy, among equals by
 * loss, among equals the earlier.
 */
static int is_best(const struct neap__trainer *trainer, const struct neap_eval_result *found)
{
	const struct neap__counters *c = &trainer->counters;

	if (c->best_epoch == 0)
		return 1;
	if (found->judged > 0 && found->accuracy != c->best_validation)
		return found->accuracy > c->best_validation;
	return found->loss < c->best_loss;
}

/* Joules of the device since the last call or the beginning; 0: unknown. */
static double energy_of(struct neap__trainer *trainer)
{
	struct neap_device_use now;
	double before = trainer->joules;

	if (neap__on_device_use(trainer->net, &now, NULL) < 0 || now.joules <= 0)
		return 0;
	trainer->joules = now.joules;
	trainer->result->device.joules += now.joules - before;
	return now.joules - before;
}

/* Takes an epoch as the best, whose model is kept. */
static int keep_best(struct neap__trainer *trainer)
{
	struct neap__counters *c = &trainer->counters;
	const struct neap_eval_result *validation = &trainer->result->validation;

	c->best_epoch = c->epoch;
	c->best_validation = validation->judged > 0 ? validation->accuracy : 0;
	c->best_loss = validation->loss;
	return neap__ranks_root(&trainer->ranks) ? save_model(trainer) : 0;
}

/* Notes about the first epoch, and about the last; `before`: the loss of the epoch before. */
static void say_doubts(struct neap__trainer *trainer, double before, double validation_loss)
{
	const struct neap_train_result *r = trainer->result;

	if (trainer->counters.epoch == 1)
		neap__activity_say(trainer, r->validation.rates);
	if (trainer->counters.epoch != trainer->options.epochs)
		return;
	neap__doubts_say_constant(trainer, r->train_accuracy, r->train_loss, validation_loss);
	neap__doubts_say_falling(trainer, before, r->train_loss, r->train_accuracy);
}

/*
 * Writes model and metrics before the snapshot. If the run is killed in between, it resumes from
 * the snapshot before and does the end of the epoch again, to the same bits.
 */
static int end_epoch(struct neap__trainer *trainer, double samples)
{
	const struct neap_train_options *o = &trainer->options;
	int is_root = neap__ranks_root(&trainer->ranks), rc = 0;
	struct neap__counters *c = &trainer->counters;
	struct neap_train_result *r = trainer->result;
	struct neap_train_progress progress;

	neap_eval_result_free(&r->validation);
	NEAP_TRY(neap__validate(trainer, &r->validation));
	fill_progress(trainer, &progress, samples);
	double before = r->train_loss; /* of the epoch before; 0: none in this session */
	r->train_loss = progress.loss;
	r->train_accuracy = progress.accuracy;
	progress.epoch_done = 1;
	int validated = r->validation.samples > 0;
	progress.validation_loss = validated ? r->validation.loss : NAN;
	progress.validation_accuracy = validated ? r->validation.accuracy : NAN;
	int chooses = neap__chooses_best(trainer);
	progress.best = chooses && is_best(trainer, &r->validation);
	c->epoch++;
	if (progress.best || !chooses)
		rc = keep_best(trainer);
	double joules = energy_of(trainer);
	if (rc == 0 && is_root)
		rc = neap__metrics_add(trainer, progress.learning_rate, &r->validation, joules);
	NEAP_TRY(neap__ranks_agree(&trainer->ranks, rc));
	c->batch = c->seen = c->correct = c->judged = 0;
	c->loss = c->penalty = c->spikes = c->support = 0;
	c->exchanged = c->waited = 0;
	c->sent = 0;
	NEAP_TRY(save_snapshot(trainer));
	NEAP_TRY(neap__ranks_agree(&trainer->ranks, is_root ? neap__run_json_write(trainer) : 0));
	int stops = is_stopped(trainer, &progress);
	NEAP_TRY(stops);
	say_doubts(trainer, before, progress.validation_loss);
	return stops && c->epoch < o->epochs ? interrupted(trainer) : 0;
}

static const struct neap_batch *next_batch(void *loader)
{
	return neap__loader_ahead(loader);
}

/* The next batch; the time until it is there counts as waiting for inputs. */
static int wait_for_batch(struct neap__trainer *trainer, const struct neap_batch **batch)
{
	double start = neap__seconds();
	int rc = neap_loader_next(trainer->data.loader, batch);
	trainer->result->input_wait += neap__seconds() - start;
	return rc;
}

int neap__epoch(struct neap__trainer *trainer, double *samples)
{
	struct neap__data *d = &trainer->data;
	struct neap__counters *c = &trainer->counters;
	const struct neap_batch *batch;
	int rc = 0;

	if (c->batch < neap_loader_batches(d->loader)) {
		NEAP_TRY(neap_loader_start(d->loader, c->epoch, c->batch));
		neap__rank_meter_reset(&trainer->meter);
		neap__net_ahead(trainer->net, next_batch, d->loader);
		while ((rc = wait_for_batch(trainer, &batch)) > 0) {
			*samples += batch->of > 0 ? batch->of : batch->size;
			NEAP_TRY(train_batch(trainer, batch));
			NEAP_TRY(after_batch(trainer, *samples));
		}
	}
	NEAP_TRY(rc);
	return end_epoch(trainer, *samples);
}
