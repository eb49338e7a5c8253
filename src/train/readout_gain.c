/* SPDX-License-Identifier: Apache-2.0 */
/*
 * readout_gain.c: the factor of a readout's weights and of their updates.
 *
 * The output of a readout `sum` is the sum of its weights over the spikes of a sample. Adam changes
 * a weight by about the learning rate, so an update changes an output by up to rate x spikes. If
 * that is about 1, outputs are confident before anything is learned: the net then first learns to
 * spike less, recurrent layers lose most of their surrogate gradients, and the loss stays noisy.
 * The factor chosen here makes it UPDATE before training; outputs of the initial weights become
 * smaller likewise. Weights alone, or updates alone, help less. The unit of weights at other steps
 * than 1 ms is left out: with the usual smoothing it is 1.4 at 15 ms, and the factor without it
 * gave better results.
 *
 * A net that begins with the weights of a model is measured with them. Its readout keeps its
 * weights, which are those of a factor already; its updates have to be as small.
 *
 * Few updates need larger ones. The number of epochs does not count, as an interrupted run may be
 * continued with more: the updates of one epoch shall change an output by EPOCH.
 */
#include "train/optimizer.h"
#include "train/trainer.h"
#include "nn/core/cell.h"
#include "nn/core/net_state.h"
#include "base/fail.h"
#include "data/dataset.h"
#include "base/print.h"

#include <math.h>
#include <string.h>

/*
 * Measured: 0.05 to 0.1 give the best results for spoken words and digits and for an event camera;
 * with 0.2, words lose 6 points (docs/learning.md).
 */
#define UPDATE 0.05
#define EPOCH                                                                                      \
	0.8 /* measured likewise: with less, nets with 20 to 40 updates lose 3 to 8 points         \
	     */

/* Steps of samples that ran through the net. */
struct sample_steps {
	const struct neap__trainer *trainer;
	double sum, samples;
};

/* The steps of a sample that the trials have cut; at most those of the longest one. */
static int whole_steps(double *steps, const struct neap__trainer *trainer, int64_t index)
{
	struct neap_dataset *set = trainer->data.set;
	struct neap__sample_extent extent = {0};

	*steps = (double)trainer->data.longest;
	if (!set->ops->part || set->info.steps)
		return 0;
	NEAP_TRY(neap__dataset_extent(set, index, 0, &extent));
	double duration = extent.duration > 0 ? extent.duration : extent.last;
	double found = ceil(duration / trainer->options.net.dt);
	if (found >= NEAP__TRIAL_STEPS)
		*steps = fmin(*steps, found);
	return 0;
}

static int add_steps(void *user, const struct neap_answer *answer)
{
	struct sample_steps *all = user;
	double steps = (double)answer->steps;

	if (answer->steps >= NEAP__TRIAL_STEPS)
		NEAP_TRY(whole_steps(&steps, all->trainer, answer->index));
	all->sum += steps;
	all->samples++;
	return 0;
}

/* 1: all that a layer receives are spikes of layers below. */
static int receives_spikes(const struct neap_net *net, const struct neap__layer *layer)
{
	for (int k = 0; k < layer->nsources; k++) {
		const struct neap__layer *from = neap__source_of(layer, k);
		if (layer->source[k].is_back || !from || !neap__layer_spikes(net, from))
			return 0;
	}
	return 1;
}

/* 1: the readout's updates may be too large, and nothing that was given is to stand. */
static int is_chosen(const struct neap__trainer *trainer, const struct neap__rule *rule)
{
	const struct neap_net *net = trainer->net;
	const struct neap__layer *readout = &net->layers[net->nlayers - 1];

	return net->options.readout == NEAP_READ_SUM && !net->options.values &&
	       trainer->data.info.target == NEAP_TARGET_LABEL &&
	       strcmp(trainer->objective.loss->name, "cross-entropy") == 0 &&
	       rule->moments[1] && /* updates have the size of the rate, whatever gradients have */
	       trainer->options.gain > 0 && !readout->said_scale &&
	       readout->init != NEAP_INIT_TORCH && !net->tensors[readout->weight].is_frozen &&
	       receives_spikes(net, readout);
}

/* Spikes of a sample that reach the readout before training. */
static int measure_spikes(double *spikes, struct neap__trainer *trainer)
{
	const struct neap_net *net = trainer->net;
	const struct neap__layer *readout = &net->layers[net->nlayers - 1];
	struct neap_eval_result result = {.size = sizeof result};
	struct sample_steps steps = {.trainer = trainer};

	NEAP_TRY(neap__run_trials(&result, trainer, add_steps, &steps));
	*spikes = 0;
	for (int k = 0; k < readout->nsources && result.rates && steps.samples > 0; k++)
		*spikes += result.rates[readout->source[k].layer] * neap__source_of(readout, k)->n *
			   steps.sum / steps.samples;
	neap_eval_result_free(&result);
	return 0;
}

int neap__readout_gain_choose(struct neap__trainer *trainer, const struct neap__rule *rule)
{
	struct neap_train_options *o = &trainer->options;
	int64_t batches = (trainer->data.nfirst + o->batch - 1) / o->batch;
	char text[40], *end;

	o->readout_gain = 1;
	if (!is_chosen(trainer, rule))
		return 0;
	NEAP_TRY(measure_spikes(&trainer->readout_spikes, trainer));
	double change = o->learning_rate * trainer->readout_spikes;
	double factor = fmax(UPDATE, EPOCH / (double)(batches > 0 ? batches : 1)) / change;
	if (!(factor < 1))
		return 0;
	/* As it is shown, so that the option with the number shown gives the same bits. */
	neap__print(text, sizeof text, "%.3g", factor);
	o->readout_gain = neap__read_double(text, &end);
	return 0;
}

void neap__readout_gain(struct neap__trainer *trainer, int draws)
{
	struct neap_net *net = trainer->net;
	const struct neap__layer *readout = &net->layers[net->nlayers - 1];
	struct neap__param *tensors[] = {
		&net->tensors[readout->weight], &net->tensors[readout->bias]};
	double factor = trainer->options.readout_gain;

	if (!(factor > 0) || factor == 1)
		return;
	for (int i = 0; i < 2; i++) {
		tensors[i]->unit *= factor;
		if (draws)
			neap__multiply(tensors[i], net->options.precision, factor);
	}
}

void neap__readout_gain_say(const struct neap__trainer *trainer)
{
	if (trainer->readout_spikes > 0 && trainer->options.readout_gain < 1)
		neap__trainer_say(trainer,
			"readout multiplied by --readout-gain %g, chosen for %.3g spikes per "
			"sample",
			trainer->options.readout_gain, trainer->readout_spikes);
}
