/* SPDX-License-Identifier: Apache-2.0 */
/* step_answers.c: one step at a time (step_answers.h). */
#include "train/answers/step_answers.h"
#include "nn/core/net_state.h"
#include "nn/step_view.h"
#include "base/fail.h"

#include <errno.h>
#include <stdlib.h>

enum { STEPS_BETWEEN_LOOKS = 256 }; /* between two questions whether to go on */

/* The label of a step of the sample that is being run; -1: none. */
static int label_of(const struct neap_net *net, const struct neap_batch *batch, int64_t t)
{
	return batch->target == NEAP_TARGET_LABELS ? net->events[0].labels[t - net->events_from]
						   : -1;
}

static int largest(const double *z, int n)
{
	int best = 0;

	for (int c = 1; c < n; c++)
		best = z[c] > z[best] ? c : best;
	return best;
}

static int go(const struct neap__evaluation *e, const struct neap_batch *batch, void *state,
	double *score)
{
	const struct neap_sequence *s = &batch->sequences[0];
	struct neap_answer answer = {.index = s->index,
		.steps = s->length,
		.classes = e->options->classes,
		.score = score,
		.class_name = (const char *const *)e->class_name,
		.target = e->target};

	for (int64_t t = 0; t < s->length; t++) {
		if (t > 0 && t % STEPS_BETWEEN_LOOKS == 0 && e->progress &&
			e->progress(e->user, s->index, e->total))
			return neap__fail(NEAP_EINTERRUPTED, "interrupted in sample %lld",
				(long long)s->index);
		NEAP_TRY(neap_net_advance(e->net, state, t, t + 1, 1));
		neap__step_outputs(score, e->net, state, 0);
		answer.step = t;
		answer.label = label_of(e->net, batch, t);
		answer.prediction = largest(score, answer.classes);
		NEAP_TRY(e->answered(e->user, &answer));
	}
	return 0;
}

int neap__step_answers(
	const struct neap__evaluation *e, const struct neap_batch *batch, void *state)
{
	double *score = calloc((size_t)e->options->classes, sizeof *score);

	if (!score)
		return neap__fail_errno(ENOMEM, "answers to steps");
	int rc = go(e, batch, state, score);
	free(score);
	return rc;
}
