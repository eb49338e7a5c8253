/* SPDX-License-Identifier: Apache-2.0 */
/* evaluate.c: forward passes over a data set, counts, and their 95% interval. */
#include "train/evaluate.h"
#include "train/answers/step_answers.h"
#include "train/answers/timed_answers.h"
#include "data/target_units.h"
#include "train/model.h"
#include "train/ranks/rank_answers.h"
#include "nn/batch/batch.h"
#include "nn/core/cell.h"
#include "nn/core/net_state.h"
#include "nn/core/on_device.h"
#include "nn/step_memory.h"
#include "base/fail.h"
#include "sys/clock.h"
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

/*
 * Advances through all steps in pieces of about LOOK seconds: a step may last from a microsecond to
 * seconds, and a batch has up to 10^9 of them. How they are divided changes no result.
 */
static int advance(const struct neap__evaluation *e, const struct neap_batch *batch, void *state)
{
	static const double LOOK = 0.1; /* chosen: as often as a bar on a terminal is drawn */
	double looked = neap__seconds();
	int64_t piece = 1, stop;

	for (int64_t t = 0; t < batch->steps; t = stop) {
		stop = batch->steps - t < piece ? batch->steps : t + piece;
		NEAP_TRY(neap_net_advance(e->net, state, t, stop, 1));
		NEAP_TRY(neap__net_wait(e->net));
		double spent = neap__seconds() - looked;
		if (spent < LOOK) {
			piece *= 2;
			continue;
		}
		if (spent > 2 * LOOK && piece > 1)
			piece /= 2;
		looked += spent;
		if (stop < batch->steps)
			NEAP_TRY(neap__evaluation_look(e, batch, stop));
	}
	return 0;
}

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
	NEAP_TRY(neap__step_memory_map(neap__net_memory(net), &pages, bytes));
	int rc = e->every > 0		     ? neap__timed_answers(e, batch, pages)
		 : e->of_steps || e->stepped ? neap__step_answers(e, batch, pages)
					     : advance(e, batch, pages);
	if (rc == 0)
		rc = neap_net_turn(net, pages, NULL, &loss);
	neap__step_memory_unmap(neap__net_memory(net), pages, bytes);
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
			.step = -1,
			.sample_name = neap__sample_name(e, s->index)};
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

double neap__mean_deviation(const double *deviation, int outputs)
{
	double sum = 0;

	for (int i = 0; deviation && i < outputs; i++)
		sum += deviation[i] * deviation[i] / outputs;
	return sqrt(sum);
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
	e.so_far = result;
	*result = (struct neap_eval_result){.size = sizeof(struct neap_eval_result),
		.classes = classes,
		/* As the loss is told: of normalised targets it is 1. */
		.target_deviation = e.normalised && e.deviation
					    ? 1
					    : neap__mean_deviation(e.deviation, classes)};
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
