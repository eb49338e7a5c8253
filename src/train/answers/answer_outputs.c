/* SPDX-License-Identifier: Apache-2.0 */
/* answer_outputs.c: between an evaluation, its caller and up to three archives
 * (answer_outputs.h). */
#include "train/answers/answer_outputs.h"
#include "train/answers/layer_choice.h"
#include "base/fail.h"

#include <string.h>

enum { ARCHIVES = 3 };

int neap__answer_outputs_step(const struct neap_eval_options *o)
{
	return o->stepped || o->spikes || o->membranes;
}

int neap__answer_outputs_check(const struct neap_eval_options *o)
{
	const char *path[ARCHIVES] = {o->arrays, o->spikes, o->membranes};

	for (int i = 0; i < ARCHIVES; i++)
		for (int k = i + 1; k < ARCHIVES; k++)
			if (path[i] && path[k] && strcmp(path[i], path[k]) == 0)
				return neap__fail(NEAP_EUSAGE,
					"'%.200s' is given for two archives; choose different "
					"names",
					path[i]);
	if (o->layer && !o->spikes && !o->membranes)
		return neap__fail(NEAP_EUSAGE, "--layer requires --spikes or --membranes");
	if (neap__answer_outputs_step(o) && o->peers)
		return neap__fail(NEAP_EUSAGE, "--spikes and --membranes are not supported with "
					       "several ranks; run neap predict as one process");
	return 0;
}

static int on_progress(void *user, int64_t done, int64_t total)
{
	const struct neap_eval_options *o = ((struct neap__answer_outputs *)user)->options;
	return o->progress ? o->progress(o->user, done, total) : 0;
}

static int on_advanced(void *user, double done, int64_t total)
{
	const struct neap_eval_options *o = ((struct neap__answer_outputs *)user)->options;
	return o->advanced(o->user, done, total);
}

static int on_answer(void *user, const struct neap_answer *answer)
{
	struct neap__answer_outputs *a = user;

	NEAP_TRY(a->options->answered(a->options->user, answer));
	return a->answers.out ? neap__answer_arrays_add(&a->answers, answer) : 0;
}

static int on_step(void *user, const struct neap_step_view *view)
{
	struct neap__answer_outputs *a = user;

	if (a->options->stepped)
		NEAP_TRY(a->options->stepped(a->options->user, view));
	if (a->spikes.out)
		NEAP_TRY(neap__spike_arrays_add(&a->spikes, view));
	return a->membranes.out ? neap__membrane_arrays_add(&a->membranes, view) : 0;
}

static int open_archives(struct neap__answer_outputs *a, const struct neap_net *net,
	const struct neap__answer_shape *shape)
{
	const struct neap_eval_options *o = a->options;
	int layer;

	NEAP_TRY(neap__layer_choice(&layer, net, o->layer));
	if (o->spikes)
		NEAP_TRY(neap__spike_arrays_open(&a->spikes, o->spikes, net, layer));
	if (o->membranes)
		NEAP_TRY(neap__membrane_arrays_open(&a->membranes, o->membranes, net, layer));
	return o->arrays ? neap__answer_arrays_open(&a->answers, o->arrays, shape) : 0;
}

int neap__answer_outputs_open(struct neap__answer_outputs *a, struct neap__evaluation *e,
	const struct neap_eval_options *options, const struct neap__answer_shape *shape)
{
	*a = (struct neap__answer_outputs){.options = options};
	int rc = open_archives(a, e->net, shape);
	if (rc < 0)
		return neap__answer_outputs_end(a, rc);
	if (options->progress)
		e->progress = on_progress;
	if (e->advanced)
		e->advanced = on_advanced;
	if (options->answered)
		e->answered = on_answer;
	if (neap__answer_outputs_step(options))
		e->stepped = on_step;
	e->user = a;
	return 0;
}

/* All archives are written before the first one gets its name. */
int neap__answer_outputs_end(struct neap__answer_outputs *a, int rc)
{
	struct neap__npz_out *out[ARCHIVES] = {a->answers.out, a->spikes.out, a->membranes.out};

	for (int i = 0; i < ARCHIVES && rc >= 0; i++)
		rc = out[i] ? neap__npz_out_write(out[i]) : 0;
	for (int i = 0; i < ARCHIVES; i++)
		if (rc < 0)
			neap__npz_out_abort(out[i]);
		else if (out[i])
			rc = neap__npz_out_finish(out[i]);
	neap__membrane_arrays_free(&a->membranes);
	a->answers.out = a->spikes.out = a->membranes.out = NULL;
	return rc < 0 ? rc : 0;
}
