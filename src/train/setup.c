/* SPDX-License-Identifier: Apache-2.0 */
/* setup.c: opens and checks all that a run needs, before anything is written. */
#include "train/trainer.h"
#include "train/model.h"
#include "train/model_file.h"
#include "train/nir/nir_model.h"
#include "train/settings.h"
#include "train/reports/input_doubts.h"
#include "measure/process_memory.h"
#include "nn/core/on_device.h"
#include "measure/target_fit.h"
#include "data/augment/augment.h"
#include "data/coded_rows.h"
#include "data/dataset.h"
#include "data/row_reading.h"
#include "data/target_units.h"
#include "nn/batch/batch.h"
#include "nn/core/cell.h"
#include "nn/time_unit.h"
#include "base/fail.h"
#include "base/print.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Returns the longest sample of a data set in steps, at most `limit` (0: no limit). */
static int64_t longest_of(const struct neap_dataset_info *info, double dt, int64_t limit)
{
	double steps = info->duration > 0 ? ceil(info->duration / dt) : 0;
	if (info->steps)
		steps = (double)info->steps;
	if (limit > 0 && steps > (double)limit)
		return limit;
	return steps < 9e15 ? (int64_t)steps : INT64_MAX / 2;
}

static int find_speaker(int *speaker, const struct neap__data *data, const char *name)
{
	for (int i = 0; i < data->info.speakers; i++) {
		const char *known = neap_dataset_speaker_name(data->set, i);
		if (known && strcmp(known, name) == 0) {
			*speaker = i;
			return 0;
		}
	}
	char known[160] = "";
	if (data->info.speakers == 0)
		return neap__fail(NEAP_EUSAGE,
			"--holdout %s: %s does not name speakers. Encode the recordings with "
			"'neap encode --speaker', or hold out a share with --validation",
			name, data->info.name);
	for (int i = 0, n = 0; i < data->info.speakers && n < 150; i++) {
		const char *one = neap_dataset_speaker_name(data->set, i);
		n += neap__print(known + n, sizeof known - (size_t)n, "%s%s", i ? ", " : "",
			one ? one : "?");
	}
	return neap__fail(NEAP_EUSAGE, "--holdout %s: %s has no speaker '%s'. Its speakers are %s",
		name, data->info.name, name, known);
}

static int split(struct neap__trainer *trainer)
{
	const struct neap_train_options *o = &trainer->options;
	struct neap__data *d = &trainer->data;
	int speaker = -1;

	d->nfirst = d->info.samples;
	if (o->holdout)
		NEAP_TRY(find_speaker(&speaker, d, o->holdout));
	else if (!(o->validation > 0))
		return 0;
	NEAP_TRY(neap_dataset_split(d->set, o->validation, o->seed, speaker, &d->first, &d->nfirst,
		&d->second, &d->nsecond));
	if (d->nfirst == 0 && o->holdout)
		return neap__fail(NEAP_EUSAGE,
			"--holdout %s holds out all samples of %s, none is left for training. "
			"Choose another "
			"speaker, or hold out a share with --validation",
			o->holdout, d->info.name);
	if (d->nfirst == 0)
		return neap__fail(NEAP_EUSAGE,
			"--validation %g holds out all samples of %s, none is left for training. "
			"Lower "
			"--validation, or add samples",
			o->validation, d->info.name);
	return 0;
}

/* Reads the weights to begin with, unless a snapshot has better ones. */
static int read_from(struct neap__trainer *trainer)
{
	const struct neap_train_options *o = &trainer->options;

	if (!o->from || (o->resume && trainer->has_snapshot))
		return 0;
	const struct neap__nir_hints hints = {
		.dt = o->net.dt, .values = trainer->data.info.values != 0};
	return neap__model_file_read(&trainer->from, o->from, &hints);
}

/* Has the data's features in the order of a model, before the data's rows are used. */
static int match_features(const struct neap__trainer *trainer, const struct neap__safetensors *file)
{
	char line[NEAP__TAKEN_TEXT];
	int rc = neap__model_match_features(line, trainer->data.set, file);

	if (rc > 0)
		neap__trainer_say(trainer, "%s", line);
	return rc < 0 ? rc : 0;
}

/*
 * Numbers stay numbers, or become spikes, as in the data that the weights were trained on: --encode
 * has replaced the coding of the model.
 */
static int same_coding(const struct neap__trainer *trainer, const struct neap_net_options *net)
{
	const struct neap_train_options *o = &trainer->options;
	const struct neap_dataset *set = trainer->data.set;
	struct neap__coding coding;
	char text[NEAP__CODING_TEXT];

	if (!set->ops->values || !trainer->data.info.values == !net->values)
		return 0;
	NEAP_TRY(neap__model_coding(
		&coding, neap__safetensors_meta(&trainer->from, NEAP__MODEL_INPUTS)));
	if (net->values)
		return neap__fail(NEAP_EUSAGE,
			"--encode %s converts the numbers of '%.200s' into spikes, but --from "
			"'%.200s' was trained on numbers that were not converted. Remove --encode",
			o->encode, set->name, o->from);
	if (coding.kind)
		return neap__fail(NEAP_EUSAGE,
			"--encode none leaves the numbers of '%.200s' as they are, but --from "
			"'%.200s' was trained on spikes that --encode %s made of numbers. Remove "
			"--encode",
			set->name, o->from, neap__coding_text(text, &coding));
	return 0; /* which is compared next */
}

/*
 * Compares the data with the net that the weights are of, and takes channels and classes from
 * there where none are said.
 */
static int from_fits(struct neap__trainer *trainer)
{
	struct neap_train_options *o = &trainer->options;
	const struct neap__data *d = &trainer->data;
	const char *text = neap__safetensors_meta(&trainer->from, "neap.net");
	json_t *json = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
	struct neap_net_options net;

	int rc =
		json ? neap__settings_take_net(&net, json)
		     : neap__fail(NEAP_EFORMAT,
			       "its metadata does not describe a network. Pass a model.safetensors "
			       "or last.safetensors of 'neap train', or a NIR graph");
	json_decref(json);
	if (rc < 0)
		return neap__fail_in(rc, "%s: ", o->from);
	rc = neap__model_adopt_text(d->set, &trainer->from);
	if (rc < 0)
		return neap__fail_in(rc, "%s: ", o->from);
	NEAP_TRY(neap_dataset_info(d->set, &trainer->data.info));
	NEAP_TRY(same_coding(trainer, &net));
	/* A new readout has other classes; what is in front of it stays. */
	if (o->fresh_readout || (rc = neap__model_kind_fits(&trainer->from, d->set)) == 0)
		rc = o->net.inputs ? 0 : neap__model_channels_fit(&trainer->from, &net, d->set);
	if (rc < 0)
		return neap__fail_in(rc, "%s: ", o->from);
	if (o->net.inputs == 0)
		o->net.inputs = net.inputs;
	if (o->fresh_readout)
		return 0;
	if (o->net.classes == 0)
		o->net.classes = net.classes;
	if (d->info.classes > net.classes)
		return neap__fail(NEAP_EUSAGE,
			"%s has %d classes, but the network of '%s' has %d outputs. Add "
			"--fresh-readout to train a new readout for %d classes",
			d->info.name, d->info.classes, o->from, net.classes, d->info.classes);
	rc = neap__model_fits(&trainer->from, &net, d->set,
		"add --fresh-readout to train a new readout for the classes of the data");
	return rc < 0 ? neap__fail_in(rc, "%s: ", o->from) : 0;
}

/* The line about weights that do not fit: of a network that --net replaced, or as it is. */
static int not_fitting(const struct neap__trainer *trainer, int rc)
{
	const struct neap_train_options *o = &trainer->options;
	const char *text = neap__safetensors_meta(&trainer->from, "neap.net");
	json_t *json = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
	const char *spec = json_string_value(json_object_get(json, "net"));

	if (spec && strcmp(spec, o->net.spec) != 0)
		rc = neap__fail(rc,
			"--net '%.200s' does not fit the weights of --from '%.200s'. Remove --net, "
			"or pass the network of the weights: --net %.200s",
			o->net.spec, o->from, spec);
	else
		rc = neap__fail_in(rc, "%s: ", o->from);
	json_decref(json);
	return rc;
}

static int take_from(struct neap__trainer *trainer)
{
	const struct neap_train_options *o = &trainer->options;

	if (trainer->from.tensors == 0)
		return 0;
	int rc = neap__model_start(trainer->net, &trainer->from, o->fresh_readout);
	if (rc < 0)
		rc = not_fitting(trainer, rc);
	neap__safetensors_free(&trainer->from);
	trainer->from = (struct neap__safetensors){0};
	return rc;
}

/* Has the data's numbers become spikes, where that is asked for; run.json gets all of its keys. */
static int encode_data(struct neap__trainer *trainer)
{
	struct neap_train_options *o = &trainer->options;
	struct neap__coding coding;

	NEAP_TRY(neap__coding_parse(&coding, o->encode));
	o->encode = neap__coding_text(trainer->coding, &coding);
	neap__coding_seed(&coding, o->seed);
	int rc = neap__rows_encode(trainer->data.set, &coding, o->max_steps);
	if (rc < 0 && o->from && !trainer->data.set->ops->values)
		return neap__fail(rc, "%s, or --from '%.200s' if its network encodes numbers",
			neap_detail(), o->from);
	return rc;
}

/* Given weights that keep their readout answer in the units that they were trained in. */
static int normalise_targets(struct neap__trainer *trainer)
{
	const struct neap_train_options *o = &trainer->options;
	struct neap__data *d = &trainer->data;

	if (!neap__has_number_targets(d->set) || o->no_normalise_targets)
		return 0;
	if (trainer->from.tensors > 0 && !o->fresh_readout) {
		int rc = neap__model_targets_scale(d->set, &trainer->from);
		NEAP_TRY(rc);
	} else {
		NEAP_TRY(neap__target_units_normalise(d->set, d->first, d->nfirst));
	}
	if (!o->next)
		trainer->objective.deviation = d->set->target_deviation;
	return 0;
}

/* Other data than a resumed run's is refused before the run's own options are found not to fit. */
static int check_resumed(struct neap__trainer *trainer)
{
	const struct neap_train_options *o = &trainer->options;
	struct neap__data *d = &trainer->data;

	if (!o->resume)
		return 0;
	neap__dataset_channels(d->set, o->net.inputs); /* too few: of other data */
	if (trainer->has_snapshot && (d->set->nfeature_names > 0 || d->set->ops->adopt)) {
		struct neap__safetensors last;
		NEAP_TRY(neap__safetensors_read(&last, trainer->last));
		int rc = match_features(trainer, &last);
		neap__model_adopt_text(d->set, &last); /* if not: it is another text */
		neap__safetensors_free(&last);
		NEAP_TRY(rc);
	}
	NEAP_TRY(neap__data_fingerprint(&d->fingerprint, d->set));
	return neap__run_folder_same_data(trainer);
}

/* Takes the sizes of the data where the network has none, and checks those that it has. */
static int fit_sizes(struct neap_net_options *net, const struct neap_dataset_info *info)
{
	if (net->inputs == 0)
		net->inputs = info->inputs;
	if (net->classes == 0)
		net->classes = info->classes;
	if (net->inputs < info->inputs || net->classes < info->classes)
		return neap__fail(NEAP_EUSAGE,
			"%s has %d channels and %d classes, but --channels and --classes give the "
			"network %d and %d. Remove them, or increase them",
			info->name, info->inputs, info->classes, net->inputs, net->classes);
	if ((info->values && net->inputs != info->inputs) ||
		(info->target != NEAP_TARGET_LABEL && info->target != NEAP_TARGET_LABELS &&
			net->classes != info->classes))
		return neap__fail(NEAP_EUSAGE,
			"%s has numbers with %d inputs and %d outputs, so --channels and --classes "
			"have no use. Remove them, or pass --channels %d --classes %d",
			info->name, info->inputs, info->classes, info->inputs, info->classes);
	return 0;
}

/* Normalises inputs that are numbers, as the given weights have it, if any. */
static int normalise_inputs(struct neap__trainer *trainer)
{
	struct neap__data *d = &trainer->data;

	if (!d->set->ops->values || trainer->options.no_normalise)
		return 0;
	int taken = neap__model_rows_scale(d->set, &trainer->from);
	NEAP_TRY(taken);
	return taken ? 0 : neap__rows_normalise(d->set, d->first, d->nfirst);
}

static int open_data(struct neap__trainer *trainer)
{
	struct neap_train_options *o = &trainer->options;
	struct neap__data *d = &trainer->data;

	NEAP_TRY(neap__data_open(&d->set, trainer, o->data, "DATA"));
	d->info.size = sizeof d->info;
	if (o->next)
		NEAP_TRY(neap__rows_next(d->set));
	NEAP_TRY(encode_data(trainer));
	NEAP_TRY(neap_dataset_info(d->set, &d->info));
	NEAP_TRY(check_resumed(trainer));
	NEAP_TRY(neap__dataset_has_labels(d->set));
	NEAP_TRY(read_from(trainer));
	if (trainer->from.tensors > 0)
		NEAP_TRY(from_fits(trainer));
	if (trainer->from.tensors > 0)
		NEAP_TRY(match_features(trainer, &trainer->from));
	neap__spec_fit(&o->net, d->set);
	neap__shape_fit(&o->net, d->set, trainer->shape);
	NEAP_TRY(neap__dataset_channels(d->set, o->net.inputs));
	NEAP_TRY(neap_dataset_info(d->set, &d->info));
	NEAP_TRY(fit_sizes(&o->net, &d->info));
	const char *given = o->loss;
	NEAP_TRY(neap__target_fit(&o->net, &o->loss, &d->info, trainer->fitted));
	trainer->mse_by_default = !given && neap__has_number_targets(d->set);
	trainer->objective.loss = neap_loss_find(o->loss);
	NEAP_TRY(split(trainer));
	NEAP_TRY(neap__data_fingerprint(&d->fingerprint, d->set));
	NEAP_TRY(normalise_inputs(trainer));
	NEAP_TRY(normalise_targets(trainer));
	struct neap_dataset_info info = d->info;
	info.duration = neap__augment_longest(&o->augment, info.duration);
	d->longest = longest_of(&info, o->net.dt, o->max_steps);
	return neap__test_set_open(trainer);
}

/* Few batches an epoch are often few updates: a run shall reach its learning rate. */
static int64_t usual_warmup(const struct neap__trainer *trainer)
{
	int64_t updates = 2 * neap_loader_batches(trainer->data.loader);

	return updates < 50 ? updates : 50;
}

static int open_loaders(struct neap__trainer *trainer)
{
	const struct neap_train_options *o = &trainer->options;
	struct neap__data *d = &trainer->data;
	struct neap_loader_options loading = {.size = sizeof loading,
		.batch = o->batch,
		.dt = o->net.dt,
		.steps = o->max_steps,
		.shuffle = 1,
		.augment = o->augment,
		.seed = o->seed,
		.index = d->first,
		.count = d->nfirst};

	neap__ranks_loader(&trainer->ranks, trainer->net, &loading, loading.count);
	NEAP_TRY(neap__process_memory_loader(&d->loader, d->set, loading, &o->sweep));
	if (d->nsecond == 0)
		return 0;
	loading.shuffle = 0;
	loading.augment = (struct neap_augment){0};
	loading.index = d->second;
	loading.count = d->nsecond;
	neap__ranks_loader(&trainer->ranks, trainer->net, &loading, loading.count);
	return neap__process_memory_loader(&d->validation, d->set, loading, &o->sweep);
}

/* "1 class", "2 classes". */
static const char *counted(char room[40], int64_t count, const char *one, const char *more)
{
	neap__print(room, 40, "%lld %s", (long long)count, count == 1 ? one : more);
	return room;
}

void neap__setup_say(const struct neap__trainer *trainer)
{
	const struct neap__data *d = &trainer->data;
	int classes = d->info.target < NEAP_TARGET_NUMBERS, values = d->info.values;
	char samples[40], inputs[40], outputs[40], steps[40];

	if (trainer->fitted[0])
		neap__trainer_say(trainer, "%s", trainer->fitted);
	neap__trainer_say(trainer,
		"%s: %s, %s, %s, at most %s of %g s; %lld to train on, %lld to validate",
		d->info.name, counted(samples, d->info.samples, "sample", "samples"),
		counted(inputs, d->info.inputs, values ? "feature" : "channel",
			values ? "features" : "channels"),
		counted(outputs, d->info.classes, classes ? "class" : "output",
			classes ? "classes" : "outputs"),
		counted(steps, d->longest, "step", "steps"), trainer->options.net.dt,
		(long long)d->nfirst, (long long)d->nsecond);
	if (d->set->coded)
		neap__trainer_say(trainer, "%d features are converted to spikes: %s",
			d->set->features, trainer->options.encode);
	if (d->set->slow[0])
		neap__trainer_say(trainer, "%s", d->set->slow);
	neap__test_set_say(trainer);
	neap__initial_gain_say(trainer);
	neap__readout_gain_say(trainer);
	neap__input_doubts_say(trainer);
	neap__doubts_say(trainer);
}

/*
 * Has the options say what the net chose for them, since models and runs keep options, and later
 * versions may choose otherwise. Where cells have different thresholds by default, 0 stands for
 * them.
 */
static void keep_chosen(struct neap_net_options *o, const struct neap_net *net)
{
	const struct neap__cell *cell = net->layers[0].cell;
	int gated = 0, others = 0;

	if (net->whole_spec) /* models and runs contain the texts of cell files */
		o->spec = net->whole_spec;
	o->readout = net->options.readout;
	if (o->tau_out < 0)
		o->tau_out = net->layers[net->nlayers - 1].tau;
	for (int l = 0; l < net->nlayers; l++) {
		int traits = net->layers[l].cell->traits;
		if (!(traits & NEAP__HAS_THRESHOLD))
			continue;
		cell = net->layers[l].cell;
		*(traits & NEAP__IS_RECURRENT ? &gated : &others) = 1;
	}
	if (o->threshold == 0 && !(gated && others))
		o->threshold = neap__cell_threshold(cell);
}

/* Makes the net, with the weights that the run begins with. */
static int make_net(struct neap__trainer *trainer, const struct neap__rule *rule)
{
	struct neap_train_options *o = &trainer->options;
	const struct neap_peers *peers = trainer->ranks.peers;
	struct neap_net_options net = o->net;
	char device[NEAP__DEVICE_NAME];
	int goes_on = o->resume && trainer->has_snapshot;

	net.threads = neap__ranks_threads(&trainer->ranks, net.threads);
	net.device = neap__on_device_of_rank(device, net.device, trainer->ranks.local);
	NEAP_TRY(neap_net_create(&trainer->net, &net));
	keep_chosen(&o->net, trainer->net);
	if (!o->from && !goes_on)
		NEAP_TRY(neap__initial_gain(trainer));
	NEAP_TRY(neap__input_doubts_look(trainer));
	NEAP_TRY(take_from(trainer));
	if (o->readout_gain < 0)
		NEAP_TRY(neap__readout_gain_choose(trainer, rule));
	neap__readout_gain(trainer, !goes_on && (!o->from || o->fresh_readout));
	if (peers)
		neap__net_keep_slice(trainer->net, peers->rank, peers->count);
	return 0;
}

int neap__setup(struct neap__trainer *trainer)
{
	struct neap_train_options *o = &trainer->options;
	struct neap__rule_settings settings = {
		o->momentum, o->beta1, o->beta2, o->epsilon, o->weight_decay};
	const struct neap__rule *rule = neap__rule_find(o->optimizer);

	trainer->schedule = neap__learning_rate_find(o->schedule);
	trainer->objective = (struct neap_objective){.size = sizeof(struct neap_objective),
		.loss = neap_loss_find(o->loss),
		.rates = neap__unit_penalty(&o->net, &o->rates),
		.dropout = 1,
		.readout_once = 1};
	if (!rule || !trainer->schedule)
		return NEAP_EUSAGE;
	if (o->loss && !trainer->objective.loss)
		return neap__fail(NEAP_EUSAGE,
			"--loss: unknown loss '%s'; 'neap help train' lists them", o->loss);
	NEAP_TRY(neap__settings_check(o));
	if (o->net.seed == 0)
		o->net.seed = o->seed;
	NEAP_TRY(open_data(trainer));
	NEAP_TRY(make_net(trainer, rule));
	NEAP_TRY(neap__optimizer_init(&trainer->optimizer, rule, &settings, trainer->net));
	trainer->result->optimizer_bytes = trainer->optimizer.bytes;
	if (!trainer->ranks.peers) /* which add up gradients of the host */
		NEAP_TRY(neap__optimizer_keep(&trainer->optimizer, trainer->net));
	NEAP_TRY(open_loaders(trainer));
	if (o->warmup < 0)
		o->warmup = usual_warmup(trainer);
	return 0;
}

void neap__teardown(struct neap__trainer *trainer)
{
	struct neap__data *d = &trainer->data;

	neap__safetensors_free(&trainer->from);
	neap_sweep_free(trainer->sweep);
	neap_trace_free(trainer->trace);
	neap_loader_close(d->loader);
	neap_loader_close(d->validation);
	neap__tiers_close(&trainer->tiers);
	neap__optimizer_fini(&trainer->optimizer);
	neap__optimizer_fini(&trainer->whole);
	neap_net_free(trainer->net);
	neap_dataset_close(d->test);
	neap_dataset_close(d->set);
	free(trainer->gain);
	free(d->first);
	free(d->second);
}
