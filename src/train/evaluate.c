/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate.c: forward sweeps over a data set, counts, and their 95% interval; neap_eval. */
#include "train/evaluate.h"
#include "data/dataset.h"
#include "train/model.h"
#include "train/model_file.h"
#include "train/nir/nir_model.h"
#include "base/checked.h"
#include "base/fail.h"
#include "base/struct_size.h"
#include "sys/memory.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void neap__wilson(double *low, double *high, int64_t k, int64_t n)
{
	const double z = 1.959963984540054; /* normal quantile of 0.975 */
	*low = 0;
	*high = 1;
	if (n <= 0)
		return;
	double p = (double)k / (double)n, w = z * z / (double)n;
	double middle = (p + w / 2) / (1 + w);
	double reach = z / (1 + w) * sqrt((p * (1 - p) + w / 4) / (double)n);
	*low = k == 0 ? 0 : middle - reach;
	*high = k == n ? 1 : middle + reach;
}

double neap__accuracy(int64_t right, int64_t judged)
{
	return judged > 0 ? (double)right / (double)judged : NAN;
}

const struct neap_batch *neap__widen(
	struct neap_batch *into, const struct neap_batch *batch, int inputs)
{
	*into = *batch;
	into->inputs = inputs;
	return into;
}

void neap_eval_result_free(struct neap_eval_result *result)
{
	if (!result)
		return;
	free(result->confusion);
	free(result->rates);
	neap__model_class_names_free(result->class_name, result->classes);
	*result = (struct neap_eval_result){.size = sizeof(struct neap_eval_result)};
}

/* Sums over the samples so far. */
struct evaluation_sums {
	double loss;
	double *rate; /* [layers], times steps of samples */
	double steps;
};

static int forward(struct neap_net *net, const struct neap_batch *batch)
{
	struct neap_net_sizes sizes = {.size = sizeof sizes};
	void *pages;
	double loss;

	neap_net_get_sizes(net, &sizes);
	size_t bytes = sizes.state;
	NEAP_TRY(neap__map_pages(&pages, bytes));
	int rc = neap_net_advance(net, pages, 0, batch->steps, 1);
	if (rc == 0)
		rc = neap_net_turn(net, pages, NULL, &loss);
	neap__unmap_pages(pages, bytes);
	return rc;
}

/* The first batch says how many layers there are. */
static int grow(struct neap_eval_result *result, struct evaluation_sums *sums, int layers)
{
	if (result->rates)
		return 0;
	result->layers = layers;
	result->rates = calloc((size_t)layers + 1, sizeof *result->rates);
	sums->rate = calloc((size_t)layers + 1, sizeof *sums->rate);
	return result->rates && sums->rate ? 0 : neap__fail_errno(ENOMEM, "firing rates");
}

static int add_batch(struct neap_eval_result *result, struct evaluation_sums *sums,
	const struct neap_net *net, const struct neap_batch *batch)
{
	struct neap_net_result found = {.size = sizeof found};
	double steps = 0;

	neap_net_get_result(net, &found);
	NEAP_TRY(grow(result, sums, found.layers));
	for (int i = 0; i < batch->size; i++) {
		const struct neap_sequence *s = &batch->sequences[i];
		int guess = found.prediction[i];
		steps += (double)s->length;
		if (batch->target != NEAP_TARGET_LABEL || s->label < 0 ||
			s->label >= result->classes || guess < 0 || guess >= result->classes)
			continue;
		result->confusion[(int64_t)s->label * result->classes + guess]++;
	}
	result->samples += batch->size;
	result->correct += found.right;
	result->judged += found.judged;
	result->target = batch->target;
	sums->loss += found.loss * batch->size;
	sums->steps += steps;
	for (int i = 0; i < result->layers; i++)
		sums->rate[i] += found.rate[i] * steps;
	return 0;
}

/* Tells of each sample of a batch; 0, or what `answered` returned. */
static int tell_answers(const struct neap__evaluation *e, const struct neap_batch *batch)
{
	struct neap_net_result found = {.size = sizeof found};
	int classes = e->options->classes;

	neap_net_get_result(e->net, &found);
	for (int i = 0; i < batch->size; i++) {
		const struct neap_sequence *s = &batch->sequences[i];
		const struct neap_answer answer = {.index = s->index,
			.steps = s->length,
			.label = s->label,
			.prediction = found.prediction[i],
			.classes = classes,
			.score = found.answer + (int64_t)i * classes,
			.class_name = (const char *const *)e->class_name,
			.target = batch->target};
		NEAP_TRY(e->answered(e->user, &answer));
	}
	return 0;
}

static int run_batch(struct neap_eval_result *result, struct evaluation_sums *sums,
	const struct neap__evaluation *e, const struct neap_batch *batch)
{
	struct neap_objective objective = {.size = sizeof objective, .loss = e->loss};

	/* A batch with a sample of which nobody knows the answer has no loss. */
	for (int i = 0; i < batch->size && batch->target == NEAP_TARGET_LABEL; i++)
		if (batch->sequences[i].label < 0)
			objective.loss = NULL;
	NEAP_TRY(neap_net_begin(e->net, batch, &objective));
	int rc = forward(e->net, batch);
	if (rc == 0)
		rc = add_batch(result, sums, e->net, batch);
	if (rc == 0 && e->answered)
		rc = tell_answers(e, batch);
	int ended = neap_net_end(e->net);
	return rc < 0 ? rc : ended;
}

static void finish(struct neap_eval_result *result, const struct evaluation_sums *sums)
{
	if (result->samples > 0) {
		result->accuracy = neap__accuracy(result->correct, result->judged);
		result->loss = sums->loss / (double)result->samples;
	}
	for (int i = 0; i < result->layers; i++)
		result->rates[i] = sums->steps > 0 ? sums->rate[i] / sums->steps : 0;
	neap__wilson(&result->low, &result->high, result->correct, result->judged);
}

int neap__evaluate(struct neap_eval_result *result, const struct neap__evaluation *e)
{
	const struct neap_batch *batch;
	struct neap_batch wide;
	struct evaluation_sums sums = {0};
	int classes = e->options->classes, rc;

	*result = (struct neap_eval_result){
		.size = sizeof(struct neap_eval_result), .classes = classes};
	size_t cells = (size_t)classes * (size_t)classes;
	result->confusion = calloc(cells ? cells : 1, sizeof *result->confusion);
	if (!result->confusion)
		return neap__fail_errno(ENOMEM, "a confusion table");
	rc = neap_loader_start(e->loader, 0, 0);
	while (rc >= 0 && (rc = neap_loader_next(e->loader, &batch)) > 0) {
		rc = run_batch(result, &sums, e, neap__widen(&wide, batch, e->options->inputs));
		if (rc >= 0 && e->progress && e->progress(e->user, result->samples, e->total))
			rc = neap__fail(NEAP_EINTERRUPTED, "interrupted after %lld samples",
				(long long)result->samples);
	}
	if (rc >= 0)
		finish(result, &sums);
	free(sums.rate);
	if (rc < 0)
		neap_eval_result_free(result);
	return rc < 0 ? rc : 0;
}

static const struct neap_loss *loss_of(const struct neap__safetensors *file)
{
	const char *name = neap__safetensors_meta(file, "neap.loss");
	const struct neap_loss *loss = name ? neap_loss_find(name) : NULL;
	return loss ? loss : neap_loss_at(0);
}

/* Whether some sample's answer is known. */
static int is_labelled(const struct neap_dataset *set)
{
	if (set->info.target != NEAP_TARGET_LABEL)
		return 1;
	for (int64_t i = 0; i < set->info.samples; i++)
		if (neap_dataset_label(set, i) >= 0)
			return 1;
	return 0;
}

/* 1: the model is a graph in NIR, which does not say what its inputs are, and the data has numbers.
 */
static int has_values(const struct neap_eval_options *options)
{
	struct neap_dataset_info info = {.size = sizeof info};
	struct neap_dataset *set;

	if (!neap__nir_takes(options->model) || strcmp(options->data, "-") == 0 ||
		neap_dataset_open(&set, options->data) < 0)
		return 0;
	neap_dataset_info(set, &info);
	neap_dataset_close(set);
	return info.values != 0;
}

int neap_eval(struct neap_eval_result *result, const struct neap_eval_options *options)
{
	NEAP_NEED(result, options);
	struct neap__safetensors file = {0};
	struct neap_net_options net_options;
	struct neap_net *net = NULL;
	struct neap_dataset *set = NULL;
	struct neap_loader *loader = NULL;
	struct neap_dataset_info info = {.size = sizeof info};
	struct neap_encoder_options encoder;
	char **names = NULL;
	int64_t max_steps = 0;

	NEAP_TRY(neap__struct_size(
		result->size, sizeof *result, sizeof *result, "neap_eval_result"));
	NEAP_TRY(neap__struct_size(
		options->size, sizeof *options, sizeof *options, "neap_eval_options"));
	*result = (struct neap_eval_result){.size = sizeof(struct neap_eval_result)};
	if (!options->model || !options->data)
		return neap__fail(NEAP_EUSAGE, "a model and a data set are needed");
	if (options->batch < 0 || options->threads < 0)
		return neap__fail(NEAP_EUSAGE, "batch and threads may not be negative");
	if ((options->dt > 0 || options->reset) && !neap__nir_takes(options->model))
		return neap__fail(NEAP_EUSAGE,
			"'%s' says its own dt and reset; --dt and --reset are for NIR graphs",
			options->model);
	const struct neap__nir_hints hints = {
		.dt = options->dt, .reset = options->reset, .values = has_values(options)};
	NEAP_TRY(neap__model_file_read(&file, options->model, &hints));
	int rc = neap__model_open(&net, &net_options, &max_steps, &file, options->threads);
	if (rc < 0)
		rc = neap__fail_in(rc, "%s: ", options->model);
	else
		rc = neap__model_encoder(&encoder, &file);
	if (rc >= 0)
		rc = neap__dataset_open_as(&set, options->data, rc > 0 ? &encoder : NULL);
	if (rc == 0)
		rc = neap__model_rows_take(set, &file);
	if (rc == 0)
		rc = neap__model_fits(&file, &net_options, set);
	if (rc == 0) {
		struct neap_loader_options loading = {.size = sizeof loading,
			.batch = options->batch ? options->batch : 64,
			.dt = net_options.dt,
			.steps = max_steps};
		neap_dataset_info(set, &info);
		rc = neap_loader_open(&loader, set, &loading);
	}
	if (rc == 0 && !options->answered && !is_labelled(set))
		rc = neap__fail(NEAP_EUSAGE, "%s has no labels that answers could be compared with",
			info.name);
	if (rc == 0)
		rc = neap__model_class_names(&names, &file, net_options.classes);
	if (rc == 0) {
		const struct neap__evaluation evaluation = {.net = net,
			.options = &net_options,
			.loss = loss_of(&file),
			.loader = loader,
			.total = info.samples,
			.progress = options->progress,
			.answered = options->answered,
			.user = options->user,
			.class_name = names};
		rc = neap__evaluate(result, &evaluation);
	}
	if (rc == 0)
		result->class_name = names;
	else
		neap__model_class_names_free(names, net_options.classes);
	neap_loader_close(loader);
	neap_dataset_close(set);
	neap_net_free(net);
	neap__safetensors_free(&file);
	return rc;
}
