/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate.c: forward sweeps over a data set, counts, and their 95% interval; neap_eval. */
#include "train/evaluate.h"
#include "train/answers/answer_outputs.h"
#include "train/answers/decisions.h"
#include "train/answers/live_answers.h"
#include "train/answers/step_answers.h"
#include "train/answers/timed_answers.h"
#include "data/dataset.h"
#include "data/target_units.h"
#include "train/model.h"
#include "train/model_file.h"
#include "train/nir/nir_model.h"
#include "train/trainer.h"
#include "train/ranks/rank_answers.h"
#include "nn/batch.h"
#include "nn/core/cell.h"
#include "nn/core/net_state.h"
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

static int forward(const struct neap__evaluation *e, const struct neap_batch *batch)
{
	struct neap_net *net = e->net;
	struct neap_net_sizes sizes = {.size = sizeof sizes};
	void *pages;
	double loss;

	if (batch->size == 0) /* a rank without samples takes part in what the others add up */
		return neap_net_turn(net, NULL, NULL, &loss);
	neap_net_get_sizes(net, &sizes);
	size_t bytes = sizes.state;
	NEAP_TRY(neap__map_pages(&pages, bytes));
	int rc = e->every > 0		     ? neap__timed_answers(e, batch, pages)
		 : e->of_steps || e->stepped ? neap__step_answers(e, batch, pages)
					     : neap_net_advance(net, pages, 0, batch->steps, 1);
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
	int size = batch->of > 0 ? batch->of : batch->size;
	double steps = (double)net->whole_steps;

	neap_net_get_result(net, &found);
	NEAP_TRY(grow(result, sums, found.layers));
	for (int i = 0; i < batch->size; i++) {
		const struct neap_sequence *s = &batch->sequences[i];
		int guess = found.prediction[i];
		if (!result->confusion || batch->target != NEAP_TARGET_LABEL || s->label < 0 ||
			s->label >= result->classes || guess < 0 || guess >= result->classes)
			continue;
		result->confusion[(int64_t)s->label * result->classes + guess]++;
	}
	result->samples += size;
	result->correct += found.right;
	result->judged += found.judged;
	result->target = batch->target;
	sums->loss += found.loss * size;
	sums->steps += steps;
	for (int i = 0; i < result->layers; i++)
		sums->rate[i] +=
			neap__layer_spikes(net, &net->layers[i]) ? found.rate[i] * steps : NAN;
	return 0;
}

/* Tells of each sample of a batch, on rank 0; 0, or what `answered` returned. */
static int tell_answers(const struct neap__evaluation *e, const struct neap__rank_answers *answers)
{
	int classes = e->options->classes;

	for (int i = 0; i < answers->samples && neap__ranks_root(e->ranks); i++) {
		const struct neap__sample_answer *s = &answers->sample[i];
		neap__target_units_own(
			answers->score + (int64_t)i * classes, classes, e->mean, e->deviation);
		neap__answer_softmax(e, answers->score + (int64_t)i * classes);
		const struct neap_answer answer = {.index = s->index,
			.steps = s->steps,
			.label = s->label,
			.prediction = s->prediction,
			.classes = classes,
			.score = answers->score + (int64_t)i * classes,
			.class_name = (const char *const *)e->class_name,
			.target = e->target,
			.step = -1};
		NEAP_TRY(e->answered(e->user, &answer));
	}
	return 0;
}

/* What the ranks have to know of a batch before it begins. */
struct batch_wishes {
	int has_loss; /* every sample has a target */
	int goes_on;  /* nobody failed or interrupts */
	int tells;    /* rank 0 wants the answers */
};

/* A batch with a sample of which nobody knows the answer has no loss, on any rank. */
static int agree_on_batch(struct batch_wishes *wishes, const struct neap__evaluation *e,
	const struct neap_batch *batch)
{
	int64_t values[3] = {1, wishes->goes_on,
		!(neap__ranks_root(e->ranks) && e->answered && !e->of_steps && e->every <= 0)};

	for (int i = 0; i < batch->size && batch->target == NEAP_TARGET_LABEL; i++)
		values[0] &= batch->sequences[i].label >= 0;
	NEAP_TRY(neap__ranks_least(e->ranks, values, 3));
	*wishes = (struct batch_wishes){
		.has_loss = (int)values[0], .goes_on = (int)values[1], .tells = !values[2]};
	return 0;
}

static int run_batch(struct neap_eval_result *result, struct evaluation_sums *sums,
	const struct neap__evaluation *e, const struct neap_batch *batch,
	const struct batch_wishes *wishes, struct neap__rank_answers *answers)
{
	struct neap_objective objective = {.size = sizeof objective,
		.loss = wishes->has_loss ? e->loss : NULL,
		.peers = e->ranks->peers,
		.confusion = result->confusion,
		.deviation = e->normalised ? NULL : e->deviation};

	NEAP_TRY(neap_net_begin(e->net, batch, &objective));
	int rc = forward(e, batch);
	if (rc == 0)
		rc = add_batch(result, sums, e->net, batch);
	if (rc == 0 && wishes->tells)
		rc = neap__rank_answers_take(answers, e->ranks, e->net, batch);
	if (rc == 0 && wishes->tells)
		rc = tell_answers(e, answers);
	neap__net_drop(e->net);
	return rc;
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

/* Adds up the confusion tables of all ranks, a row at a time. */
static int add_confusion(struct neap_eval_result *result, struct neap__ranks *ranks)
{
	const struct neap_peers *p = ranks->peers;
	size_t classes = (size_t)result->classes;
	int rc = 0;

	if (!p || classes == 0 || !result->confusion)
		return 0;
	int64_t *all = calloc((size_t)p->count * classes, sizeof *all);
	rc = neap__ranks_agree(ranks, all ? 0 : neap__fail_errno(ENOMEM, "a confusion table"));
	for (size_t row = 0; row < classes && rc == 0; row++) {
		int64_t *sum = result->confusion + row * classes;
		rc = p->all(p->user, sum, classes * sizeof *sum, all);
		memset(sum, 0, classes * sizeof *sum);
		for (size_t i = 0; i < (size_t)p->count * classes; i++)
			sum[i % classes] += all[i];
	}
	free(all);
	return rc;
}

/* Runs all batches; an interrupt of one rank ends all. */
static int run_batches(struct neap_eval_result *result, struct evaluation_sums *sums,
	const struct neap__evaluation *e, struct neap__rank_answers *answers)
{
	const struct neap_batch *batch;
	struct neap_batch wide;
	struct batch_wishes wishes = {.goes_on = 1};
	int rc = neap_loader_start(e->loader, 0, 0);

	while (rc >= 0 && (rc = neap_loader_next(e->loader, &batch)) > 0) {
		NEAP_TRY(agree_on_batch(&wishes, e, batch));
		if (!wishes.goes_on)
			break;
		rc = run_batch(result, sums, e, neap__widen(&wide, batch, e->options->inputs),
			&wishes, answers);
		wishes.goes_on = !(
			rc >= 0 && e->progress && e->progress(e->user, result->samples, e->total));
	}
	NEAP_TRY(rc);
	int64_t goes_on = wishes.goes_on;
	NEAP_TRY(neap__ranks_least(e->ranks, &goes_on, 1));
	if (goes_on)
		return 0;
	e->ranks->together = 1;
	return neap__fail(NEAP_EINTERRUPTED, "interrupted after %lld sample%s",
		(long long)result->samples, result->samples == 1 ? "" : "s");
}

/* Numbers have no classes, and their outputs squared may be more than memory holds. */
static int make_confusion(struct neap_eval_result *result, const struct neap__evaluation *e)
{
	size_t cells = (size_t)result->classes * (size_t)result->classes;

	if (e->target == NEAP_TARGET_NUMBERS || e->target == NEAP_TARGET_SERIES)
		return 0;
	result->confusion = calloc(cells ? cells : 1, sizeof *result->confusion);
	return result->confusion ? 0
				 : neap__fail_errno(ENOMEM, "a confusion table of %d classes",
					   result->classes);
}

int neap__evaluate(struct neap_eval_result *result, const struct neap__evaluation *given)
{
	struct neap__ranks alone = {.crowd = 1};
	struct neap__evaluation e = *given;
	struct neap__rank_answers answers = {0};
	struct evaluation_sums sums = {0};
	int classes = e.options->classes;

	if (!e.ranks)
		e.ranks = &alone;
	*result = (struct neap_eval_result){
		.size = sizeof(struct neap_eval_result), .classes = classes};
	int rc = neap__ranks_agree(e.ranks, make_confusion(result, &e));
	if (rc >= 0)
		rc = run_batches(result, &sums, &e, &answers);
	if (rc >= 0)
		rc = add_confusion(result, e.ranks);
	if (rc >= 0)
		finish(result, &sums);
	neap__rank_answers_free(&answers);
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

	if (!neap__nir_takes(options->model) || neap__recording_named(options->data))
		return 0;
	if (neap__table_named(options->data))
		return 1;
	if (neap_dataset_open(&set, options->data) < 0)
		return 0;
	neap_dataset_info(set, &info);
	neap_dataset_close(set);
	return info.values != 0;
}

/* What answers are: as the data's targets, or the model's where the data has none. */
static enum neap_target target_of(
	const struct neap_dataset *set, const struct neap__safetensors *file)
{
	return is_labelled(set) ? set->info.target : neap__model_target(file);
}

static int is_of_steps(enum neap_target target)
{
	return target == NEAP_TARGET_LABELS || target == NEAP_TARGET_SERIES;
}

/* What an evaluation opens. */
struct open_evaluation {
	struct neap__ranks ranks;
	struct neap__safetensors file;
	struct neap_net_options net_options;
	struct neap_net *net;
	struct neap_dataset *set;
	struct neap_dataset_info info;
	struct neap_loader *loader;
	char **names;
	double *mean, *deviation; /* of targets, as evaluate.h has them */
	enum neap_target target;  /* of answers */
	int of_steps;		  /* an answer a step */
	int is_live;		  /* the sound is heard while it is answered */
	struct neap__live_sound_options live;
};

static int check_sample(const struct neap_dataset_info *info, const int64_t *sample)
{
	if (!sample || (*sample >= 0 && *sample < info->samples))
		return 0;
	return neap__fail(NEAP_EUSAGE, "%s has no sample %lld; it has %lld samples, counted from 0",
		info->name, (long long)*sample, (long long)info->samples);
}

static int open_loader(
	struct open_evaluation *e, const struct neap_eval_options *options, int64_t max_steps)
{
	struct neap_loader_options loading = {.size = sizeof loading,
		.batch = options->batch ? options->batch : 64,
		.dt = e->net_options.dt,
		.steps = max_steps,
		.index = options->sample,
		.count = 1};

	if (e->of_steps || options->every > 0 || neap__answer_outputs_step(options))
		loading.batch = 1;
	e->info.size = sizeof e->info;
	neap_dataset_info(e->set, &e->info);
	NEAP_TRY(check_sample(&e->info, options->sample));
	neap__ranks_loader(&e->ranks, e->net, &loading, e->info.samples);
	return neap_loader_open(&e->loader, e->set, &loading);
}

/* Opens the data: a sound that is heard live has nothing but its shape. */
static int open_data(struct open_evaluation *e, const struct neap_eval_options *options)
{
	struct neap_encoder_options encoder;
	char line[NEAP__TAKEN_TEXT];
	int rc = neap__model_encoder(&encoder, &e->file);

	NEAP_TRY(rc);
	if (options->every > 0)
		NEAP_TRY(neap__decisions_check(options->every, options->window, e->net_options.dt));
	e->is_live = options->every > 0 && neap__recording_named(options->data);
	if (options->level > 0 && !e->is_live)
		return neap__fail(NEAP_EUSAGE,
			"--level applies to a recording or to standard input (-), but '%s' is a "
			"data set. Remove --level",
			options->data);
	if (neap__table_named(options->data)) {
		rc = neap__model_open_table(&e->set, &e->file, options->data, line);
		if (rc == 0 && line[0] && options->say && neap__ranks_root(&e->ranks))
			options->say(options->user, line);
		return rc;
	}
	if (!e->is_live)
		return neap__dataset_open_as(&e->set, options->data, rc > 0 ? &encoder : NULL);
	NEAP_TRY(neap__dataset_open_live(&e->set, options->data, rc > 0 ? &encoder : NULL));
	e->live = (struct neap__live_sound_options){.name = options->data,
		.encoder = &e->set->encoder,
		.level = options->level,
		.ask = {.interrupted = options->interrupted, .user = options->user}};
	return 0;
}

/* Opens model and data and checks that they fit. */
static int open_all(struct open_evaluation *e, const struct neap_eval_options *options)
{
	int64_t max_steps = 0;
	const struct neap__nir_hints hints = {.dt = options->dt,
		.keeps_dt = 1,
		.reset = options->reset,
		.values = has_values(options)};

	NEAP_TRY(neap__model_file_read(&e->file, options->model, &hints));
	int rc = neap__model_open(&e->net, &e->net_options, &max_steps, &e->file,
		neap__ranks_threads(&e->ranks, options->threads));
	if (rc < 0)
		return neap__fail_in(rc, "%s: ", options->model);
	NEAP_TRY(open_data(e, options));
	rc = neap__model_rows_take(e->set, &e->file, max_steps);
	if (rc == NEAP_EFORMAT)
		return neap__fail_in(rc, "%s: ", options->model);
	NEAP_TRY(rc);
	NEAP_TRY(neap__model_fits(&e->file, &e->net_options, e->set));
	rc = neap__model_targets_scale(e->set, &e->file);
	NEAP_TRY(rc);
	e->target = target_of(e->set, &e->file);
	int numbers = e->target == NEAP_TARGET_NUMBERS || e->target == NEAP_TARGET_SERIES;
	if (numbers && options->softmax)
		return neap__fail(NEAP_EUSAGE,
			"--softmax: '%s' answers with numbers, which have no probabilities; remove "
			"--softmax",
			options->model);
	if (numbers)
		NEAP_TRY(neap__model_targets(
			&e->mean, &e->deviation, &e->file, e->net_options.classes));
	e->of_steps = options->answered && options->of_steps && is_of_steps(e->target);
	NEAP_TRY(open_loader(e, options, max_steps));
	if (!options->answered && !is_labelled(e->set))
		return neap__fail(NEAP_EUSAGE,
			"%s has no labels to compare the answers with. Pass labelled data, or use "
			"'neap predict'",
			e->info.name);
	NEAP_TRY(neap__model_class_names(&e->names, &e->file, e->net_options.classes));
	char line[NEAP__TAKEN_TEXT];
	NEAP_TRY(rc = neap__model_other_encoder(line, e->set, &e->file));
	if (rc > 0 && options->say && neap__ranks_root(&e->ranks))
		options->say(options->user, line);
	if (options->say && neap__ranks_root(&e->ranks) && is_labelled(e->set) &&
		neap__dataset_names_taken(
			line, e->set, (const char *const *)e->names, e->net_options.classes))
		options->say(options->user, line);
	return 0;
}

/* Refuses ranks that would compute other bits. */
static int check_ranks(struct open_evaluation *e, const struct neap_eval_options *options)
{
	struct neap__rank_facts facts = {
		.data = options->data, .weights = neap__weights_hash(e->net)};

	if (!e->ranks.peers)
		return 0;
	int rc = neap__data_fingerprint(&facts.fingerprint, e->set);
	NEAP_TRY(neap__ranks_agree(&e->ranks, rc));
	return neap__ranks_same(&e->ranks, &facts);
}

/* The same evaluation with its archives; rank 0 writes them. */
static int evaluate_outputs(struct neap_eval_result *result, const struct open_evaluation *e,
	const struct neap_eval_options *options, struct neap__evaluation evaluation)
{
	const struct neap__answer_shape shape = {.target = e->target,
		.of_steps = e->of_steps,
		.timed = options->every > 0,
		.classes = e->net_options.classes,
		.class_name = e->names};
	struct neap__answer_outputs outputs;
	int (*run)(struct neap_eval_result *, const struct neap__evaluation *) =
		evaluation.live ? neap__live_answers : neap__evaluate;

	if (!options->arrays && !neap__answer_outputs_step(options))
		return run(result, &evaluation);
	NEAP_TRY(neap__answer_outputs_open(&outputs, &evaluation, options, &shape));
	int rc = run(result, &evaluation);
	return neap__answer_outputs_end(&outputs, rc);
}

static int evaluate_opened(struct neap_eval_result *result, struct open_evaluation *e,
	const struct neap_eval_options *options)
{
	const struct neap__evaluation evaluation = {.net = e->net,
		.options = &e->net_options,
		.loss = loss_of(&e->file),
		.loader = e->loader,
		.total = options->sample ? 1 : e->info.samples,
		.progress = options->progress,
		.answered = options->answered,
		.user = options->user,
		.class_name = e->names,
		.ranks = &e->ranks,
		.target = e->target,
		.mean = e->mean,
		.deviation = e->deviation,
		.normalised = e->set->next,
		.of_steps = e->of_steps,
		.every = options->every,
		.window = options->window,
		.live = e->is_live ? &e->live : NULL,
		.softmax = options->softmax};

	NEAP_TRY(evaluate_outputs(result, e, options, evaluation));
	result->class_name = e->names;
	e->names = NULL;
	return 0;
}

static void close_all(struct open_evaluation *e)
{
	neap__model_class_names_free(e->names, e->net_options.classes);
	free(e->mean);
	free(e->deviation);
	neap_loader_close(e->loader);
	neap_dataset_close(e->set);
	neap_net_free(e->net);
	neap__safetensors_free(&e->file);
}

int neap_eval(struct neap_eval_result *result, const struct neap_eval_options *options)
{
	NEAP_NEED(result, options);
	struct open_evaluation evaluating = {0}, *e = &evaluating;

	NEAP_TRY(neap__struct_size(
		result->size, sizeof *result, sizeof *result, "neap_eval_result"));
	NEAP_TRY(neap__struct_size(
		options->size, sizeof *options, sizeof *options, "neap_eval_options"));
	*result = (struct neap_eval_result){.size = sizeof(struct neap_eval_result)};
	if (!options->model || !options->data)
		return neap__fail(NEAP_EUSAGE, "a model and a data set are required");
	if (options->batch < 0 || options->threads < 0)
		return neap__fail(NEAP_EUSAGE, "batch and threads must not be negative");
	if (options->arrays && (!options->answered || options->peers))
		return neap__fail(NEAP_EUSAGE, "arrays require `answered`, and a single process");
	if (!(options->every >= 0) || !(options->level >= 0) || isinf(options->level))
		return neap__fail(NEAP_EUSAGE, "`every` and `level` must not be negative");
	if (options->every > 0 && (!options->answered || options->peers))
		return neap__fail(NEAP_EUSAGE,
			"decisions (--every) require `answered`, and a single process");
	if (options->every > 0 && neap__answer_outputs_step(options))
		return neap__fail(NEAP_EUSAGE, "--every cannot be combined with --spikes and "
					       "--membranes; remove one of them");
	if (options->level > 0 && options->every <= 0)
		return neap__fail(NEAP_EUSAGE, "--level requires --every");
	if (!(options->window >= 0) || (options->window > 0 && options->every <= 0))
		return neap__fail(NEAP_EUSAGE, "--window requires --every");
	if (options->of_steps && options->peers)
		return neap__fail(NEAP_EUSAGE, "targets per step are not supported with several "
					       "ranks; run neap predict as one process");
	if (options->sample && options->peers)
		return neap__fail(NEAP_EUSAGE, "--sample is not supported with several ranks; run "
					       "neap predict as one process");
	NEAP_TRY(neap__answer_outputs_check(options));
	if ((options->dt > 0 || options->reset) && !neap__nir_takes(options->model))
		return neap__fail(NEAP_EUSAGE,
			"'%s' specifies its own dt and reset. Remove --dt and --reset, which apply "
			"to NIR graphs only",
			options->model);
	NEAP_TRY(neap__ranks_begin(&e->ranks, options->peers));
	int rc = neap__ranks_agree(&e->ranks, open_all(e, options));
	if (rc == 0)
		rc = check_ranks(e, options);
	if (rc == 0)
		rc = evaluate_opened(result, e, options);
	neap__ranks_end(&e->ranks, rc);
	close_all(e);
	return rc;
}
