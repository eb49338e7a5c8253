/* SPDX-License-Identifier: Apache-2.0 */
/*
 * initial_gain.c: initial weights by what arrives, and layers that are silent or saturated. Few
 * spikes would leave a layer silent, many would saturate it.
 *
 * Weights are independent with a mean of 0 and a variance of scale^2/fan in. Membranes that never
 * reach the threshold then have the variance scale^2 times the mean square, over units below and
 * time, of the membrane that one of them makes through a weight of 1 (linear_cell.h). The weights
 * are multiplied by the factor that makes the standard deviation of membranes `gain` thresholds.
 *
 * What the first layer gets is measured on some training samples. A layer above gets the spikes
 * that the layers below it make of a few samples before anything is learned; they count as
 * independent ones. Layers whose specification says a scale, whose cells have no membrane, or that
 * get numbers instead of spikes are left alone. Batch normalisation begins with the statistics of
 * these samples and weights.
 */
#include "train/learning_rate.h"
#include "train/trainer.h"
#include "train/evaluate.h"
#include "nn/batch/norm_sums.h"
#include "nn/linear_cell.h"
#include "data/dataset.h"
#include "nn/core/cell.h"
#include "base/fail.h"
#include "base/print.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	SAMPLES = 64,	  /* whose spikes are read for the first layer */
	EVENTS = 1 << 18, /* of a sample that are read, where it can be read in part */
	TRIALS = 32,	  /* samples that run through the net for the layers above */
	LINE = 400
};
/* Spikes a second that a unit counts with where it has fewer: it will have more when it learned. */
#define LEAST_HERTZ 1.0

/* A channel after its last spike, which was in step `at`. */
struct input_trace {
	double x[2], at;
};

struct sums {
	double squares, spikes, seconds;
};

/* Events that count: those of times in [from, to), of which a step has `step`. */
struct event_span {
	double from, to, step;
};

static void add_events(struct sums *sums, const struct neap__linear_cell *cell,
	struct input_trace *channels, int inputs, const struct neap_events *events,
	const struct event_span *span)
{
	double end = ceil((span->to - span->from) / span->step);

	memset(channels, 0, (size_t)inputs * sizeof *channels);
	for (int64_t e = 0; e < events->count; e++) {
		double at = floor((events->time[e] - span->from) / span->step);
		if (!(at >= 0 && at < end) || events->unit[e] >= inputs)
			continue;
		struct input_trace *c = &channels[events->unit[e]];
		if (at > c->at) {
			sums->squares += neap__linear_cell_move(cell, c->x, at - c->at);
			c->at = at;
		}
		double before = c->x[0];
		c->x[0] += cell->b[0];
		c->x[1] += cell->b[1];
		sums->squares += c->x[0] * c->x[0] - before * before;
		sums->spikes++;
	}
	for (int i = 0; i < inputs; i++)
		sums->squares +=
			neap__linear_cell_move(cell, channels[i].x, end - 1 - channels[i].at);
	sums->seconds += end * cell->step;
}

static int add_sample(struct sums *sums, const struct neap__linear_cell *cell,
	struct input_trace *channels, int inputs, struct neap_dataset *set, int64_t index,
	struct neap__event_buffer *buffer)
{
	struct neap__sample_extent extent = {0};
	/* The times of samples that are rows of steps are in steps. */
	struct event_span span = {.step = set->info.steps ? 1 : cell->step};

	if (set->ops->part)
		NEAP_TRY(neap__dataset_extent(set, index, 0, &extent));
	if (extent.count > EVENTS) { /* some of its middle */
		double end = extent.duration > 0 ? extent.duration : extent.last;
		double length = end * EVENTS / (double)extent.count / 2;
		span.from = (end - length) / 2;
		span.to = span.from + length;
		int rc = neap__dataset_part(set, index, span.from, span.to, EVENTS, buffer);
		if (rc != 0)
			return rc < 0 ? rc : 0; /* more events than fit are left out */
		NEAP_TRY(neap__events_sort(&buffer->events));
	} else {
		NEAP_TRY(neap__dataset_read(set, index, buffer));
		const struct neap_events *e = &buffer->events;
		span.to = e->count > 0 ? nextafter(e->time[e->count - 1], INFINITY) : 0;
		span.to = e->duration > span.to ? e->duration : span.to;
	}
	add_events(sums, cell, channels, inputs, &buffer->events, &span);
	return 0;
}

/* The mean square of membranes by a unit of what the data brings; 0 where that is nothing. */
static int measure_inputs(double *mean_square, struct neap__initial_gain *gain,
	struct neap__trainer *trainer, const struct neap__linear_cell *cell)
{
	const struct neap__data *d = &trainer->data;
	struct neap__event_buffer buffer = {0};
	struct sums sums = {0};
	int inputs = trainer->net->options.inputs;
	int64_t samples = d->nfirst < SAMPLES ? d->nfirst : SAMPLES;
	struct input_trace *channels = calloc((size_t)inputs, sizeof *channels);
	int rc = channels ? 0 : neap__fail_errno(ENOMEM, "%d channels", inputs);

	for (int64_t i = 0; i < samples && rc == 0; i++)
		rc = add_sample(&sums, cell, channels, inputs, d->set,
			neap__training_sample(d, i, samples), &buffer);
	neap__event_buffer_free(&buffer);
	free(channels);
	if (rc == 0 && sums.seconds > 0) {
		gain->hertz = sums.spikes / sums.seconds / inputs;
		*mean_square = sums.squares / (sums.seconds / cell->step * inputs);
	}
	return rc;
}

int neap__run_trials(struct neap_eval_result *result, struct neap__trainer *trainer,
	int (*answered)(void *user, const struct neap_answer *answer), void *user)
{
	const struct neap__data *d = &trainer->data;
	int64_t index[TRIALS], count = d->nfirst < TRIALS ? d->nfirst : TRIALS;
	int64_t limit = trainer->options.max_steps;
	struct neap_loader_options loading = {.size = sizeof loading,
		.batch = (int)count,
		.dt = trainer->options.net.dt,
		.steps = limit > 0 && limit < NEAP__TRIAL_STEPS ? limit : NEAP__TRIAL_STEPS,
		.index = index,
		.count = count};
	struct neap_loader *loader;

	for (int64_t i = 0; i < count; i++)
		index[i] = neap__training_sample(d, i, count);
	NEAP_TRY(neap_loader_open(&loader, d->set, &loading));
	const struct neap__evaluation evaluation = {.net = trainer->net,
		.options = &trainer->options.net,
		.loss = trainer->objective.loss,
		.loader = loader,
		.answered = answered,
		.user = user};
	int rc = neap__evaluate(result, &evaluation);
	neap_loader_close(loader);
	return rc;
}

/* Spikes a unit and second of layer l, of a few samples. */
static int measure_layer(double *hertz, struct neap__trainer *trainer, int l)
{
	struct neap_eval_result result = {.size = sizeof result};

	NEAP_TRY(neap__run_trials(&result, trainer, NULL, NULL));
	*hertz = result.rates ? result.rates[l] / trainer->options.net.dt : 0;
	neap_eval_result_free(&result);
	return 0;
}

void neap__multiply(struct neap__param *weights, enum neap_precision precision, double factor)
{
	for (int64_t i = 0; i < weights->count; i++)
		neap__element_set(weights->data, precision, i,
			factor * neap__element(weights->data, precision, i));
}

/* The mean rate of the units of all layers that a layer receives. */
static int measure_sources(
	double *hertz, struct neap__trainer *trainer, const struct neap__layer *layer)
{
	double sum = 0;

	for (int k = 0; k < layer->nsources; k++) {
		NEAP_TRY(measure_layer(hertz, trainer, layer->source[k].layer));
		sum += *hertz * neap__source_of(layer, k)->n;
	}
	*hertz = sum / layer->below;
	return 0;
}

/*
 * 1: a layer receives spikes whose rates are measured: those of the inputs alone, or of layers
 * below, whose own weights are scaled already.
 */
static int is_measured(const struct neap_net *net, const struct neap__layer *layer)
{
	for (int k = 0; k < layer->nsources; k++) {
		const struct neap__layer *from = neap__source_of(layer, k);
		if (layer->source[k].is_back || (!from && layer->nsources > 1) ||
			(from ? !neap__layer_spikes(net, from) : net->options.values))
			return 0;
	}
	return 1;
}

static int scale_layer(struct neap__trainer *trainer, int l, const struct neap__linear_cell *cell)
{
	const struct neap__layer *layer = &trainer->net->layers[l];
	struct neap__param *weights = &trainer->net->tensors[layer->weight];
	struct neap__initial_gain *gain = &trainer->gain[l];
	double mean_square = 0;

	if (layer->source[0].layer < 0) {
		NEAP_TRY(measure_inputs(&mean_square, gain, trainer, cell));
	} else {
		NEAP_TRY(measure_sources(&gain->hertz, trainer, layer));
		mean_square = neap__linear_cell_mean_square(
			cell, fmax(gain->hertz, LEAST_HERTZ) * cell->step);
	}
	gain->deviation = layer->scale * sqrt(mean_square) / cell->threshold;
	if (!(gain->deviation > 0))
		return 0;
	gain->factor = trainer->options.gain / gain->deviation;
	neap__multiply(weights, trainer->net->options.precision, gain->factor);
	return 0;
}

/* Begins the statistics of a layer with a norm (nn/core/norm.h) with those of a few samples. */
static int start_norm(struct neap__trainer *trainer, int l)
{
	struct neap_eval_result result = {.size = sizeof result};

	if (!trainer->net->layers[l].norm.kind)
		return 0;
	NEAP_TRY(neap__run_trials(&result, trainer, NULL, NULL));
	neap_eval_result_free(&result);
	neap__norm_find(trainer->net);
	neap__norm_start(trainer->net, l);
	return 0;
}

/* Scales a layer by what arrives, where that is known. */
static int gain_of(struct neap__trainer *trainer, int l)
{
	const struct neap_net *net = trainer->net;
	const struct neap__layer *layer = &net->layers[l];
	struct neap__linear_cell cell;

	if (!(trainer->options.gain > 0) || layer->said_scale || layer->init == NEAP_INIT_TORCH ||
		!(layer->threshold > 0) || !is_measured(net, layer))
		return 0;
	int made = neap__linear_cell_make(&cell, net, layer);
	NEAP_TRY(made);
	if (!made)
		return 0;
	int rc = scale_layer(trainer, l, &cell);
	neap__linear_cell_free(&cell);
	return rc;
}

int neap__initial_gain(struct neap__trainer *trainer)
{
	const struct neap_net *net = trainer->net;

	trainer->gain = calloc((size_t)net->nlayers, sizeof *trainer->gain);
	if (!trainer->gain)
		return neap__fail_errno(ENOMEM, "%d layers", net->nlayers);
	for (int l = 0; l < net->nlayers - 1; l++) {
		NEAP_TRY(gain_of(trainer, l));
		NEAP_TRY(start_norm(trainer, l));
	}
	return 0;
}

void neap__initial_gain_say(const struct neap__trainer *trainer)
{
	char line[LINE] = "";
	size_t n = 0;

	for (int l = 0; trainer->gain && l < trainer->net->nlayers - 1; l++)
		if (trainer->gain[l].factor > 0 && n < sizeof line - 1)
			n += (size_t)neap__print(line + n, sizeof line - n,
				"%slayer%d by %.3g (mean input rate %.3g Hz)", n ? ", " : "", l,
				trainer->gain[l].factor, trainer->gain[l].hertz);
	if (n > 0)
		neap__trainer_say(trainer, "initial weights rescaled for --gain %g: %s",
			trainer->options.gain, line);
}

/*
 * After the first epoch, a line about each layer that hardly ever spikes, or nearly always does:
 * neither learns well, and a loss that stays where it is does not say why. Mean spikes a unit:
 * below SILENT a second; above SATURATED a second, or in a third of all steps.
 */
#define SILENT 0.1
#define SATURATED 150.0
#define SATURATED_STEP (1 / 3.0)

/* 1: the layer's weights were scaled by --gain. */
static int has_gain(const struct neap__trainer *trainer, int l)
{
	return trainer->gain && trainer->gain[l].factor > 0;
}

static void say_silent(struct neap__trainer *trainer, int l, double hertz)
{
	const struct neap__layer *layer = &trainer->net->layers[l];
	const char *what = has_gain(trainer, l) ? "--gain" : "its scale";
	double now = has_gain(trainer, l) ? trainer->options.gain : layer->scale;

	trainer->silent = 1;
	if (trainer->options.learning_rate > NEAP__LARGE_RATE)
		neap__trainer_say(trainer,
			"warning: layer%d (%s) is silent: %.1f Hz after the first epoch, so it "
			"does not "
			"learn. Decrease --lr (now %g); if that does not help, increase %s (now "
			"%.3g)",
			l, layer->cell->name, hertz, trainer->options.learning_rate, what, now);
	else if (layer->program) /* whose threshold is a parameter of any name */
		neap__trainer_say(trainer,
			"warning: layer%d (%s) is silent: %.1f Hz after the first epoch, so it "
			"does not learn. Increase %s (now %.3g)",
			l, layer->cell->name, hertz, what, now);
	else
		neap__trainer_say(trainer,
			"warning: layer%d (%s) is silent: %.1f Hz after the first epoch, so it "
			"does not "
			"learn. Increase %s (now %.3g) or decrease its threshold (now %.3g)",
			l, layer->cell->name, hertz, what, now, layer->threshold);
}

static void say_saturated(const struct neap__trainer *trainer, int l, double hertz)
{
	const struct neap__layer *layer = &trainer->net->layers[l];
	const struct neap_rate_penalty *p = &trainer->options.rates;
	const char *what = has_gain(trainer, l) ? "--gain" : "its scale";
	double now = has_gain(trainer, l) ? trainer->options.gain : layer->scale;

	if (trainer->options.learning_rate > NEAP__LARGE_RATE)
		neap__trainer_say(trainer,
			"warning: layer%d (%s) is saturated: %.0f Hz after the first epoch, so its "
			"spikes carry little information. Decrease --lr (now %g); if that does not "
			"help, "
			"decrease %s (now %.3g)",
			l, layer->cell->name, hertz, trainer->options.learning_rate, what, now);
	else
		neap__trainer_say(trainer,
			"warning: layer%d (%s) is saturated: %.0f Hz after the first epoch, so its "
			"spikes "
			"carry little information. Decrease %s (now %.3g) or increase "
			"--rate-weight (now "
			"%.3g)",
			l, layer->cell->name, hertz, what, now, p->upper_weight);
}

void neap__activity_say(struct neap__trainer *trainer, const double *rates)
{
	const struct neap_net *net = trainer->net;

	if (trainer->no_inputs > 0 || trainer->lost_inputs) /* no layer is to blame */
		return;
	for (int l = 0; l < net->nlayers - 1; l++) {
		double rate = rates ? rates[l] : net->rate[l], hertz = rate / net->options.dt;
		if (!neap__layer_spikes(net, &net->layers[l]))
			continue;
		if (hertz < SILENT)
			say_silent(trainer, l, hertz);
		else if (hertz > SATURATED || rate > SATURATED_STEP)
			say_saturated(trainer, l, hertz);
	}
}
